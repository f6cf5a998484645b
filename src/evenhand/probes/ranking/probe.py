"""Which applicant is the best? Resumes dealt out to names at random, ranked by the model.

Every run shows one applicant of each group, in another order and with other resumes, and asks for
the best. Nothing but the name tells groups apart over the runs, so that groups that do not matter
are picked alike. Rates are of the model's probabilities (or shares of sampled answers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.models.choosing import (
    CHOICES,
    Choices,
    answered,
    as_asked,
    how,
    most_common_place,
    share_of,
)
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Preview, Probe
from evenhand.probes.ranking.asking import Ranked, make_runs, questions
from evenhand.probes.ranking.cards import CARDS
from evenhand.probes.ranking.findings import (
    Side,
    estimates,
    measured,
    said,
    selections,
    settled,
    sides,
    whole,
)
from evenhand.probes.ranking.jobs import PACKAGED, read_jobs
from evenhand.probes.ranking.rankings import Rankings
from evenhand.probes.ranking.rates import (
    PositionRow,
    RateRow,
    placebos,
    position_rows,
    rate_rows,
)
from evenhand.probes.shared.reach import too_few
from evenhand.requests import SAMPLED
from evenhand.runs.controls import Answering
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.strict import record
from evenhand.words.lexicons.people import names_of

Floats = npt.NDArray[np.float64]
GROUPS = (
    "african_american_female",
    "african_american_male",
    "asian_female",
    "asian_male",
    "european_american_female",
    "european_american_male",
    "hispanic_female",
    "hispanic_male",
)
TURNED, LOST = 0.10, 0.5


class Ranking(Probe):
    """Are applicants of some groups picked less often than others with the same resumes?

    Args:
        data: resumes: `resumes` (packaged), the folder of Bloomberg's audit, or an own CSV (columns
            job, resume) or JSON file.
    """

    name: ClassVar[str] = "ranking"
    title: ClassVar[str] = "Which applicant does the model call the best?"
    paper: ClassVar[str] = "Yin, Alba and Nicoletti 2024 (Bloomberg's resume-ranking audit)"
    needs: ClassVar[tuple[str, ...]] = CHOICES
    detects: ClassVar[str] = "applicants who are picked less often because of their names"
    bound: ClassVar[str] = "jobs times runs, a choice each"
    cards: ClassVar = CARDS
    item_shape: ClassVar = ItemShape(
        text=("job", "text"), score=("lead",), clusters=("name", "run")
    )

    data: str = PACKAGED
    groups: tuple[str, ...] = GROUPS
    """Groups of names: of the lexicons, unions such as `female`, or of `lexicon`."""
    names: int | None = Field(24, ge=2)
    """How many names of each group (the first ones); all when not given."""
    lexicon: str | None = None
    """A lexicon file of your own with further groups."""
    jobs: tuple[str, ...] = ()
    """Only these jobs; all by default."""
    runs: int = Field(24, ge=2)
    """How often each job is asked about, each time with different names."""
    shown: int | None = Field(None, ge=2)
    """Applicants of a run; one of every group when not given."""
    samples: int = Field(1, ge=1)
    """Answers of a run, where answers are sampled."""

    def made(self, seed: int) -> list[Ranked]:
        """The runs to ask for."""
        found = read_jobs(self.data)
        wanted = [job for job in found if not self.jobs or job.name in self.jobs]
        lost = set(self.jobs) - {job.name for job in found}
        if lost or not wanted:
            from evenhand.errors import SpecError, unknown

            raise SpecError(unknown("job", min(lost, default=""), [job.name for job in found]))
        people = names_of(self.groups, self.names, self.lexicon)
        named = [(term, group.name) for term, group in people]
        count = len({group for _, group in named})
        return make_runs(wanted, named, self.runs, self.shown or count, seed)

    @property
    def axes(self) -> dict[str, dict[str, str]]:
        """Race and gender of every group, as its lexicon has them."""
        people = names_of(self.groups, self.names, self.lexicon)
        return {group.name: dict(group.axis) for _, group in people}

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        made = self.made(seed)
        requests = as_asked(self.choose(answers), self._asked(made, seed))
        return Preview(len(made), requests, made[0].passage, self.limits(seed))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        made = self.made(seed)
        rows = _rankings(made, np.zeros(sum(len(r.candidates) for r in made)), self.axes)
        tests = len(list(sides(rows)))
        used = {(c.group, c.name) for run in made for c in run.candidates}
        least = min(sum(g == group for g, _ in used) for group in rows.groups)
        note = too_few(least, "names", tests, self.rate)
        return (note,) if note else ()

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"runs": max(8, int(self.runs * share))})

    def finer(self, times: float = 4.0) -> Probe | None:
        runs, names = (math.ceil(n * times) if n else n for n in (self.runs, self.names))
        return self.model_copy(update={"runs": runs, "names": names})

    def lexicons(self) -> list[str]:
        own = [self.lexicon] if self.lexicon else ["sodapop_names"]
        return [*own, *([PACKAGED] if self.data == PACKAGED else [])]

    def _asked(self, made: list[Ranked], seed: int) -> Any:
        return questions(made, samples=self.samples, seed=seed)

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        rung = how(ask.describe(), kind)
        made = self.made(seed)
        asked = self._asked(made, seed)
        sizes = [len(run.candidates) for run in made]
        given = answered(
            kind, ask(as_asked(kind, asked), self.name), sizes, lambda: asked, per_token=True
        )
        top = _shares(given.probabilities, np.repeat(np.arange(len(made)), sizes))
        whole_rows = _rankings(made, top, self.axes)
        lead = top / whole_rows.share - 1
        known = np.isfinite(top)
        rows = whole_rows.take(known)
        shown = max(sizes)
        resume = [c.resume for run in made for c in run.candidates]
        kept = [r for r, k in zip(resume, known) if k]
        clean = settled(lead[known], rows.stratum, list(rows.position), kept)
        found = measured(rows, lead=clean, rate=self.rate)
        rates, chance = rate_rows(rows, seed=seed, rate=self.rate)
        positions = position_rows(rows)
        first = float(np.mean([r.rate for r in positions if r.position == 1] or [np.nan]))
        claims = selections(rows, found, _example(made[0]) if made else {})
        tables = selection_tables(found, claims, rates, positions)
        summary = {
            "runs": len(made),
            "shown": shown,
            "shown_first": first,
            "rung": rung,
            "unanswered": int((~known).sum()) // shown,
            "sampled": rung in SAMPLED,
            "lexicons": self.lexicons(),
            **given.means(),
        }
        return Measured(
            [*claims, *whole(rates, chance, first, shown, len(made))],
            _items(made, whole_rows, lead, given, sizes),
            tables,
            summary,
            (placebos(rows, clean, seed),),
            answering=Answering(order_effect=_by_place(given, sizes)),
        )

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        return estimates(items, self.axes)

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        """Whether the first place decides, and how much of the answer goes to the applicants."""
        lead = np.asarray(items.column("lead").to_numpy(), np.float64)
        share = np.asarray(items.column("share").to_numpy(), np.float64)
        first = np.asarray(items.column("position").to_numpy()) == 1
        at = np.where(first, (lead + 1) * share, np.nan)
        mass = np.asarray(items.column("mass").to_numpy(), np.float64)
        found = [
            Behaviour(
                "share of answers for the applicant shown first", at, TURNED, float(np.mean(share))
            )
        ]
        if np.isfinite(mass).any():
            found.append(Behaviour("mass of the applicants' names", mass, LOST, relative=True))
        return found


def selection_tables(
    found: Sequence[tuple[Side, Estimate]],
    claims: Sequence[Finding],
    rates: Sequence[RateRow],
    positions: Sequence[PositionRow],
) -> dict[str, pa.Table]:
    """What the charts are drawn from."""
    told = [
        {
            "ratio_low" if k == "low" else "ratio_high" if k == "high" else k: v
            for k, v in r.items()
            if k not in ("value", "value_low", "value_high", "p", "q")
        }
        for r in record(rates)
    ]
    listed = [
        {
            "stratum": s.stratum,
            "axis": s.axis,
            "group": said(s.first),
            "beside": said(s.second),
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "p": e.p,
            "q": f.q,
            "n": e.units,
        }
        for (s, e), f in zip(found, claims)
    ]
    return {
        "selections": pa.Table.from_pylist(listed),
        "rates": pa.Table.from_pylist(told),
        "positions": pa.Table.from_pylist(record(positions)),
    }


def _by_place(given: Choices, sizes: list[int]) -> float | None:
    """Return the share of runs whose best applicant stands at the most frequent place."""
    if len(set(sizes)) != 1:
        return None
    return share_of(most_common_place(given.probabilities.reshape(-1, sizes[0])))


def _shares(chances: Floats, runs: npt.NDArray[np.int64]) -> Floats:
    """Probabilities divided by their sum in each run; NaN where nobody was named."""
    total = np.bincount(runs, weights=chances)[runs]
    out = np.full(len(chances), np.nan)
    return np.asarray(np.divide(chances, total, out=out, where=total > 0), np.float64)


def _rankings(made: list[Ranked], top: Floats, axes: dict[str, dict[str, str]]) -> Rankings:
    rows = [(run, k, c) for run in made for k, c in enumerate(run.candidates, start=1)]
    return Rankings(
        [run.job.name for run, _, _ in rows],
        [str(run.number) for run, _, _ in rows],
        [c.group for _, _, c in rows],
        np.asarray([k for _, k, _ in rows], np.int64),
        top,
        [c.name for _, _, c in rows],
        axes,
    )


def _example(run: Ranked) -> dict[str, str]:
    return {"job": run.job.name, "applicant": run.text(run.candidates[0])}


def _items(
    made: list[Ranked], rows: Rankings, lead: Floats, given: Choices, sizes: list[int]
) -> pa.Table:
    texts = [run.text(c) for run in made for c in run.candidates]
    per = {n: np.repeat(getattr(given, n), sizes) for n in ("mass", "refused", "unread")}
    return pa.table(
        {
            "job": rows.stratum,
            "run": rows.run,
            "position": rows.position,
            "name": rows.name,
            "group": rows.group,
            "resume": [c.resume for run in made for c in run.candidates],
            "text": texts,
            "share": rows.share,
            "lead": lead,
            **per,
        }
    )
