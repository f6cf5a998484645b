"""Matched guises from scores: is the answer worse when the same thing is said in the dialect?

    gap(text, question) = P(worse answer | dialect) - P(worse answer | standard)

A kind of question (traits, jobs, decisions) is about its mean gap over texts and questions, both of
which are samples of such, and over features of the dialect where there are five or more; a single
question is about texts and features. What a model thinks of a text's content, of a question, or of
an answer's place is in both guises, and cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.matched_guise.material import GUISES, Kind, Question
from evenhand.probes.matched_guise.ratios import RatioReader
from evenhand.probes.reading import Claims, Input, Reader, Result, Shown, listed
from evenhand.stats.clustered_means import STEADY, halves, with_q
from evenhand.stats.estimate import NAN, Estimate, within
from evenhand.stats.mixed import Design, Factor
from evenhand.strict import INLINE, record
from evenhand.words.reading_answers import read_answer

Floats = npt.NDArray[np.float64]
FEATURES = 5
"""Features of the dialect from which on they are a sample of such, as texts are."""
ALL = ""
"""In the place of a question: all of its kind."""
KIND = "questions"
MISSING = ("refused", "unread", "unasked")
WHAT = {"named": "read", "declined": "refused"}


@dataclass(frozen=True)
class GapRow:
    """Worse answers, dialect less standard: of a kind of question, or (`question`) of one."""

    kind: str
    question: str
    found: Estimate = field(metadata=INLINE)
    share_dialect: float
    share_standard: float
    n: int
    n_missing: int
    n_questions: int
    q: float = NAN


@dataclass(frozen=True)
class Answered:
    """Shares of the worse answer in both guises [rows, 2] by text and question; NaN: none."""

    shares: Floats
    unit: Sequence[str]
    feature: Sequence[str]
    kind: Sequence[str]
    question: Sequence[str]

    @property
    def gap(self) -> Floats:
        return np.asarray(self.shares[:, 0] - self.shares[:, 1], np.float64)

    @property
    def over_features(self) -> bool:
        return len(set(self.feature)) >= FEATURES

    def rows(self, single: Sequence[str] | None = None, *, rate: float = 0.05) -> list[GapRow]:
        """Every kind, and the single questions of the kinds named (of all by default)."""
        parts: dict[tuple[str, str], None] = {(kind, ALL): None for kind in self.kind}
        for kind, question in zip(self.kind, self.question):
            if (single is None or kind in single) and (kind, question) not in parts:
                parts[kind, question] = None
        made = [self._row(*part, family=len(parts), rate=rate) for part in sorted(parts)]
        return with_q(made, [row.found.p for row in made])

    def _row(self, kind: str, question: str, **how: Any) -> GapRow:
        here = np.asarray(
            [k == kind and question in (ALL, q) for k, q in zip(self.kind, self.question)]
        )
        at = np.flatnonzero(here & np.isfinite(self.gap))
        asked = {q for q, h in zip(self.question, here) if h}
        found = self.estimate(at, **how)
        levels = self.shares[at].mean(axis=0) if len(at) else (NAN, NAN)
        return GapRow(
            kind,
            question,
            found,
            float(levels[0]),
            float(levels[1]),
            len(at),
            int(here.sum()) - len(at),
            len(asked),
        )

    def estimate(self, at: npt.NDArray[np.intp], **how: Any) -> Estimate:
        """The mean gap of some rows over sampled texts, features and questions."""
        texts = len({self.unit[i] for i in at})
        value = float(self.gap[at].mean()) if len(at) else NAN
        if texts < 2:
            why = "no answer could be read" if not len(at) else "one text: no interval, no test"
            return Estimate(value, units=texts, reason=why)
        factors = [self.unit, *([self.feature] if self.over_features else []), self.question]
        coded = [np.unique([f[i] for i in at], return_inverse=True)[1] for f in factors]
        # A factor with a level for every row is what is left over anyway. Two or three questions
        # beside many texts often seem to differ less than they do, which `held` allows for.
        sampled = [Factor(codes) for codes in coded if 0 < codes.max() < len(at) - 1]
        found = Design(sampled or [Factor(coded[0])], held=True).estimate(self.gap[at], **how)
        return replace(found, units=texts, detectable=within(found.detectable, 1.0))

    def over_all(self, **how: Any) -> Estimate:
        """The mean gap of all rows."""
        return self.estimate(np.flatnonzero(np.isfinite(self.gap)), **how)

    def placebos(self, seed: int) -> Placebo:
        """Random halves of the texts against each other, for every kind of question."""
        kinds = sorted(set(self.kind))
        here = np.asarray(self.kind)
        found = (
            halves(
                np.where(here == kind, self.gap, np.nan),
                self.unit,
                seed=seed,
                splits=STEADY // len(kinds) + 1,
            )
            for kind in kinds
        )
        return Placebo.of("random halves of the texts", found)


def answered_items(items: pa.Table) -> Answered:
    """The items of a run, a row for each text and question."""
    shares = np.stack([np.asarray(items.column(f"worse_{guise}")) for guise in GUISES], axis=1)
    names = ("unit", "feature", "kind", "question")
    return Answered(shares, *(items.column(name).to_pylist() for name in names))


@dataclass(frozen=True, kw_only=True)
class GuiseResult(Result):
    """Gaps by kind and question, and what became of the answers in each guise."""

    measure: ClassVar[str] = "matched-guise"

    gaps: Sequence[GapRow]
    answers: Mapping[str, Mapping[str, int]]
    placebo: Placebo
    n: int

    def shown(self) -> Iterator[Shown]:
        keys = (
            "kind",
            "question",
            "value",
            "low",
            "high",
            "p",
            "q",
            "share_dialect",
            "share_standard",
            "n",
            "n_missing",
        )
        yield listed(
            f"Matched guises: {self.n} rows; worse answers, dialect minus standard", self.gaps, keys
        )
        told = [{"guise": guise, **counts} for guise, counts in self.answers.items()]
        yield listed("Answers", told, ("guise", "read", *MISSING))


class GuiseReader(Reader):
    """Reads shares or free answers."""

    name = "matched-guise"
    help = """Matched guises from scores or answers: is the answer worse in one guise?

    One row per text and question: text, and either score_dialect, score_standard (probability of
    the worse answer) or answer_dialect, answer_standard (free text) with worse, better (the two
    answers). Optional: question (else the worse answer), kind, feature (of the dialect).
    """
    positional = ("table",)

    table: Input

    def read(self) -> GuiseResult:
        texts = [f"answer_{guise}" for guise in GUISES]
        names = ("text", "worse", "better", "question", "kind", "feature")
        table = read_table(self.table, text=(*names, *texts))
        table.require(("text",))
        free = all(map(table.has, texts))
        shares, refused, counts = (_read if free else _scored)(table)
        question = "question" if table.has("question") else "worse"
        rows = Answered(
            shares,
            list(table.labels("text")),
            table.texts("feature", ""),
            table.texts("kind", KIND),
            table.texts(question, "question"),
        )
        several = len(set(rows.question)) > 1
        result = GuiseResult(
            gaps=rows.rows(None if several else ()),
            answers=counts,
            placebo=rows.placebos(0),
            n=table.n_rows,
        )
        return result.telling(
            lambda: self._claims(rows, replace(rows, shares=refused), result, table.source)
        )

    def _claims(
        self, rows: Answered, declined: Answered, result: GuiseResult, source: str
    ) -> Claims:
        from evenhand.probes.matched_guise.findings import gap_finding, refusal_findings
        from evenhand.probes.matched_guise.probe import MatchedGuise

        groups = ("the dialect", "the standard")
        kinds = {name: _kind(name, rows) for name in set(rows.kind)}
        findings = [gap_finding(row, kinds[row.kind], groups, rows) for row in result.gaps]
        findings += refusal_findings(declined, groups, declined.over_all(), len(result.gaps))
        names = ("unit", "feature", "kind", "question")
        items: dict[str, Any] = {n: getattr(rows, n) for n in names}
        items |= {"text": rows.unit, "worse": rows.question}
        for name, part in (("worse", rows), ("refused", declined)):
            items |= {f"{name}_{g}": part.shares[:, k] for k, g in enumerate(GUISES)}
        told = record(result.gaps)
        found = Measured(
            findings,
            pa.table(items),
            {"gaps": pa.Table.from_pylist(told)},
            {"gaps": told},
            (result.placebo,),
        )
        lost = {
            f"{what} ({guise})": counts[what]
            for guise, counts in result.answers.items()
            for what in MISSING
        }
        return Claims.of(MatchedGuise.model_validate({}), self, source, found, **lost)


def _kind(name: str, rows: Answered) -> Kind:
    """A kind of question of a table: questions are called as their column has them."""
    own = dict.fromkeys(q for k, q in zip(rows.kind, rows.question) if k == name)
    asked = tuple(Question(name, question, "", "{one}") for question in own)
    about = "a speaker" if name == KIND else name
    return Kind(name, about, "the worse answer", True, asked)


def _scored(table: Table) -> tuple[Floats, Floats, dict[str, dict[str, int]]]:
    names = [f"score_{guise}" for guise in GUISES]
    table.require(names)
    shares = np.stack([table.numbers(name) for name in names], axis=1)
    wrong = np.argwhere((shares < 0) | (shares > 1))
    if len(wrong):
        row, column = wrong[0]
        raise DataError(
            f"{table.source}, row {row + 1}, column {names[column]}: {shares[row, column]:g}. "
            "Accepted: the probability of the worse answer, 0 to 1; empty where there is none."
        )
    known = np.isfinite(shares).sum(axis=0)
    told = {
        guise: {"read": int(k), "refused": 0, "unread": 0, "unasked": table.n_rows - int(k)}
        for guise, k in zip(GUISES, known)
    }
    return shares, np.zeros(shares.shape), told


def _read(table: Table) -> tuple[Floats, Floats, dict[str, dict[str, int]]]:
    """Free answers: 1 worse, 0 better, NaN where none is taken; who declines; counted apart."""
    options = list(zip(table.labels("worse"), table.labels("better")))
    shares, refused = np.full((2, table.n_rows, 2), np.nan)
    told = {guise: dict.fromkeys(("read", *MISSING), 0) for guise in GUISES}
    for column, guise in enumerate(GUISES):
        answers = table.columns[f"answer_{guise}"].to_pylist()
        for row, (text, both) in enumerate(zip(answers, options)):
            if not text:
                told[guise]["unasked"] += 1
                continue
            found = read_answer(str(text), both)
            told[guise][WHAT.get(found.kind, "unread")] += 1
            refused[row, column] = found.kind == "declined"
            if found.option >= 0:
                shares[row, column] = 1.0 - found.option
    return shares, refused, told


READERS = (GuiseReader, RatioReader)
