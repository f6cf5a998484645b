"""Implicit associations from scores: to whom do words and tasks of either kind go?

    gap = mean share of the stigmatised group over bad words - the same over good words

of the association test (to whom does a word go?) and of the decision test (who takes a task?). A
liking for a name or a group is in both kinds, and cancels. Words are a sample of such words, pairs
of terms, from five on, of such terms; the words of a decision meet in topics, which are its sample.

The publication's D = sn / (sn + sp + 0.01) + dp / (dn + dp + 0.01) - 1, with counts of (n)egative
and (p)ositive words given to the (s)tigmatised and the (d)efault group, stands beside it.
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
from evenhand.probes.implicit.answers import AnswersReader, published_d
from evenhand.probes.implicit.link import LinkReader
from evenhand.probes.implicit.material import SIDES, TESTS, Stereotype, read_material
from evenhand.probes.reading import Claims, Input, Reader, Result, Shown, listed
from evenhand.stats.clustered_means import STEADY, Cells, halves, with_q
from evenhand.stats.estimate import NAN, Estimate, within
from evenhand.stats.mixed import Design, Factor
from evenhand.strict import INLINE, record
from evenhand.words.reading_answers import read_answer

Floats = npt.NDArray[np.float64]
TERMS = 5
"""Pairs of terms from which on they are a sample of such."""
READ = ("read", "refused", "unread", "unasked")


@dataclass(frozen=True)
class GapRow:
    """One stereotype in one test: share of the stigmatised group, bad words less good ones."""

    stereotype: str
    test: str
    found: Estimate = field(metadata=INLINE)
    share_bad: float
    share_good: float
    d_published: float
    n: int
    n_missing: int
    n_words: int
    n_pairs: int
    q: float = NAN

    @property
    def place(self) -> str:
        """The end of its finding's id."""
        return f"{self.stereotype.replace('/', '-').replace(' ', '-')}/{self.test}"


@dataclass(frozen=True)
class Given:
    """Shares that went to the stigmatised group, one per question (both orders); NaN: none.

    `topic` is the word itself in the association test, both words in the decision test.
    """

    share: Floats
    stereotype: Sequence[str]
    test: Sequence[str]
    side: Sequence[str]
    word: Sequence[str]
    topic: Sequence[str]
    pair: Sequence[str]

    def rows(self, *, rate: float = 0.05) -> list[GapRow]:
        """Every stereotype and test; q over all of them."""
        parts = sorted(set(zip(self.stereotype, self.test)))
        made = [self._row(*part, family=len(parts), rate=rate) for part in parts]
        return with_q(made, [row.found.p for row in made])

    @property
    def _bad(self) -> npt.NDArray[np.bool_]:
        return np.asarray([side == SIDES[0] for side in self.side], bool)

    def _within(self, names: Sequence[str]) -> list[str]:
        """Names as their stereotype has them: the same word of another is another."""
        return [f"{s}\t{name}" for s, name in zip(self.stereotype, names)]

    def at(self, stereotype: str, test: str) -> npt.NDArray[np.intp]:
        """The questions of a stereotype in a test."""
        return np.flatnonzero(
            [(s, t) == (stereotype, test) for s, t in zip(self.stereotype, self.test)]
        )

    def over_terms(self, stereotype: str) -> bool:
        """Whether the pairs of terms are a sample of such."""
        return len({p for p, s in zip(self.pair, self.stereotype) if s == stereotype}) >= TERMS

    def _row(self, stereotype: str, test: str, **how: Any) -> GapRow:
        here = self.at(stereotype, test)
        known = here[np.isfinite(self.share[here])]
        bad = self._bad[known]
        shares = self.share[known]
        levels = [float(shares[b].mean()) if b.any() else NAN for b in (bad, ~bad)]
        counts = [(p.sum(), (1 - p).sum()) for p in (shares[bad], shares[~bad])]
        return GapRow(
            stereotype,
            test,
            self.estimate(known, **how),
            levels[0],
            levels[1],
            d_published=published_d(counts[0][0], counts[1][0], counts[0][1], counts[1][1]),
            n=len(known),
            n_missing=len(here) - len(known),
            n_words=len({*_of(self.word, here)}),
            n_pairs=len({*_of(self.pair, here)}),
        )

    def estimate(self, at: npt.NDArray[np.intp], **how: Any) -> Estimate:
        """Bad less good of some questions, all of one stereotype and test."""
        bad = self._bad[at]
        topics = [_of(self.topic, at[b]) for b in (bad, ~bad)]
        units = min(len(set(t)) for t in topics)
        if units < 2:
            why = "fewer than two words of a kind were answered: no interval, no test"
            return Estimate(NAN, units=units, reason=why)
        signs = np.where(bad, 0.5, -0.5)
        topic = _codes(_of(self.topic, at))
        pair = _codes(_of(self.pair, at))
        if set(topics[0]) & set(topics[1]):  # both kinds in a topic: it has a lean of its own
            factors = [Factor(topic), Factor(topic, signs)]
        elif topic.max() == len(at) - 1:  # every word once: Welch's t, of two samples of words
            found = Cells.of(self.share[at], topic, bad).estimate(np.array([-1.0, 1.0]), **how)
            return replace(found, units=units, detectable=within(found.detectable, 1.0))
        else:  # words of one kind may differ more among themselves than those of the other
            factors = [
                Factor(topic, bad.astype(np.float64)),
                Factor(topic, (~bad).astype(np.float64)),
            ]
        if pair.max() > 0:
            factors.append(Factor(pair))
        if self.over_terms(self.stereotype[int(at[0])]):
            factors.append(Factor(pair, signs))
        fixed = np.stack([bad, ~bad], axis=1).astype(np.float64)
        found = Design(factors, fixed, [1.0, -1.0]).estimate(self.share[at], **how)
        return replace(found, units=units, detectable=within(found.detectable, 1.0))

    def placebos(self, seed: int) -> Placebo:
        """Random halves of the words, what their kind, stereotype and terms share taken out."""
        tests = sorted(set(self.test))
        found = []
        for test in tests:
            at = np.flatnonzero([t == test for t in self.test])
            left = self.share[at].copy()
            for names in (self.pair, self.side):
                codes = _codes(_of(self._within(names), at))
                left -= _means(left, codes)[codes]
            words = _of(self._within(self.topic), at)
            found.append(halves(left, words, seed=seed, splits=STEADY // len(tests) + 1))
        return Placebo.of("random halves of the words", found)


def _of(names: Sequence[str], at: npt.NDArray[np.intp]) -> list[str]:
    return [names[i] for i in at.tolist()]


def _codes(names: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.asarray(np.unique(names, return_inverse=True)[1], np.int64)


def _means(values: Floats, codes: npt.NDArray[np.int64]) -> Floats:
    known = np.isfinite(values)
    total = np.bincount(codes[known], values[known], codes.max(initial=0) + 1)
    count = np.bincount(codes[known], minlength=len(total))
    return np.asarray(total / np.maximum(count, 1), np.float64)


def given_items(items: pa.Table) -> Given:
    """The items of a run, a row for each question."""
    names = ("stereotype", "test", "side", "word", "topic", "pair")
    share = items.column("share").to_numpy(zero_copy_only=False)
    return Given(np.asarray(share, np.float64), *(items.column(n).to_pylist() for n in names))


@dataclass(frozen=True, kw_only=True)
class ImplicitResult(Result):
    """Gaps by stereotype and test, and what became of the answers."""

    measure: ClassVar[str] = "implicit"

    gaps: Sequence[GapRow]
    answers: Mapping[str, int]
    placebo: Placebo
    n: int

    def shown(self) -> Iterator[Shown]:
        keys = (
            "stereotype",
            "test",
            "value",
            "low",
            "high",
            "p",
            "q",
            "share_bad",
            "share_good",
            "d_published",
            "n",
            "n_missing",
        )
        title = f"Implicit associations: {self.n} rows; share of the stigmatised group, bad minus "
        yield listed(title + "good", self.gaps, keys)
        yield listed("Answers", [self.answers], READ)


class ImplicitReader(Reader):
    """Reads shares or free answers."""

    name = "implicit"
    help = """Implicit associations from scores or answers: to whom do words or tasks go?

    One row per question: stereotype, side (bad or good), word, and either score (probability that
    it goes to the stigmatised group) or answer (free text) with default, stigma (the two terms).
    Optional: test (association or decision), topic (what both words of a decision share), pair.
    """
    positional = ("table",)

    table: Input

    def read(self) -> ImplicitResult:
        needed = ("stereotype", "side", "word")
        texts = ("test", "topic", "pair", "default", "stigma", "answer")
        table = read_table(self.table, text=(*needed, *texts))
        table.require(needed)
        sides = list(table.labels("side"))
        for row, side in enumerate(sides, 1):
            if side not in SIDES:
                raise DataError(
                    f"{table.source}, row {row}, column side: {side!r}. Accepted: bad (the "
                    "stereotype ties the word to the stigmatised group) or good."
                )
        share, told = _read(table) if table.has("answer") else _scored(table)
        words = list(table.labels("word"))
        pair = [f"{a} / {b}" for a, b in zip(table.texts("default", ""), table.texts("stigma", ""))]
        given = Given(
            share,
            list(table.labels("stereotype")),
            table.texts("test", TESTS[0]),
            sides,
            words,
            list(table.labels("topic")) if table.has("topic") else words,
            list(table.labels("pair")) if table.has("pair") else pair,
        )
        result = ImplicitResult(
            gaps=given.rows(), answers=told, placebo=given.placebos(0), n=table.n_rows
        )
        return result.telling(lambda: self._claims(given, result, table))

    def _claims(self, given: Given, result: ImplicitResult, table: Table) -> Claims:
        from evenhand.probes.implicit.findings import gap_finding
        from evenhand.probes.implicit.probe import Implicit

        probe = Implicit.model_validate({})
        known = {s.name: s for s in read_material(probe.lexicon, "", (), None).stereotypes}
        terms = table.texts("default", ""), table.texts("stigma", "")
        findings = [
            gap_finding(row, known.get(row.stereotype) or _own(row.stereotype, given, terms), given)
            for row in result.gaps
        ]
        columns = ("stereotype", "test", "side", "word", "topic", "pair", "share")
        items = {"question": given.word, **{n: getattr(given, n) for n in columns}}
        told = record(result.gaps)
        found = Measured(
            findings,
            pa.table(items),
            {"gaps": pa.Table.from_pylist(told)},
            {"gaps": told},
            (result.placebo,),
        )
        lost = {k: n for k, n in result.answers.items() if k != "read"}
        return Claims.of(probe, self, table.source, found, **lost)


def _own(name: str, given: Given, terms: tuple[list[str], list[str]]) -> Stereotype:
    """A stereotype of a table: its only terms are its groups."""
    here = [k for k, s in enumerate(given.stereotype) if s == name]
    default, stigma = ({side[k] for k in here} - {""} for side in terms)
    first = min(stigma) if len(stigma) == 1 else "the stigmatised group"
    second = min(default) if len(default) == 1 else "the default group"
    return Stereotype(
        name, first, second, f"the bad side of {name}", f"the good side of {name}", (), ((), ())
    )


def _scored(table: Table) -> tuple[Floats, dict[str, int]]:
    table.require(("score",))
    share = table.numbers("score")
    wrong = np.flatnonzero((share < 0) | (share > 1))
    if len(wrong):
        raise DataError(
            f"{table.source}, row {wrong[0] + 1}, column score: {share[wrong[0]]:g}. Accepted: the "
            "probability that it goes to the stigmatised group, 0 to 1; empty where there is none."
        )
    known = int(np.isfinite(share).sum())
    return share, {"read": known, "refused": 0, "unread": 0, "unasked": len(share) - known}


def _read(table: Table) -> tuple[Floats, dict[str, int]]:
    """Free answers: 1 the stigmatised group, 0 the default one, NaN where none is taken."""
    share, told = np.full(table.n_rows, np.nan), dict.fromkeys(READ, 0)
    options = zip(table.labels("default"), table.labels("stigma"))
    for row, (text, both) in enumerate(zip(table.columns["answer"].to_pylist(), options)):
        if not text:
            told["unasked"] += 1
            continue
        found = read_answer(str(text), both)
        told[{"named": "read", "declined": "refused"}.get(found.kind, "unread")] += 1
        if found.option >= 0:
            share[row] = float(found.option)
    return share, told


READERS = (ImplicitReader, LinkReader, AnswersReader)
