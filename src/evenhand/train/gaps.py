"""Group gaps of any yes/no classifier from a table of its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, unknown
from evenhand.metrics.gaps import GroupGaps, group_gaps
from evenhand.probes.reading import Input, Reader, Resamples, Result, Seed, Shown, number


@dataclass(frozen=True)
class GapsResult(GroupGaps, Result):
    """Gaps between two groups, as read from a table."""

    measure: ClassVar[str] = "gaps"

    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        return gap_tables(self, f"{self.first} - {self.second}")


def gap_tables(found: GroupGaps, title: str) -> Iterator[Shown]:
    """Rates of both groups beside their gap, and why some are undefined."""
    sizes = ", ".join(f"{name} {r.n}" for name, r in found.rates.items())
    sides = [found.rates[name].rates for name in (found.first, found.second)]
    rows = [
        [
            g.metric,
            *(number(getattr(r, g.metric)) for r in sides),
            *(number(v) for v in (g.gap, g.low, g.high, g.p)),
        ]
        for g in found.gaps
    ]
    head = ["rate", found.first, found.second, "gap", "low", "high", "p"]
    yield Shown(f"{title} ({sizes})", head, rows)
    for reason in sorted({g.reason for g in found.gaps if g.reason}):
        yield Shown(f"Note: {reason}.")


class GapsReader(Reader):
    name = "gaps"
    help = "Gaps between two groups in precision, recall, F1, FPR and FNR of any classifier."
    positional = ("table",)

    table: Input = Field(description="Columns label, predicted (0/1) and group.")
    first: str = Field(description="The gap is FIRST - SECOND.")
    second: str = Field(description="The other group.")
    resamples: Resamples = 2_000
    seed: Seed = 0

    def read(self) -> GapsResult:
        table = read_table(self.table, text=["group"], needed=["label", "predicted", "group"])
        groups = table.labels("group")
        for name in (self.first, self.second):
            if name not in groups.values:
                raise DataError(unknown("group", name, groups.values, where=table.source))
        again = self.only("resamples", "seed")
        found = group_gaps(
            table.flags("label"),
            table.flags("predicted"),
            list(groups),
            self.first,
            self.second,
            **again,
        )
        return GapsResult(**vars(found), settings=again)
