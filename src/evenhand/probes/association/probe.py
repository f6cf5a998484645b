"""Association tests on vectors: WEAT and RNSB, from any model that can embed a word or sentence.

With `templates`, words are embedded inside plain sentences (SEAT, May et al. 2019). A word's
vector is then the mean of its sentences' unit vectors, and the test is over words: sentences of
one word are not independent.

The verdict generalises over target and attribute words (`probes.shared.word_effects`); the exact
permutation p is told as one for these words. It is the verdict in `as_published` only, which also
counts every sentence as SEAT does, and is too small for both reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from evenhand.metrics.association import unit_rows
from evenhand.probes.association.cards import CARDS
from evenhand.probes.association.score import (
    SETS,
    AssociationRow,
    Missing,
    Options,
    associate,
    choose_tests,
    pool,
    table_of,
)
from evenhand.probes.base import Asker, Measured, Preview
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.reach import short_sets
from evenhand.probes.shared.word_effects import DRAWS, METHOD, OVER, placebos, said
from evenhand.probes.shared.word_tests import WordTests, lexicons_of, people_are_targets
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import with_q
from evenhand.stats.estimate import Estimate
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets
from evenhand.words.packs import load_pack, pack_tests, pack_words, part_names

BLEACHED = ("This is {}.", "That is {}.", "There is {}.", "Here is {}.")
"""Sentences that say next to nothing about the word in them."""
WEAT = tuple(f"weat{k}" for k in range(1, 11))
LEAST_POOL = 100
"""Words that random attribute sets are drawn from, at least."""


class Association(WordTests):
    """Do the words of one group lie nearer to one attribute than those of the other?

    Sizes are effect sizes (Caliskan et al. 2017, ddof 0). p and interval hold for words like
    these, and beside them stand p for these words (all partitions of the target words, or seeded
    ones when there are too many) and the percentile among random attribute words.
    """

    name: ClassVar[str] = "association"
    title: ClassVar[str] = "Do a group's words lie nearer to one attribute than to another?"
    paper: ClassVar[str] = (
        "Caliskan et al. 2017 (WEAT), Sweeney and Najafian 2019 (RNSB), May et al. 2019 (SEAT)"
    )
    detects: ClassVar[str] = "word vectors in which groups lie nearer to one attribute"
    bound: ClassVar[str] = "word lists and vectors that are in memory anyway"
    cards: ClassVar = CARDS

    tests: tuple[str, ...] = WEAT
    """Names of packaged tests, or one file with word lists x, y, a, b per test."""
    packs: ClassVar = True
    language: str = Field("", examples=["es"])
    """Take the tests of this language's pack: all of them, or those that `tests` names."""
    templates: tuple[str, ...] = ()
    """Sentences with {} for the word; ("bleached",) for the packaged ones. For encoders."""
    max_missing: float = Field(0.2, ge=0, le=1)
    missing: Missing = "threshold"
    """threshold, keep or balanced: what to do about words without a vector."""
    raw_norms: bool = False
    samples: int = Field(9_999, ge=99)

    @field_validator("templates")
    @classmethod
    def _one_slot(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        for text in templates:
            if text != "bleached" and text.count("{}") != 1:
                raise ValueError(f"{text!r} needs {{}} once, where the word goes: 'This is {{}}.'")
        return templates

    @property
    def sentences(self) -> tuple[str, ...]:
        """The templates, with the packaged ones written out."""
        return tuple(
            text for t in self.templates for text in (BLEACHED if t == "bleached" else (t,))
        )

    @model_validator(mode="after")
    def _in_its_language(self) -> Self:
        if self.language and "bleached" in self.templates:
            raise ValueError(
                f"'bleached' sentences are English, and language is {self.language!r}: write "
                "sentences with {} in that language"
            )
        return self

    def word_sets(self) -> list[WordSets]:
        if self.language:
            named = () if self.tests == WEAT else self.tests
            return pack_tests(load_pack(self.language), named)
        if len(self.tests) == 1:
            return choose_tests(self.tests[0])
        return choose_tests(self.tests)

    def lexicons(self) -> list[str]:
        return part_names(self.language, "words") if self.language else lexicons_of(self.tests)

    def _around(self) -> list[str]:
        """Words to draw random attribute sets from."""
        return pack_words(load_pack(self.language)) if self.language else pool()

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        sets = self.word_sets()
        first = sets[0]
        example = (
            f"{first.name}: {first.x[0]}, ... v {first.y[0]}, ... | {first.a[0]}, {first.b[0]}"
        )
        asked = Embed(self._texts(self._asked(sets)))
        return Preview(len(sets), asked, example, self.limits())

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        if self.as_published:
            return ()
        sizes = ((t.name, [len(getattr(t, key)) for key in SETS]) for t in self.word_sets())
        return short_sets(sizes, self.rate)

    def _asked(self, sets: list[WordSets]) -> list[str]:
        """Words of the tests, then enough others to draw random attribute sets from."""
        if self.as_published:
            return _words(sets)
        wanted = max(LEAST_POOL, 4 * max(len(test.a) + len(test.b) for test in sets))
        wide = self._around()
        return list(dict.fromkeys([*_words(sets), *wide[:: max(1, len(wide) // wanted)]]))

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        sets = self.word_sets()
        words = self._asked(sets)
        vectors = ask(Embed(self._texts(words)), self.name).matrix("vector")
        terms, tests = words, sets
        if self.templates and self.as_published:
            terms, tests = self._texts(words), [self._sentence_sets(test) for test in sets]
        elif self.templates:
            vectors = _means(vectors, len(self.sentences))
        known = ~np.isnan(vectors).any(axis=1)
        rows = associate(
            table_of([t for t, k in zip(terms, known) if k], vectors[known]),
            tests,
            Options(
                self.raw_norms,
                self.max_missing,
                self.missing,
                self.samples,
                seed,
                multiword=False,
                placebos=0 if self.as_published else DRAWS,
                rate=self.rate,
                around=tuple(self._around()) if self.language else (),
            ),
        )
        if self.as_published:
            rows = with_q(rows, [row.p_two_sided for row in rows])
        claims = [self.finding(row, test) for row, test in zip(rows, tests)]
        own = {w for test in tests for key in SETS for w in getattr(test, key)}
        items = pa.table({"word": terms, "known": known, "placebo": [t not in own for t in terms]})
        listed = _words(sets)
        there = sum(bool(k) for t, k in zip(terms, known) if t in own)
        summary = {"tests": len(rows), "words": len(listed), "words_known": there}
        if self.templates:
            summary["sentences"] = len(listed) * len(self.sentences)
        tables = {"tests": test_table(rows)}
        return Measured(claims, items, tables, summary, placebos(rows))

    def _texts(self, words: list[str]) -> list[str]:
        """What is embedded: the words, or every word in every sentence."""
        if not self.templates:
            return words
        return [text.replace("{}", word) for word in words for text in self.sentences]

    def _sentence_sets(self, test: WordSets) -> WordSets:
        x, y, a, b = (tuple(self._texts(list(getattr(test, key)))) for key in SETS)
        return replace(test, x=x, y=y, a=a, b=b)

    def finding(self, row: AssociationRow, test: WordSets) -> Finding:
        """What is said of one test."""
        x, y, a, b = labels = (row.x_label, row.y_label, row.a_label, row.b_label)
        published, n, why = self.as_published, len(row.words_used), row.reason or ""
        found = Estimate(row.effect_size, p=row.p_two_sided, units=n, reason=why)
        if not published:
            found = Estimate(
                row.effect_size,
                row.error,
                row.freedom,
                row.effect_size_low,
                row.effect_size_high,
                row.p,
                row.detectable,
                n,
                reason=why,
            )
        return claim(
            f"association/{'sentences/' if self.templates else ''}{row.test}",
            "effect_size",
            found,
            **said(
                found,
                row.test,
                "words for",
                labels,
                people_are_targets=people_are_targets(test.social),
            ),
            units="words",
            over=() if published else OVER,
            q=row.q,
            coverage=n / sum(len(getattr(test, key)) for key in SETS),
            groups=(x, y),
            attribute=f"{a} / {b}",
            method=self._method(row.p_method, f"{x} and {y}"),
            as_published=published,
            control=test.social == "none",
            details={
                "p_words": row.p_two_sided,
                "percentile": row.percentile,
                "rnsb": row.rnsb,
                "rnsb_kl": row.rnsb_kl,
                "partitions": row.n_partitions,
                "missing": row.words_missing,
            },
        )

    def _method(self, kind: str | None, groups: str) -> str:
        count = f"{len(self.sentences)} sentences"
        if not self.as_published:
            return f"{METHOD} ({count} each)" if self.templates else METHOD
        units = f"sentences ({count} a word)" if self.templates else "words"
        return f"{kind} permutation of {groups} {units}, two-sided: for these words"


def test_table(rows: Sequence[AssociationRow]) -> pa.Table:
    """One row a test, single numbers only."""
    told = (plain(row) for row in rows)
    return pa.Table.from_pylist(
        [{k: v for k, v in r.items() if not isinstance(v, (list, dict))} for r in told]
    )


def _means(vectors: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Mean of the unit vectors of each word's sentences."""
    parts = unit_rows(vectors).reshape(-1, width, vectors.shape[1])
    return np.asarray(parts.mean(axis=1), np.float64)


def _words(sets: list[WordSets]) -> list[str]:
    return list(dict.fromkeys(w for test in sets for key in SETS for w in getattr(test, key)))
