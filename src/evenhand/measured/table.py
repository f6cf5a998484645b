"""`evenhand measure table`: a plain table of people and decisions, made into findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError
from evenhand.measured.columns import MOST_GROUPS, Columns, columns_of, groups_of_names
from evenhand.measured.gaps import Sampled, balanced, gap
from evenhand.measured.outcomes import Outcomes, outcomes_of
from evenhand.measured.wording import CARDS, GAP, REFUSED, Wording
from evenhand.probes.base import Placebo
from evenhand.probes.reading import Claims, Input, Names, Reader, Result, Seed, Shown, number, span
from evenhand.runs.card import MetricCard
from evenhand.runs.controls import Answering
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import halves
from evenhand.stats.estimate import Estimate

NAME = "table"
LEAST = 2
"""Rows that a group must have."""


@dataclass(frozen=True)
class GapRow:
    """One group against another."""

    axis: str
    group: str
    other: str
    metric: str
    found: Estimate
    rate: float
    rate_other: float
    n: int
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class TableResult(Result):
    """Every pair of groups, how answers were read, and which analyses fit the table."""

    measure: ClassVar[str] = NAME

    gaps: Sequence[GapRow]
    answers: Mapping[str, int]
    columns: Columns
    unknown_names: int
    n: int
    fits: Mapping[str, str]
    placebos: Sequence[Placebo]
    source: str
    items: pa.Table
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        rows = [
            r.finding.as_dict() | {"rate": r.rate, "rate_other": r.rate_other, "axis": r.axis}
            for r in self.gaps
        ]
        kept = ("answers", "unknown_names", "n", "fits", "source", "settings")
        return {
            "measure": NAME,
            "gaps": rows,
            **{k: getattr(self, k) for k in kept},
            "columns": vars(self.columns),
        }

    def shown(self) -> Iterator[Shown]:
        from evenhand.measured.writing import judged

        findings = judged(self.claims())
        yield Shown(f"{self.n:,} rows of {self.source}")
        yield from (Shown(f.sentence) for f in findings)
        head = ("groups", "about", "gap", "95 %", "q", "rates")
        rows = [
            [
                f"{r.group} / {r.other}",
                r.finding.attribute,
                number(r.found.value, "+.3f"),
                span(f.low, f.high, "+.3f"),
                number(f.q),
                f"{number(r.rate)} / {number(r.rate_other)}",
            ]
            for r, f in zip(self.gaps, findings)
        ]
        yield Shown("Gaps between groups", head, rows)
        if self.answers:
            yield Shown("Answers: " + ", ".join(f"{k} {v:,}" for k, v in self.answers.items()))
        if self.unknown_names:
            yield Shown(f"Names that no list knows, left out: {self.unknown_names:,}")
        yield Shown("Analyses", ("analysis", "does it fit?"), [[*row] for row in self.fits.items()])

    def claims(self) -> Claims:
        """Findings, items and placebos, for a run folder."""
        return Claims(
            name=NAME,
            title="Are groups treated differently?",
            source=self.source,
            findings=[r.finding for r in self.gaps],
            tables={"items": self.items},
            placebos=self.placebos,
            settings=self.settings,
            summary={"answers": dict(self.answers), "fits": dict(self.fits), "trust": self._trust},
            answering=self._answering,
        )

    @property
    def _answering(self) -> Answering:
        if not self.n:
            return Answering()
        declined, unread = (self.answers.get(kind, 0) / self.n for kind in ("declined", "unread"))
        return Answering(declined=declined, unread=unread)

    @property
    def _trust(self) -> list[str]:
        lost = {k: v for k, v in self.answers.items() if k not in ("for", "against")}
        told = [f"Of {self.n:,} answers {v:,} are {k}." for k, v in lost.items()]
        if self.unknown_names:
            told.append(f"{self.unknown_names:,} rows have a name that no list knows; left out.")
        return told


class TableReader(Reader):
    """From any table of people and what was decided about them."""

    name = NAME
    help = """Who is worse off in a plain table: a name or group, and a decision, answer or rating.

    One row per decision. Columns are found by their names (group, gender or race; name;
    decision, answer or rating; case or scenario where the same case was decided for several
    people), or named with the options. Decisions may be free text. With names alone groups come
    from lists of first names.

    \b
    evenhand measure table decisions.csv --html report.html
    evenhand measure table answers.csv --outcome reply --answers invite,reject --out runs/mine
    """
    positional = ("table",)
    cards: ClassVar[tuple[MetricCard, ...]] = CARDS

    table: Input
    groups: Names[str] = Field((), description="Columns that say who; found by default.")
    outcome: str = Field("", description="The column with decisions, answers or ratings.")
    person: str = Field("", description="The column with names of people; found by default.")
    case: str = Field("", description="The column that says which case was decided.")
    answers: Names[str] = Field(
        (), description="Two answers to look for in free text, the good one first."
    )
    lower_is_better: bool = Field(False, description="Of ratings, the lower one is good.")
    reference: str = Field("", description="Compare every group with this one alone.")
    rate: float = Field(0.05, gt=0, lt=1, description="False-discovery rate.")
    seed: Seed = 0

    def read(self) -> TableResult:
        table = read_table(self.table)
        if not table.n_rows:
            raise DataError(f"{table.source}: the table has a header but no rows.")
        roles = columns_of(table, self.groups, self.outcome, self.person, self.case)
        found = outcomes_of(table, roles.outcome, self.answers)
        axes, lost = _axes(table, roles)
        sampled = Sampled(_codes(table, roles.name), _codes(table, roles.case))
        words = Wording(found.labels, found.good, self.lower_is_better, roles.outcome, found.span)
        pairs = list(self._pairs(axes, found))
        refused = found.refused is not None and bool(np.nansum(found.refused))
        tests = len(pairs) * (1 + refused)
        rows = [
            self._row(GAP, found.values, axes[axis], sampled, (axis, *pair), words, tests)
            for axis, pair in pairs
        ]
        if refused and found.refused is not None:
            rows += [
                self._row(REFUSED, found.refused, axes[axis], sampled, (axis, *pair), words, tests)
                for axis, pair in pairs
            ]
        return TableResult(
            gaps=rows,
            answers=found.counts,
            columns=roles,
            unknown_names=lost,
            n=table.n_rows,
            fits=fits(table, roles, found),
            source=Path(table.source).name,
            placebos=tuple(self._placebos(axes, found, sampled)),
            items=_items(table, axes, found, roles),
            settings={
                "groups": list(axes),
                "outcome": roles.outcome,
                "person": roles.name,
                "case": roles.case,
                **self.only("answers", "rate", "seed", "reference"),
            },
        )

    def _pairs(
        self, axes: Mapping[str, Sequence[str]], found: Outcomes
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        for axis, column in axes.items():
            known = [g for g, y in zip(column, found.values) if g and y == y]
            names = sorted(g for g in set(known) if known.count(g) >= LEAST)
            if len(names) < 2 or len(names) > MOST_GROUPS:
                raise DataError(
                    f"column {axis!r}: {len(names)} group{'s' * (len(names) != 1)} with at least "
                    f"{LEAST} readable outcomes."
                    f" Accepted: 2 to {MOST_GROUPS}. Say which columns hold groups: --groups COLUMN"
                )
            if self.reference in names:
                rest = [g for g in names if g != self.reference]
                yield from ((axis, (g, self.reference)) for g in rest)
            else:
                yield from ((axis, pair) for pair in combinations(names, 2))

    def _row(
        self,
        metric: str,
        values: np.ndarray,
        groups: Sequence[str],
        sampled: Sampled,
        place: tuple[str, str, str],
        words: Wording,
        tests: int,
    ) -> GapRow:
        axis, one, two = place
        keep = balanced(groups, sampled.cases, (one, two)) & np.isfinite(values)
        first = np.asarray(groups)[keep] == one
        part = Sampled(*(None if c is None else c[keep] for c in (sampled.names, sampled.cases)))
        y = values[keep]
        found = gap(y, first, part, family=tests, rate=self.rate)
        rates = tuple(float(y[side].mean()) if side.any() else np.nan for side in (first, ~first))
        told = words.finding(metric, found, place, (rates[0], rates[1]), part)
        return GapRow(axis, one, two, metric, found, rates[0], rates[1], len(y), told)

    def _placebos(
        self, axes: Mapping[str, Sequence[str]], found: Outcomes, sampled: Sampled
    ) -> Iterator[Placebo]:
        """Random halves of a group against each other."""
        made = []
        for column in axes.values():
            for group in sorted(set(column) - {""}):
                own = (np.asarray(column) == group) & np.isfinite(found.values)
                if own.any():
                    part = sampled.clusters(len(own))[own]
                    made.append(halves(found.values[own], part, seed=self.seed))
        yield Placebo.of(f"random halves of the {sampled.over[0]} of a group", made)


def _axes(table: Table, roles: Columns) -> tuple[dict[str, list[str]], int]:
    """Groups of every row by column, or by what its first name is common in."""
    if roles.groups:
        told = {
            c: [str(v or "").strip() for v in table.columns[c].to_pylist()] for c in roles.groups
        }
        return told, 0
    names = [str(v or "") for v in table.columns[roles.name].to_pylist()]
    found = groups_of_names(names)
    if not found:
        raise DataError(
            f"{table.source}, column {roles.name!r}: no list of first names tells these names "
            f"apart (e.g. {', '.join(names[:3])}). Add a column with the group of each person."
        )
    return found, sum(not any(column[k] for column in found.values()) for k in range(len(names)))


def _codes(table: Table, column: str) -> np.ndarray | None:
    if not column:
        return None
    texts = [str(v) for v in table.columns[column].to_pylist()]
    codes = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    return None if len(set(codes.tolist())) in (1, len(codes)) and column else codes


def _items(
    table: Table, axes: Mapping[str, Sequence[str]], found: Outcomes, roles: Columns
) -> pa.Table:
    columns: dict[str, Any] = {axis: list(column) for axis, column in axes.items()}
    for name in (roles.name, roles.case, roles.outcome):
        if name:
            columns[name] = [None if v is None else str(v) for v in table.columns[name].to_pylist()]
    columns["value"] = found.values
    if found.refused is not None:
        columns["refused"] = found.refused
    return pa.table(columns)


def fits(table: Table, roles: Columns, found: Outcomes) -> dict[str, str]:
    """Which analyses the table is enough for, and what the others would need."""
    over = Sampled(_codes(table, roles.name), _codes(table, roles.case)).over
    told = {"gaps between groups": f"yes; claims reach beyond these {' and '.join(over)}"}
    if not roles.name:
        told["over names"] = "no: there is no column with names, so each row counts as one person"
    if not roles.case:
        told["same case, another person"] = (
            "no: there is no column that says which case was decided (case, scenario, question)"
        )
    if found.counts:
        told["refusals"] = "yes" if found.counts.get("declined") else "yes; no answer declines"
    else:
        told["refusals"] = "no: the outcome is a number; give the answers as text"
    right = [
        c for c in table.columns if c.strip().lower() in ("truth", "gold", "correct", "target")
    ]
    told["error rates"] = (
        f"yes, with: evenhand measure gaps (column {right[0]!r} says what is right)"
        if right
        else "no: no column says what would be right (truth, gold)"
    )
    return told
