"""Metrics against behaviour over families of related embeddings.

Families lie at their own level of every column, and inside a family a change moves every column by
its own amount per step: pooled, or inside one family, columns go together or against each other by
accident. Points of a family are steps of one change (how much of a corpus was balanced, how long
vectors were pushed apart), so their columns drift along a line, each with a slope of its own, and
repeated training adds noise; with little noise correlations inside a family are near 1 or -1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
from benchmarks.calibrated import Outcome, Path, outcome, smooth

from evenhand.corpora.tables import Table, from_columns
from evenhand.stats.correlation import correlate_table
from evenhand.stats.estimate import within
from evenhand.stats.families import over_families
from evenhand.study.claims import findings
from evenhand.study.correlation import CorrelationReader

COVERS = ("evenhand.study.correlation",)
Floats = npt.NDArray[np.float64]
X, Y = ("weat", "rnsb"), ("f1", "recall", "rate")
STEPS, DRAWN = np.linspace(0.0, 4.0, 11), 720


def table(
    rng: np.random.Generator, points: tuple[int, ...], push: float, noise: float = 0.7
) -> Table:
    """One row per embedding; with `push` the first behaviour follows the first metric."""
    family = np.repeat(np.arange(len(points)), points)
    step = np.concatenate([np.linspace(-1, 1, n) for n in points])
    columns: dict[str, object] = {}
    for name in (*X, *Y):
        level, slope = rng.normal(0, 2, len(points)), rng.normal(0, 1, len(points))
        columns[name] = level[family] + slope[family] * step + rng.normal(0, noise, len(step))
    columns[Y[0]] = np.asarray(columns[Y[0]]) + push * np.asarray(columns[X[0]])
    return from_columns({**columns, "family": [f"f{k}" for k in family]}, "made")


def measured(made: Table) -> CorrelationReader:
    return CorrelationReader(table=made, x=X, y=Y, strata="family", resamples=19)


@cache
def pushes(points: tuple[int, ...], noise: float) -> Floats:
    """Mean correlations inside families that pushes of `STEPS` make."""
    rng = np.random.default_rng(1)
    many = points * (DRAWN // len(points))
    out = []
    for push in STEPS:
        made = table(rng, many, push, noise)
        x, y, codes = made.numbers(X[0]), made.numbers(Y[0]), made.labels("family").codes
        rho = [correlate_table(x[codes == k], y[codes == k], resamples=1, max_exact=1, bootstrap=0)
               for k in range(len(many))]  # fmt: skip
        out.append(
            over_families([float(r.coefficient[0, 0]) for r in rho], [r.n for r in rho]).value
        )
    return np.tanh(smooth(STEPS, np.arctanh(out)))


def path(points: tuple[int, ...], noise: float = 0.7) -> Path:
    n = np.asarray(points, float)
    room = float(np.arctanh(1 - 6 / (n**3 - n)).mean())

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        # Effects are Fisher's z before its bounds squeeze it (`stats.estimate.within`), whose mean
        # over runs is a mean of what they would detect.
        rho = np.tanh(within(effect, room))
        push = float(np.interp(rho, pushes(points, noise), STEPS)) if effect else 0.0
        found = findings(measured(table(rng, points, push, noise)).read().rows, [])
        truth = np.zeros(len(found))
        truth[0] = rho
        made = outcome(found, truth, np.asarray([f.q for f in found]))
        seen = np.arctanh(made.detectable)
        return replace(made, detectable=float(seen / np.sqrt(1 - (seen / room) ** 2)))

    sizes = f"{min(points)} to {max(points)}" if min(points) < max(points) else f"{points[0]}"
    near = ", correlations near 1 or -1" if noise < 0.5 else ""
    return Path(f"correlation, {len(points)} families of {sizes}{near}", draw)


def pooled(points: int) -> Path:
    """Independent rows without strata, as `measure correlation` reads them."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        made = {name: rng.normal(size=points) for name in (*X, *Y)}
        reader = CorrelationReader(
            table=from_columns(dict(made), "made"),
            x=X,
            y=Y,
            resamples=999,
            seed=int(rng.integers(99)),
        )
        rows = reader.read().rows
        p, q, low, high = (
            np.asarray([getattr(r, name) for r in rows]) for name in ("p", "q", "low", "high")
        )
        return Outcome(p, q, low, high, np.zeros(len(rows)), np.nan)

    return Path(f"correlation, {points} independent rows", draw)


PATHS: list[Path] = [
    path((8, 12, 18, 27, 18, 12, 10, 15)), path((10,) * 12), path((12,) * 9, 0.1), pooled(40),
]  # fmt: skip
