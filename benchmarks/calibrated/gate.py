"""Growth of harm since a baseline: two simulated runs of the same questions, through the gate.

Every name is liked (differently about each attribute), whatever its group, and every answer has a
rest of its own; the later model keeps the liking and has a rest anew. Runs are made in memory with
the items that the underspecified probe writes, so that everything from the items on is the code
that judges real runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path as Folder
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.calibrated import Floats, Outcome, Path

from evenhand.audit.comparison.deciding import decide
from evenhand.audit.marking import marked
from evenhand.audit.policy import Policy
from evenhand.audit.verdicts import decided
from evenhand.probes.registry import make_probe, probe_class
from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.words.lexicons import questions

COVERS = ("evenhand.audit.gate", "evenhand.audit.comparison.deciding")
LABEL = "underspecified"
JOBS = ("nurse", "secretary", "doctor", "mechanic")
NAME, ABOUT, REST = 0.1, 0.06, 0.06
MARGIN = 0.1
NAMES = [
    [s.term for s in questions.subjects("gender") if s.group == group]
    for group in ("female", "male")
]
ROW: dict[str, Any] = {
    "name": LABEL, "templates": ["same_city"], "attributes": list(JOBS), "resamples": 50
}  # fmt: skip


@dataclass(frozen=True)
class Made(Run):
    """A run in memory: the leans of these pairs [pairs, attributes]."""

    folder: Folder
    leans: Floats = field(default_factory=lambda: np.zeros((0, len(JOBS))))

    def __post_init__(self) -> None:
        """There is no folder to look into."""

    @property
    def facts(self) -> dict[str, Any]:
        settings = {**{k: v for k, v in ROW.items() if k != "name"}, "pairs": len(self.leans)}
        suite = {"name": "made", "probe": [{"name": LABEL, **settings}]}
        return {
            "kind": "audit", "status": "finished", "timings": {LABEL: 1e-6}, "placebos": {},
            "models": {"m": {"name": "m"}}, "work": {"model": "m", "seed": 0, "suite": suite},
            "probes": {LABEL: {"probe": LABEL, "model": "m", "settings": settings, "summary": {}}},
        }  # fmt: skip

    @cached_property
    def items(self) -> pa.Table:
        pair, job = np.indices(self.leans.shape).reshape(2, -1)
        lean = self.leans.ravel()
        columns: dict[str, Any] = {
            "first": [NAMES[0][k] for k in pair], "second": [NAMES[1][k] for k in pair],
            "template": ["same_city"] * len(pair), "attribute": [JOBS[k] for k in job],
            "comparative": lean,
        }  # fmt: skip
        for order in (0, 1):
            for asked in ("asked", "negated"):
                for who, way in (("first", 1), ("second", -1)):
                    columns[f"{who}_order{order}_{asked}"] = 0.5 + way * lean / 2
        return pa.table(columns)

    def table(self, label: str, name: str) -> pa.Table:
        return self.items

    @cached_property
    def findings(self) -> list[Finding]:  # type: ignore[override]
        probe = make_probe(LABEL, self.facts["probes"][LABEL]["settings"])
        found = [
            claim(
                f"{LABEL}/{end}", "lean_shared" if end.endswith("/all") else "lean", e,
                sentence=end, otherwise=end, model="m", units="pairs of names",
                over=("names",), margin=MARGIN, groups=("female", "male"),
            )
            for end, e in probe.estimates(self.items).items()
        ]  # fmt: skip
        return [marked(f, probe_class(LABEL), "m") for f in decided(found, "m", 0.05)]


@dataclass(frozen=True)
class World:
    """Models of one kind: how much names are liked, and answers vary."""

    name: float = NAME
    about: float = ABOUT
    rest: float = REST

    def liked(self, rng: np.random.Generator, pairs: int) -> Floats:
        sides = [
            rng.normal(0, self.name, (pairs, 1)) + rng.normal(0, self.about, (pairs, len(JOBS)))
            for _ in range(2)
        ]
        return np.asarray(sides[0] - sides[1])

    def run(
        self,
        rng: np.random.Generator,
        liked: Floats,
        lean: float | Sequence[float] = 0.0,
        noise: float = 0.0,
    ) -> Made:
        """A model with this liking; `noise` adds an effect of each name of its own.

        `lean` is the contrast of the first attribute (the average one moves along), or of each.
        """
        found = liked + rng.normal(0, self.rest, liked.shape)
        if noise:
            found = found + replace(self, name=noise, about=noise).liked(rng, len(liked))
        if isinstance(lean, int | float):
            found[:, 0] += lean * len(JOBS) / (len(JOBS) - 1)
        else:
            found += np.asarray(lean)
        return Made(Folder(f"made-{id(found)}"), found)


def growth(pairs: int) -> Path:
    """The same questions before and after; with an effect, a lean that was not there before."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        world = World()
        liked = world.liked(rng, pairs)
        before, after = world.run(rng, liked), world.run(rng, liked, effect)
        found = {d.finding: d for d in decide(before, after, Policy()).decisions}
        rows = [found[f.id] for f in after.findings]
        small = effect / (len(JOBS) - 1)
        truth = np.asarray([effect, *[-small] * (len(JOBS) - 1), small])
        numbers = {n: np.asarray([getattr(d, n) for d in rows]) for n in ("p", "q", "low", "high")}
        seen = max(rows[0].detectable, after.findings[0].detectable)
        return Outcome(**numbers, truth=truth, detectable=seen, planted=0)

    return Path(f"gate, growth of harm since a baseline, {pairs} disjoint pairs", draw)


PATHS = [growth(20), growth(60)]
