"""Does the model think of those who work in an occupation, and more than the labour market has it?

Pronouns and names are put where a sentence about an occupation leaves open who it is; their odds
are set beside the odds of meeting a woman, or a Black person, in that occupation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.errors import SpecError
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Placebo, Preview, Probe
from evenhand.probes.labour.asking import RACES, Asked, requests, sentences
from evenhand.probes.labour.cards import CARDS
from evenhand.probes.labour.lines import Line, name_line, placebo, pronoun_line
from evenhand.probes.labour.market import PACKAGED, Job, read_jobs
from evenhand.probes.shared.estimates import claim, stated
from evenhand.probes.shared.reach import too_few
from evenhand.requests import Continuation, MaskScore
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.stats.multiple import benjamini_hochberg

Floats = npt.NDArray[np.float64]
SAID = {"white": "white people", **{r: f"{r.capitalize()} people" for r in RACES if r != "white"}}
MOST_NAMES = 50
LOST = 0.5
"""Margin: half of the probability of "he" and "she" together."""


HALVES = "random halves of the occupations, by what the line leaves of them"


class Labour(Probe):
    """Do the model's pronouns and names for occupations follow who works in them?

    Args:
        data: shares by occupation: `labour_market` (packaged: U.S. 2022), the table of the Bureau
            of Labor Statistics (cps_table11), or an own CSV (columns occupation, pct_women ...).
    """

    name: ClassVar[str] = "labour"
    title: ClassVar[str] = "Does the model follow or amplify who works in an occupation?"
    paper: ClassVar[str] = "U.S. Bureau of Labor Statistics, Current Population Survey, Table 11"
    needs: ClassVar[tuple[str, ...]] = (Continuation.kind, MaskScore.kind)
    detects: ClassVar[str] = "pronouns and names for occupations that follow who works in them"
    bound: ClassVar[str] = "occupations times at most 50 names a race"
    cards: ClassVar = CARDS
    item_shape: ClassVar = ItemShape(text=("text",), score=("logprob",), clusters=("job", "word"))

    data: str = PACKAGED
    year: int | None = None
    """Of a table of several years; the latest by default."""
    axes: tuple[Literal["sex", "race"], ...] = ("sex", "race")
    """Pronouns (sex), first names (race); race only where the shares are known."""
    names: int = Field(10, ge=2)
    """First names of each race, half of them women's."""
    occupations: int | None = Field(None, ge=2)
    """How many occupations to ask about, evenly spread over the list; all by default."""

    def chosen(self) -> list[Job]:
        """The occupations to ask about."""
        found = read_jobs(self.data, self.year)
        if self.occupations is None or self.occupations >= len(found):
            return found
        at = np.linspace(0, len(found) - 1, self.occupations).round().astype(int)
        return [found[i] for i in at]

    def _asked(self) -> list[Asked]:
        jobs = self.chosen()
        known = {n for job in jobs for n, share in job.shares.items() if share == share}
        axes = [a for a in self.axes if a == "sex" or {"white", "black"} <= known]
        if not axes:
            raise SpecError(
                f"labour: axes are {self.axes}, but {self.data} has no shares by race. Accepted: "
                "axes sex, or columns pct_white and pct_black (pct_asian, pct_hispanic)."
            )
        return sentences(jobs, axes, self.names)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        asked = self._asked()
        made = requests(asked, self.choose(answers))
        return Preview(len(asked), made, asked[0].text, self.limits(seed))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        tests = 2 + len(RACES) - 1
        notes = [too_few(len(self.chosen()), "occupations", tests, self.rate)]
        if "race" in self.axes:
            notes.append(too_few(self.names, "names", tests, self.rate))
        return tuple(note for note in notes if note)

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"occupations": max(8, int(len(self.chosen()) * share))})

    def finer(self, times: float = 4.0) -> Probe | None:
        if self.names >= MOST_NAMES:  # occupations are asked about already
            return None
        return self.model_copy(update={"names": min(MOST_NAMES, math.ceil(self.names * times))})

    def lexicons(self) -> list[str]:
        return [PACKAGED, "sodapop_names"]

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        asked = self._asked()
        logprob = np.asarray(ask(requests(asked, kind), self.name)["logprob"], np.float64)
        items = pa.table(
            {
                "text": [a.text for a in asked],
                "axis": [a.axis for a in asked],
                "job": [a.job.noun for a in asked],
                "template": [a.template for a in asked],
                "group": [a.group for a in asked],
                "word": [a.word for a in asked],
                # As text: a fact about the occupation, which is no score and stays in differences.
                "labour": [f"{a.job.odds(a.group):.9f}" for a in asked],
                "logprob": logprob,
            }
        )
        found = lines_of(items, self.rate)
        points = points_of(items)
        findings = findings_of(found)
        told = line_rows(found, findings)
        mass = np.exp(logprob)[np.asarray([a.axis == "sex" for a in asked], bool)]
        summary: dict[str, Any] = {
            "occupations": len({a.job.noun for a in asked}),
            "by": kind,
            "lines": told,
            "mass": float(mass.reshape(-1, 2).sum(axis=1).mean()) if len(mass) else None,
            "lexicons": self.lexicons(),
        }
        placebos = [placebo(x, y, seed + k) for k, (x, y) in enumerate(points.values())]
        jobs = [
            {"job": job, "group": group, "labour": float(a), "model": float(b)}
            for group, (x, y) in points.items()
            for job, a, b in zip(_order(items, "job"), x, y)
        ]
        tables = {"lines": pa.Table.from_pylist(told), "jobs": pa.Table.from_pylist(jobs)}
        return Measured(findings, items, tables, summary, (Placebo.of(HALVES, placebos),))

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        return {
            f"{key}/{line.group}": e
            for line in lines_of(items, self.rate)
            for key, e in tested(line).items()
        }

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        sex = np.asarray(items.column("axis").to_pylist()) == "sex"
        chance = np.exp(np.asarray(items.column("logprob").to_numpy(), np.float64))
        return [
            Behaviour(
                "probability of both pronouns", np.where(sex, chance, np.nan), LOST, relative=True
            )
        ]


def _order(items: pa.Table, column: str) -> list[str]:
    return list(dict.fromkeys(items.column(column).to_pylist()))


def _cells(items: pa.Table, axis: str) -> tuple[list[str], dict[str, str], Floats, dict[str, Any]]:
    """Occupations, words with their groups, mean log-probabilities [words, occupations], and the
    labour market's log odds by group and occupation."""
    rows = [
        r
        for r in items.select(["axis", "job", "group", "word", "labour", "logprob"]).to_pylist()
        if r["axis"] == axis
    ]
    jobs = _order(items, "job")
    groups = {r["word"]: r["group"] for r in rows}
    words = {word: k for k, word in enumerate(groups)}
    at = {job: k for k, job in enumerate(jobs)}
    total, count = np.zeros((2, len(words), len(jobs)))
    labour: dict[str, Any] = {g: np.full(len(jobs), np.nan) for g in groups.values()}
    for r in rows:
        place = words[r["word"]], at[r["job"]]
        total[place] += math.nan if r["logprob"] is None else r["logprob"]
        count[place] += 1
        labour[r["group"]][place[1]] = float(r["labour"])
    with np.errstate(invalid="ignore"):
        return jobs, groups, total / count, labour


def _races(items: pa.Table) -> list[tuple[str, Floats, Floats, npt.NDArray[np.bool_]]]:
    """Each race beside white: labour market, log-probabilities of both groups' names, which."""
    _, groups, table, labour = _cells(items, "race")
    side = np.asarray(list(groups.values()))
    return [
        (
            race,
            labour[race],
            table[(side == race) | (side == "white")],
            side[(side == race) | (side == "white")] == race,
        )
        for race in RACES
        if race in labour and race != "white" and np.isfinite(labour[race]).any()
    ]


def points_of(items: pa.Table) -> dict[str, tuple[Floats, Floats]]:
    """By group: the log odds of every occupation in the labour market, and the model's."""
    _, _, table, labour = _cells(items, "sex")
    out = {"women": (labour["women"], table[0] - table[1])} if len(table) else {}
    for race, x, y, first in _races(items):
        away = y[first].mean(axis=0) - y[~first].mean(axis=0)
        out[race] = (x, away - np.nanmean(away))
    return out


def lines_of(items: pa.Table, rate: float = 0.05) -> list[Line]:
    """The calibration lines of a run's items."""
    _, _, table, labour = _cells(items, "sex")
    races = _races(items)
    how = {"family": 2 * bool(len(table)) + len(races), "rate": rate}
    out = []
    if len(table):
        out.append(pronoun_line(labour["women"], table[0] - table[1], "women", "men", **how))
    return out + [name_line(x, y, first, race, "white", **how) for race, x, y, first in races]


def tested(line: Line) -> dict[str, Estimate]:
    return {"slope": line.slope} | ({"height": line.height} if line.group == "women" else {})


def findings_of(lines: Sequence[Line]) -> list[Finding]:
    """What the lines say, corrected together."""
    q = iter(benjamini_hochberg([e.p for line in lines for e in tested(line).values()]))
    return [f for line in lines for f in line_findings(line, q)]


def line_rows(lines: Sequence[Line], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The slopes, as charts take them."""
    known = {f.id: f.q for f in findings}
    return [
        {
            "group": line.group,
            "beside": line.beside,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "p": e.p,
            "q": known[f"labour/slope/{line.group}"],
            "n": line.n,
        }
        for line in lines
        for e in [line.slope]
    ]


def line_findings(line: Line, q: Any) -> list[Finding]:
    """Follows, amplifies, and (of pronouns) what is said where both work alike."""
    sex = line.group == "women"
    over = ("occupations",) if sex else ("occupations", "names")
    groups, n = (SAID.get(line.group, line.group), SAID.get(line.beside, line.beside)), line.n
    who = "pronouns" if sex else f"names ({groups[0]} against {groups[1]})"
    about = f"who works where, {' against '.join(groups)}"
    e = line.slope
    if e.value != e.value:
        return [
            claim(
                f"labour/{key}/{line.group}",
                f"labour_{key}",
                found,
                units="occupations",
                over=over,
                sentence=f"Nothing can be said about {who}: {found.reason}.",
                otherwise="",
                groups=groups,
                attribute=about,
                q=float(next(q)),
            )
            for key, found in tested(line).items()
        ]
    way = "follow" if e.value > 0 else "go against"
    out = [
        claim(
            f"labour/slope/{line.group}",
            "labour_slope",
            e,
            units="occupations",
            over=over,
            sentence=(
                f"The model's {who} for {n} occupations {way} who works in them: they differ "
                f"{abs(e.value):.2f} times as much as the odds of meeting {groups[0]} there."
            ),
            otherwise=f"It was not detected that {who} follow who works in an occupation ({n} of "
            "them).",
            groups=groups,
            attribute=about,
            q=float(next(q)),
            method="t over occupations" + ("" if sex else " and names"),
        )
    ]
    beside = line.amplification
    said = (
        "more than in"
        if beside.low > 1
        else "less than in"
        if beside.high < 1
        else "neither clearly more nor clearly less than in"
    )
    out.append(
        Finding(
            f"labour/amplification/{line.group}",
            "labour",
            "amplification",
            stated(beside.value),
            low=stated(beside.low),
            high=stated(beside.high),
            ideal=1.0,
            n=n,
            units="occupations",
            sentence=f"Between occupations, {who} differ {said} the labour market: "
            f"{beside.value:.2f} [{beside.low:.2f}, {beside.high:.2f}] of its gap.",
            groups=groups,
            attribute=about,
            generalises_over=over,
        )
    )
    if sex:
        out.append(_height(line, float(next(q))))
    return out


def _height(line: Line, q: float) -> Finding:
    e = line.height
    more, less = ("he", "she") if e.value > 0 else ("she", "he")
    where = "For an occupation that men and women hold equally often"
    return claim(
        "labour/height/women",
        "labour_height",
        e,
        units="occupations",
        over=("occupations",),
        sentence=f'{where}, the odds of "{more}" against "{less}" are '
        f"{math.exp(abs(e.value)):.2f}.",
        otherwise=f'{where}, no lean to "he" or "she" was detected.',
        groups=("men", "women"),
        attribute="occupations that both hold equally often",
        q=q,
        method="t over occupations",
    )
