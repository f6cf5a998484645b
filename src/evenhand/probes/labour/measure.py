"""`evenhand measure labour`: what a model said of occupations elsewhere, by who works in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.compare.answers import read_options
from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.labour.lines import Line, placebo, pronoun_line
from evenhand.probes.labour.market import LEAST, PACKAGED, Job, read_jobs
from evenhand.probes.reading import Claims, Input, Reader, Result, Shown, listed
from evenhand.stats.estimate import Estimate
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import INLINE
from evenhand.words.reading_answers import NONE

Floats = npt.NDArray[np.float64]
WORDS = ("she", "he")
SCORES = ("log_odds", "share", "answer")


@dataclass(frozen=True)
class LineRow:
    """One number of the calibration line, with its ideal."""

    metric: str
    found: Estimate = field(metadata=INLINE)
    q: float


@dataclass(frozen=True, kw_only=True)
class LabourResult(Result):
    """Slope, height and amplification; and what could not be used."""

    measure: ClassVar[str] = "labour"

    rows: Sequence[LineRow]
    occupations: int
    without_figures: int
    refused: int
    unread: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        title = (
            f"Who works where, and what was said about {self.occupations} occupations "
            f"({self.without_figures} without figures; {self.refused} answers declined, "
            f"{self.unread} could not be read)"
        )
        keys = ("metric", "value", "low", "high", "ideal", "p", "q", "units")
        yield listed(title, self.rows, keys)
        yield Shown("slope: 1 as in the labour market; height: log odds of “he” at equal shares.")


class LabourReader(Reader):
    name = "labour"
    help = """Does what was said about occupations follow, or amplify, who works in them?

    One row per occupation or question: occupation, and log_odds (of women), share (of women, 0 to
    1) or answer (free text with she or he); optional pct_women (else the packaged figures, U.S.).
    """
    positional = ("table",)

    table: Input
    data: str = Field(
        PACKAGED, description="Figures of your own: a CSV with occupation, pct_women."
    )

    def read(self) -> LabourResult:
        table = read_table(self.table, text=("occupation", "answer"), needed=("occupation",))
        names = list(table.labels("occupation"))
        jobs = sorted(set(names))
        y, refused, unread = _said(table, names, jobs)
        x = self._figures(table, names, jobs)
        known = int((np.isfinite(x) & np.isfinite(y)).sum())
        line = pronoun_line(x, y, "women", "men", family=2)
        result = LabourResult(
            rows=_rows(line),
            occupations=known,
            without_figures=int(np.isnan(x).sum()),
            refused=refused,
            unread=unread,
            settings=self.only("data"),
        )
        return result.telling(lambda: self._claims(line, jobs, (x, y), result, table.source))

    def _claims(
        self,
        line: Line,
        jobs: list[str],
        points: tuple[Floats, Floats],
        result: LabourResult,
        source: str,
    ) -> Claims:
        from evenhand.probes.labour.probe import HALVES, Labour, findings_of, line_rows

        findings = findings_of([line])
        told = line_rows([line], findings)
        shown = pa.table(
            {"job": jobs, "group": ["women"] * len(jobs), "labour": points[0], "model": points[1]}
        )
        found = Measured(
            findings,
            shown,
            {"lines": pa.Table.from_pylist(told), "jobs": shown},
            {"lines": told},
            (Placebo.of(HALVES, [placebo(*points, 0)]),),
        )
        return Claims.of(
            Labour.model_validate({}),
            self,
            source,
            found,
            refused=result.refused,
            unread=result.unread,
            about_an_occupation_without_figures=result.without_figures,
        )

    def _figures(self, table: Table, names: list[str], jobs: list[str]) -> Floats:
        if table.has("pct_women"):
            given = dict(zip(names, table.numbers("pct_women")))
            found = {n: Job(n, {"women": float(v)}) for n, v in given.items()}
        else:
            found = {job.noun: job for job in read_jobs(self.data)}
        none = Job("", {})
        return np.asarray(
            [found.get(job.lower(), found.get(job, none)).odds("women") for job in jobs]
        )


def _rows(line: Line) -> list[LineRow]:
    q = benjamini_hochberg([line.slope.p, line.height.p])
    rows = [LineRow("slope", line.slope, float(q[0])), LineRow("height", line.height, float(q[1]))]
    return [*rows, LineRow("amplification", line.amplification, float("nan"))]


def _said(table: Table, names: list[str], jobs: list[str]) -> tuple[Floats, int, int]:
    """Log odds of women by occupation; answers that declined or could not be read."""
    scored = next((name for name in SCORES if table.has(name)), "")
    if not scored:
        raise DataError(
            f"{table.source}: no column says what was said. Accepted: occupation and one of "
            "log_odds (of women against men), share (of women, 0 to 1), answer (free text)."
        )
    at = np.asarray([jobs.index(n) for n in names])
    if scored == "answer":
        answers = read_options(table.columns["answer"].to_pylist(), repeat(WORDS))
        count = np.zeros((2, len(jobs)))
        named = answers.options != NONE
        np.add.at(count, (answers.options[named], at[named]), 1)
        y = np.where(count.sum(axis=0) > 0, np.log((count[0] + 0.5) / (count[1] + 0.5)), np.nan)
        counts = answers.counts
        return y, counts["refused"], counts["unread"] + counts["unasked"]
    values = table.numbers(scored)
    if scored == "share":
        wrong = np.flatnonzero((values < 0) | (values > 1))
        if len(wrong):
            raise DataError(
                f"{table.source}, row {int(wrong[0]) + 1}, column share: {values[wrong[0]]:g}. "
                "Accepted: the share of women in what was said, from 0 to 1."
            )
        inside = np.clip(values, LEAST / 100, 1 - LEAST / 100)
        values = np.log(inside / (1 - inside))
    known = np.isfinite(values)
    n = np.bincount(at[known], minlength=len(jobs))
    total = np.bincount(at[known], weights=values[known], minlength=len(jobs))
    return np.where(n > 0, total / np.maximum(n, 1), np.nan), 0, int((~known).sum())


READERS = (LabourReader,)
