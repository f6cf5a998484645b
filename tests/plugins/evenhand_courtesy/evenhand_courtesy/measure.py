"""Courtesy measured from a file of scores made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand.corpora.tables import read_table
from evenhand.probes.reading import Reader, Shown


@dataclass(frozen=True)
class CourtesyResult:
    """The mean score of each group, and how far the first lies above the last."""

    means: dict[str, float]
    gap: float
    n: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def shown(self) -> Iterable[Shown]:
        rows = [(group, f"{mean:.3f}") for group, mean in self.means.items()]
        yield Shown(f"courtesy gap {self.gap:.3f} over {self.n} rows", ("group", "mean"), rows)


class CourtesyFile(Reader):
    """Reads `group, score`, one row per scored text."""

    name: ClassVar[str] = "courtesy"
    help: ClassVar[str] = "Courtesy by group.\n\nINPUT has one row per text: group, score."
    positional: ClassVar[tuple[str, ...]] = ("input",)

    input: str

    def read(self) -> CourtesyResult:
        table = read_table(self.input, text=("group",))
        table.require(("group", "score"))
        groups, scores = np.asarray(list(table.labels("group"))), table.numbers("score")
        means = {g: float(scores[groups == g].mean()) for g in dict.fromkeys(groups.tolist())}
        first, *_, last = means.values()
        return CourtesyResult(means, first - last, len(scores))
