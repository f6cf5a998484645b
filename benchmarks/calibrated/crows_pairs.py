"""CrowS-Pairs: few antistereo pairs, busy writers, and a liking for naming the group."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.crows_pairs import CrowsPairs

COVERS = ("evenhand.probes.crows_pairs",)
TYPES, WRITERS = ("age", "gender", "religion"), 60
STEREO, ANTISTEREO = 160, 40


@cache
def written() -> tuple[npt.NDArray[np.str_], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Kind, direction and writer of every pair: one data set, asked of every model."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(TYPES, STEREO + ANTISTEREO)
    stereo = np.tile(np.arange(STEREO + ANTISTEREO) < STEREO, len(TYPES))
    return kinds, stereo, rng.choice(WRITERS, len(kinds), p=rng.dirichlet(np.full(WRITERS, 0.5)))


def path() -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        kinds, stereo, writer = written()
        named = np.where(stereo, 1.0, -1.0)  # `more` names the disadvantaged group, or the other
        share = 0.5 + named * (0.15 + rng.normal(0, 0.08, WRITERS)[writer])
        share += rng.normal(0, 0.08, WRITERS)[writer] + effect / 100 * (kinds == TYPES[0])
        won = rng.random(len(kinds)) < share
        items = Items(
            {
                "bias_type": kinds.tolist(),
                "direction": np.where(stereo, "stereo", "antistereo").tolist(),
                "writer": [str(w) for w in writer],
                "sent_more_score": np.where(won, -1.0, -3.0),
                "sent_less_score": np.full(len(kinds), -2.0),
            }
        )
        declared = CrowsPairs.model_validate({}).declare(items)
        rows = [row for row in judge(declared) if row["direction"] == "both"]
        at = next(k for k, row in enumerate(rows) if row["bias_type"] == TYPES[0])
        moved = [row["bias_type"] in (TYPES[0], "overall") for row in rows]
        truth = np.where(moved, np.nan if effect else 50.0, 50.0)
        q = np.asarray([row.q for row in rows])
        return outcome([row.estimate for row in rows], truth, q, at)

    return Path(f"crows-pairs, {WRITERS} writers who wrote 1 to 60 pairs", draw)


PATHS = [path()]
