"""`evenhand measure ranking`: rankings made elsewhere, with rates, ratios, floors and verdicts.

Three kinds of file are read: one row per candidate shown with its rank; the same with names and the
ranker's answer as free text (read by first mention); and the runs of Bloomberg's audit as published
(`used` runs; stratum: model|job).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError
from evenhand.probes.base import Measured
from evenhand.probes.ranking.ll144 import AXES, Law144
from evenhand.probes.ranking.ll144 import table as law_table
from evenhand.probes.ranking.rankings import (
    UNKNOWN,
    Rankings,
    axes_of,
    check_winners,
    first_mentions,
)
from evenhand.probes.ranking.rates import (
    FIFTHS,
    Floors,
    PositionRow,
    RateRow,
    placebos,
    position_rows,
    rate_rows,
)
from evenhand.probes.reading import Claims, Input, Reader, Result, Seed, Shown, listed, number
from evenhand.strict import OPTIONAL, record
from evenhand.words.reading_answers import declines

Floats = npt.NDArray[np.float64]
COLUMNS = ("stratum", "run", "group", "position", "rank")
BLOOMBERG = ("model", "job", "run", "used", "names", "groups", "rank_order")


@dataclass(frozen=True)
class Read:
    """A file: who was shown and ranked first, and what could not be used.

    Attributes:
        rankings: answered runs, candidates of known group.
        unnamed: candidates that the ranker did not name, in all runs.
        unknown: candidates whose group is not known.
        refused, unread: runs whose answer declined, or named nobody.
        runs: all runs.
    """

    rankings: Rankings
    unnamed: int
    unknown: int
    refused: int
    unread: int
    runs: int


def read_rankings(source: Any, only: str = "") -> Read:
    """A table of rankings, an answer per run, or the runs of Bloomberg's audit.

    Args:
        only: strata whose name holds this text; all by default.
    """
    text = ("stratum", "run", "group", "name", "answer", "sex", "gender", "race")
    table = read_table(source, text=text)
    if all(table.has(name) for name in BLOOMBERG):
        table = _from_bloomberg(table)
    answers = not table.has("rank") and table.has("answer") and table.has("name")
    table.require(COLUMNS[:4] if answers else COLUMNS)
    stratum, run = (list(table.labels(name)) for name in ("stratum", "run"))
    group = [str(g).strip() if g is not None else "" for g in _texts(table, "group")]
    names = list(table.labels("name")) if table.has("name") else None
    position = _positions(table)
    axes = _axes(table, group)
    bare = Rankings(stratum, run, group, position, np.zeros(len(group)), names, axes)
    ranks, refused = _ranks(bare, table) if answers else (_numbers(table), 0)
    check_winners(bare, ranks, table.source)
    whole = Rankings(stratum, run, group, position, (ranks == 1) * 1.0, names, axes)
    if only:
        keep = np.asarray([only in s for s in stratum])
        if not keep.any():
            there = ", ".join(whole.strata[:8])
            raise DataError(f"{table.source}: no stratum holds {only!r}. There are: {there}.")
        whole, ranks = whole.take(keep), ranks[keep]
    asked = len(set(whole.runs.tolist()))
    found = whole.answered()
    runs = len(set(found.runs.tolist()))
    known = np.asarray([g.lower() not in UNKNOWN for g in found.group], bool)
    if not known.any():
        raise DataError(
            f"{table.source}: nobody of a known group was ranked in {asked} runs. Accepted: rank 1 "
            "for the best candidate of a run, and a group for every candidate."
        )
    return Read(
        found if known.all() else _without(found, known),
        int(np.isnan(ranks).sum()),
        int((~known).sum()),
        refused,
        asked - runs - refused,
        asked,
    )


def _without(rankings: Rankings, known: npt.NDArray[np.bool_]) -> Rankings:
    """Without those of unknown group; their share of a run stays theirs."""
    kept = rankings.take(known)
    object.__setattr__(kept, "share", rankings.share[known])
    return kept


def _texts(table: Table, name: str) -> list[Any]:
    return list(table.columns[name].to_pylist())


def _positions(table: Table) -> npt.NDArray[np.int64]:
    values = table.numbers("position")
    wrong = np.flatnonzero(~(values >= 0) | (values % 1 != 0))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{table.source}, row {row + 1}, column position: {values[row]:g} is not a place. "
            "Accepted: 1 for the candidate shown first, 2 for the next."
        )
    return values.astype(np.int64)


def _numbers(table: Table) -> Floats:
    ranks = table.numbers("rank")
    wrong = np.flatnonzero((ranks < 1) | (ranks % 1 != 0) & ~np.isnan(ranks))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{table.source}, row {row + 1}, column rank: {ranks[row]:g} is not a rank. Accepted: "
            "1 for the best, 2 for the next; empty for a candidate who was not named."
        )
    return ranks


def _ranks(rows: Rankings, table: Table) -> tuple[Floats, int]:
    """Ranks by first mention in the answer of each run, and how many answers declined."""
    assert rows.name is not None
    ranks, refused = np.full(len(rows), np.nan), 0
    answers = [str(a) if a is not None else "" for a in _texts(table, "answer")]
    order = np.argsort(rows.runs, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(rows.runs[order])) + 1):
        said = next((answers[i] for i in at if answers[i].strip()), "")
        named = first_mentions(said, [rows.name[i] for i in at])
        if not named:
            refused += declines(said)
        for rank, k in enumerate(named, start=1):
            ranks[at[k]] = rank
    return ranks, refused


def _axes(table: Table, group: Sequence[str]) -> dict[str, dict[str, str]]:
    """Sex and race of every group: from columns, else from labels that name both."""
    sex = next((n for n in ("sex", "gender") if table.has(n)), "")
    if not (sex and table.has("race")):
        return axes_of(sorted({g for g in group if g.lower() not in UNKNOWN}))
    found: dict[str, dict[str, str]] = {}
    for g, s, r in zip(group, _texts(table, sex), _texts(table, "race")):
        found.setdefault(g, {"race": str(r or ""), "sex": str(s or "")})
    return found


def _from_bloomberg(table: Table) -> Table:
    """The published runs as one row per candidate; those set aside for balance are left out."""
    from evenhand.corpora.tables import from_columns

    columns: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, "name")}
    told = [_texts(table, name) for name in BLOOMBERG]
    missing = (
        _texts(table, "names_not_in_response")
        if table.has("names_not_in_response")
        else [[]] * table.n_rows
    )
    for row, (model, job, run, used, names, groups, order, lost) in enumerate(zip(*told, missing)):
        if not used:
            continue
        if not len(names) == len(groups) == len(order):
            raise DataError(
                f"{table.source}, row {row + 1}: {len(names)} names, {len(groups)} groups and "
                f"{len(order)} ranks. Accepted: as many of each as candidates were shown."
            )
        rank = {place: k for k, place in enumerate(order, start=1)}
        for k, (name, group) in enumerate(zip(names, groups)):
            values = (
                f"{model}|{job}",
                run,
                group,
                k + 1,
                None if k in (lost or ()) else rank[k],
                name,
            )
            for column, value in zip(columns.values(), values):
                column.append(value)
    return from_columns(columns, table.source)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StratumRow:
    """What a ranker that does not look at groups gives in one stratum, and how this one did."""

    stratum: str
    runs: int
    groups: int
    smallest_ratio: float
    floor: float
    chance_below_four_fifths: float


@dataclass(frozen=True, kw_only=True)
class RankingResult(Result):
    """Rates of every stratum and group, positions, and what was not named or not read."""

    measure: ClassVar[str] = "ranking"

    rates: Sequence[RateRow]
    position: Sequence[PositionRow]
    unnamed: int
    unknown: int
    refused: int
    unread: int
    runs: int
    strata: Sequence[StratumRow]
    generalises_over: str
    ll144: Law144 | None = field(default=None, metadata=OPTIONAL)
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        if self.ll144 is not None:
            yield from _law(self.ll144)
            return
        below = sum(row.below_floor for row in self.rates)
        title = (
            f"Ranked first, in {self.runs:,} runs ({self.refused} declined, {self.unread} named "
            f"nobody; {self.unnamed:,} candidates not named): {below} of {len(self.rates)} ratios "
            "lie below the floor, where a ranker that does not look at groups puts its smallest "
            "in 5 of 100 such audits"
        )
        keys = ("stratum", "group", "n", "top", "rate", "ratio", "low", "high", "floor", "q")
        yield listed(title, self.rates, keys)
        yield listed("Strata", self.strata, tuple(StratumRow.__dataclass_fields__))
        first = [row for row in self.position if row.position == 1]
        yield listed("Shown first and ranked first", first, ("stratum", "position", "rate"))
        yield Shown(f"q: {self.generalises_over} are the sample; corrected over the table.")


def _law(found: Law144) -> Iterator[Shown]:
    cells = [
        [
            "both" if r.axis == AXES[-1] else r.axis,
            r.category,
            str(r.n),
            f"{r.selected:g}",
            number(r.rate),
            number(r.ratio),
            r.left_out or "",
        ]
        for r in found.rows
    ]
    head = (
        "by",
        "category",
        "applicants",
        "selected",
        "selection rate",
        "impact ratio",
        "left out because",
    )
    yield Shown("Local Law 144: selection rates and impact ratios", head, cells)
    yield Shown(
        f"Unknown category: {found.unknown}. Left out as below 2 %: {found.left_out}. "
        f"{found.statement}"
    )


class RankingReader(Reader):
    name = "ranking"
    help = """Selection rates and impact ratios of rankings, with the floor that chance gives.

    One row per candidate shown: stratum, run, group, position, rank (1 = best; empty = not named);
    optional name (names are then the sample), sex, race. Without rank: name and answer, a free
    text read by first mention. The runs of Bloomberg's audit (runs.jsonl.xz) are read as published.
    """
    positional = ("rankings",)

    rankings: Input
    strata: str = Field("", description="Only strata whose name contains this text.")
    table: Literal["rates", "ll144"] = Field(
        "rates", description="ll144: the table of New York City's Local Law 144."
    )
    seed: Seed = 0

    def read(self) -> RankingResult:
        found = read_rankings(self.rankings, self.strata)
        rankings = found.rankings
        rows, floors = rate_rows(rankings, seed=self.seed)
        strata = [
            StratumRow(
                name,
                len(set(part.runs.tolist())),
                len(part.groups),
                min(r.ratio for r in rows if r.stratum == name),
                floors[name].smallest,
                floors[name].chance(FIFTHS),
            )
            for name in rankings.strata
            for part in [rankings.of(name)]
        ]
        law = None
        if self.table == "ll144":
            law = law_table(rankings, found.unknown, str(self.rankings))
        return RankingResult(
            rates=rows,
            position=position_rows(rankings),
            unnamed=found.unnamed,
            unknown=found.unknown,
            refused=found.refused,
            unread=found.unread,
            runs=found.runs,
            strata=strata,
            generalises_over="runs" if rankings.name is None else "names",
            ll144=law,
            settings={"strata": self.strata, "table": self.table, "seed": self.seed},
        ).telling(lambda: self._claims(found, rows, floors))

    def _claims(self, read: Read, rates: list[RateRow], floors: Mapping[str, Floors]) -> Claims:
        from evenhand.probes.ranking.findings import measured, selections, whole
        from evenhand.probes.ranking.probe import Ranking, selection_tables

        rows = read.rankings
        shown = int(np.bincount(rows.runs).max())
        positions = position_rows(rows)
        first = float(np.mean([r.rate for r in positions if r.position == 1] or [np.nan]))
        sides = measured(rows)
        claims = selections(rows, sides, {})
        runs = len(set(rows.runs.tolist()))
        lead = rows.top / rows.share - 1
        items = {
            "job": rows.stratum,
            "run": rows.run,
            "position": rows.position,
            "name": rows.name if rows.name is not None else [""] * len(rows),
            "group": rows.group,
            "share": rows.share,
            "lead": lead,
        }
        found = Measured(
            [*claims, *whole(rates, floors, first, shown, runs)],
            pa.table(items),
            selection_tables(sides, claims, rates, positions),
            {
                "runs": runs,
                "shown": shown,
                "shown_first": first,
                "scores": record(rates),
                "trust": [
                    "The file does not say whether every group had the same resumes: if not, a "
                    "difference may be one of resumes."
                ],
            },
            (placebos(rows, lead, self.seed),),
        )
        return Claims.of(
            Ranking.model_validate({}),
            self,
            self.rankings,
            found,
            refused=read.refused,
            unread=read.unread,
            about_an_unknown_group=read.unknown,
        )


READERS = (RankingReader,)
