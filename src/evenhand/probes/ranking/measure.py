"""`evenhand measure ranking`: rankings made elsewhere, with rates, ratios, floors and verdicts.

Three kinds of file are read: one row per candidate shown with its rank; the same with names and the
ranker's answer as free text (read by first mention); and the runs of Bloomberg's audit as published
(`used` runs; stratum: model|job).

The table that New York City's Local Law 144 asks for (6 RCNY 5-301) is made from them on demand:
selection rate and impact ratio by sex, by race or ethnicity, and by both together; the number of
people of unknown category; categories below 2 % of those known may be left out, with reason and
count. The law wants historical data; names given to resumes are test data, and it wants to be told
why those were used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.compare.items import Floats, Items
from evenhand.compare.rows import Row
from evenhand.corpora.tables import Table, from_columns, read_table
from evenhand.errors import DataError
from evenhand.probes.ranking.probe import Ranking
from evenhand.probes.ranking.rates import (
    FIFTHS,
    PositionRow,
    RateRow,
    Rates,
    are_named,
    candidates,
    jobs_of,
    position_rows,
    with_top,
)
from evenhand.probes.reading import (
    FileItems,
    Input,
    ItemsReader,
    Result,
    Seed,
    Shown,
    listed,
    number,
)
from evenhand.strict import OPTIONAL, record
from evenhand.words.reading_answers import declines

COLUMNS = ("stratum", "run", "group", "position", "rank")
BLOOMBERG = ("model", "job", "run", "used", "names", "groups", "rank_order")
UNKNOWN = frozenset({"", "unknown", "n/a", "not known", "not stated"})
"""Groups that say that the group is not known."""
SEXES = {
    "m": "men",
    "w": "women",
    "f": "women",
    "men": "men",
    "women": "women",
    "male": "men",
    "female": "women",
    "man": "men",
    "woman": "women",
}
RACES = {"a": "Asian", "b": "Black", "h": "Hispanic", "w": "White"}
"""One-letter codes of Bloomberg's audit."""
SMALL = 0.02
STATEMENT = (
    "Test data: the candidates are texts to which names were given that stand for the categories, "
    "not people who applied. Historical data of an employer were not available to this audit, or "
    "hold no category; names are a signal of sex and race or ethnicity that readers attach, not "
    "what a person states. Selected means ranked first."
)
AXES = ("sex", "race", "intersection")
PLACE = "a place. Accepted: 1 for the candidate shown first, 2 for the next"
RANK = "a rank. Accepted: 1 for the best, 2 for the next; empty for a candidate who was not named"
RESUMES = (
    "The file does not say whether every group had the same resumes: if not, a difference may be "
    "one of resumes."
)


def first_mentions(text: str, names: Sequence[str]) -> list[int]:
    """Return the candidates that a free answer mentions, in the order of first mention.

    >>> first_mentions("1. Bo Li 2. ANN RAY", ("Ann Ray", "Cy", "Bo Li"))
    [2, 0]
    """
    said = text.lower()
    patterns = (rf"(?<!\w){re.escape(name.lower())}(?!\w)" for name in names)
    matches = [re.search(pattern, said) for pattern in patterns]
    places = [(m.start(), -len(names[k]), k) for k, m in enumerate(matches) if m]
    return [k for _, _, k in sorted(places)]


def _ranks(items: Items, answers: Sequence[str]) -> tuple[Floats, int]:
    """Return ranks by first mention in the answer of each run, and how many answers declined."""
    ranks, refused = np.full(items.size, np.nan), 0
    names, runs = items["name"], items.codes("_run")
    order = np.argsort(runs, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(runs[order])) + 1):
        said = next((answers[i] for i in at if answers[i].strip()), "")
        named = first_mentions(said, names[at].tolist())
        if not named:
            refused += declines(said)
        ranks[at[named]] = np.arange(1, len(named) + 1)
    return ranks, refused


def _check_winners(items: Items, ranks: Floats, source: str) -> None:
    """Refuse a run with several winners, or with a single candidate."""
    runs = items.codes("_run")
    sizes, wins = np.bincount(runs), np.bincount(runs, weights=ranks == 1)
    for wrong, what in ((wins > 1, "two candidates with rank 1"), (sizes < 2, "one candidate")):
        if wrong.any():
            row = int(np.flatnonzero(wrong[runs])[0])
            raise DataError(
                f"{source}, row {row + 1}: run {items['run'][row]!r} of stratum "
                f"{items['job'][row]!r} has {what} ({int(wrong.sum())} such runs). Accepted: "
                "one row per candidate shown, two or more a run, and one of them ranked 1."
            )


def _whole(table: Table, column: str, least: int, what: str, *, gaps: bool = False) -> Floats:
    """Read a column of whole numbers.

    Args:
        least: the smallest one that is accepted.
        what: what they are and which are accepted, for messages.
        gaps: whether a cell may be empty.
    """
    values = table.numbers(column)
    good = (values >= least) & (values % 1 == 0) | (gaps & np.isnan(values))
    for row in np.flatnonzero(~good):
        raise DataError(
            f"{table.source}, row {row + 1}, column {column}: {values[row]:g} is not {what}."
        )
    return values


def _axes(table: Table, group: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return sex and race of every group: from columns, else from labels that name both."""
    sex = next((n for n in ("sex", "gender") if table.has(n)), "")
    if not (sex and table.has("race")):
        return axes_of(sorted({g for g in group if g.lower() not in UNKNOWN}))
    axes: dict[str, dict[str, str]] = {}
    for g, s, r in zip(group, _texts(table, sex), _texts(table, "race")):
        axes.setdefault(g, {"race": r, "sex": s})
    return axes


def axes_of(groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return sex and race of groups whose labels name both; empty if they do not.

    >>> axes_of(["B_M", "W_W"])
    {'B_M': {'race': 'Black', 'sex': 'men'}, 'W_W': {'race': 'White', 'sex': 'women'}}
    >>> axes_of(["Asian women", "Black men"])["Asian women"]
    {'race': 'Asian', 'sex': 'women'}
    >>> axes_of(["young", "old"])
    {}
    """
    axes = {}
    for group in groups:
        parts = [p for p in re.split(r"[\s_/|-]+", group) if p]
        sex = SEXES.get(parts[-1].lower()) if len(parts) > 1 else None
        if sex is None:
            return {}
        race = " ".join(parts[:-1])
        axes[group] = {"race": RACES.get(race.lower(), race), "sex": sex}
    return axes


def _texts(table: Table, name: str) -> list[str]:
    """Return a column as texts, "" for an empty cell."""
    return ["" if v is None else str(v) for v in table.columns[name].to_pylist()]


def _from_bloomberg(table: Table) -> Table:
    """Return the published runs as a row per candidate, without those set aside for balance."""
    names = (*BLOOMBERG, "names_not_in_response")
    columns = [table.columns[n].to_pylist() if table.has(n) else [()] * table.n_rows for n in names]
    rows: list[tuple[Any, ...]] = []
    for line, (model, job, run, used, called, groups, order, lost) in enumerate(zip(*columns), 1):
        if not used:
            continue
        if not len(called) == len(groups) == len(order):
            raise DataError(
                f"{table.source}, row {line}: {len(called)} names, {len(groups)} groups and "
                f"{len(order)} ranks. Accepted: as many of each as candidates were shown."
            )
        rank = {place: k for k, place in enumerate(order, start=1)}
        rows += [
            (f"{model}|{job}", run, group, k + 1, None if k in (lost or ()) else rank[k], name)
            for k, (name, group) in enumerate(zip(called, groups))
        ]
    parts = zip(*rows) if rows else [()] * (len(COLUMNS) + 1)
    return from_columns(dict(zip((*COLUMNS, "name"), map(list, parts))), table.source)


@dataclass(frozen=True)
class CategoryRow:
    """One category: applicants, selected, selection rate, impact ratio; why it is left out."""

    axis: str
    category: str
    n: int
    selected: float
    rate: float
    ratio: float
    left_out: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Law144:
    """The table, the number of unknown category, and the statement on test data."""

    rows: Sequence[CategoryRow]
    unknown: int
    left_out: int
    statement: str = STATEMENT


def law_table(items: Items, unknown: int, source: str) -> Law144:
    """Return rates and ratios of all categories, over all strata together.

    Raises:
        DataError: sex and race of the groups are not known.
    """
    axes, groups = items.about.axes, items.levels("group")
    if not all({"sex", "race"} <= {*axes.get(g, ())} for g in groups):
        raise DataError(
            f"{source}: sex and race of the groups ({', '.join(groups[:4])}) are not known. "
            "Accepted with --table ll144: columns sex and race, or groups that name both, such as "
            "'Black women' or B_W."
        )
    rows: list[CategoryRow] = []
    for axis in AXES:
        names = ("race", "sex") if axis == "intersection" else (axis,)
        labels = [" ".join(axes[g][name] for name in names) for g in items["group"]]
        rows += _categories(axis, np.asarray(labels), items["_top"])
    return Law144(rows, unknown, sum(r.n for r in rows if r.left_out and r.axis == AXES[2]))


def _categories(axis: str, labels: npt.NDArray[Any], top: Floats) -> list[CategoryRow]:
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    selected = np.bincount(codes, weights=top)
    small = sizes < SMALL * len(labels)
    best = max((selected / sizes)[~small], default=float("nan"))
    why = f" of {len(labels)} candidates, less than 2 %"
    return [
        CategoryRow(
            axis,
            str(name),
            int(n),
            float(won),
            float(won / n),
            float("nan") if few or not best > 0 else float(won / n / best),
            f"{n}{why}" if few else None,
        )
        for name, n, won, few in zip(names, sizes, selected, small)
    ]


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


def _law(law: Law144) -> Iterator[Shown]:
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
        for r in law.rows
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
        f"Unknown category: {law.unknown}. Left out as below 2 %: {law.left_out}. {law.statement}"
    )


class RankingReader(ItemsReader):
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

    def items(self) -> FileItems:
        text = ("stratum", "run", "group", "name", "answer", "sex", "gender", "race")
        table = read_table(self.rankings, text=text)
        if all(table.has(name) for name in BLOOMBERG):
            table = _from_bloomberg(table)
        answers = not table.has("rank") and table.has("answer") and table.has("name")
        table.require(COLUMNS[:4] if answers else COLUMNS)
        stratum, run = (list(table.labels(name)) for name in ("stratum", "run"))
        group = [g.strip() for g in _texts(table, "group")]
        names = list(table.labels("name")) if table.has("name") else None
        items = candidates(
            stratum,
            run,
            group,
            _whole(table, "position", 0, PLACE),
            np.zeros(len(group)),
            name=names,
            axes=_axes(table, group),
        )
        ranks, refused = (
            _ranks(items, _texts(table, "answer"))
            if answers
            else (_whole(table, "rank", 1, RANK, gaps=True), 0)
        )
        _check_winners(items, ranks, table.source)
        keep = np.asarray([self.strata in s for s in stratum])
        if not keep.any():
            raise DataError(
                f"{table.source}: no stratum holds {self.strata!r}. There are: "
                f"{', '.join(jobs_of(items)[:8])}."
            )
        items, ranks = with_top(items, (ranks == 1) * 1.0).at(keep), ranks[keep]
        runs, numbers = items.count("_run"), items.codes("_run")
        # Runs in which nobody came first are counted, and are no rates.
        items = items.at(np.bincount(numbers, weights=items["_top"])[numbers] > 0)
        unread = runs - items.count("_run") - refused
        known = np.asarray([g.lower() not in UNKNOWN for g in items["group"]], bool)
        if not known.any():
            raise DataError(
                f"{table.source}: nobody of a known group was ranked in {runs} runs. Accepted: "
                "rank 1 for the best candidate of a run, and a group for every candidate."
            )
        items = items.at(known)
        rates = Rates.of(items, seed=self.seed)
        return FileItems(
            Ranking.model_validate({}),
            items.having(facts={"scores": record(rates.rows), "trust": [RESUMES]}).regarding(
                replace(items.about, rates=rates)
            ),
            self.rankings,
            {"refused": refused, "unread": unread, "about_an_unknown_group": int((~known).sum())},
            {"unnamed": int(np.isnan(ranks).sum()), "runs": runs},
        )

    def compared(self, file: FileItems) -> list[Row]:
        """Judge nothing: the contract has rates, which are judged with the file."""
        return []

    def result(self, rows: list[Row], file: FileItems) -> RankingResult:
        items, rates = file.items, file.items.about.rates
        unknown = file.lost["about_an_unknown_group"]
        strata = [
            StratumRow(
                name,
                part.count("_run"),
                part.count("group"),
                min(r.ratio for r in rates.rows if r.stratum == name),
                rates.floors[name].smallest,
                rates.floors[name].chance(FIFTHS),
            )
            for name in jobs_of(items)
            for part in [items.at(items.where(job=name))]
        ]
        law = self.table == "ll144"
        return RankingResult(
            rates=rates.rows,
            position=position_rows(items),
            unnamed=file.counts["unnamed"],
            unknown=unknown,
            refused=file.lost["refused"],
            unread=file.lost["unread"],
            runs=file.counts["runs"],
            strata=strata,
            generalises_over="names" if are_named(items) else "runs",
            ll144=law_table(items, unknown, str(self.rankings)) if law else None,
            settings=self.only("strata", "table", "seed"),
        )


READERS = (RankingReader,)
