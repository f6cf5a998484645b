"""Association tests on vectors: WEAT and RNSB, from any model that can embed a word or sentence.

With `templates`, words are embedded inside plain sentences (SEAT, May et al. 2019). A word's
vector is then the mean of its sentences' unit vectors, and the test is over words: sentences of
one word are not independent. `as_published` counts every sentence, as SEAT does, and its p values
are too small for that reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator

from evenhand.metrics.association import unit_rows
from evenhand.probes.association.cards import CARDS
from evenhand.probes.association.score import (
    SETS,
    AssociationRow,
    Missing,
    Options,
    associate,
    choose_tests,
    table_of,
)
from evenhand.probes.base import Asker, Measured, Preview
from evenhand.probes.shared.word_tests import WordTests, lexicons_of
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets

BLEACHED = ("This is {}.", "That is {}.", "There is {}.", "Here is {}.")
"""Sentences that say next to nothing about the word in them."""


class Association(WordTests):
    """Do the words of one group lie nearer to one attribute than those of the other?

    Sizes are effect sizes (Caliskan et al. 2017, ddof 0), p values come from all partitions of
    the target words, or from seeded ones when there are too many.
    """

    name: ClassVar[str] = "association"
    title: ClassVar[str] = "Do a group's words lie nearer to one attribute than to another?"
    paper: ClassVar[str] = (
        "Caliskan et al. 2017 (WEAT), Sweeney and Najafian 2019 (RNSB), May et al. 2019 (SEAT)"
    )
    detects: ClassVar[str] = "word vectors in which groups lie nearer to one attribute"
    cards: ClassVar = CARDS

    tests: tuple[str, ...] = tuple(f"weat{k}" for k in range(1, 11))
    """Names of packaged tests, or one file with word lists x, y, a, b per test."""
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

    def word_sets(self) -> list[WordSets]:
        if len(self.tests) == 1:
            return choose_tests(self.tests[0])
        return choose_tests(self.tests)

    def lexicons(self) -> list[str]:
        return lexicons_of(self.tests)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        sets = self.word_sets()
        first = sets[0]
        example = (
            f"{first.name}: {first.x[0]}, ... v {first.y[0]}, ... | {first.a[0]}, {first.b[0]}"
        )
        return Preview(len(sets), Embed(self._texts(_words(sets))), example)

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        sets = self.word_sets()
        words = _words(sets)
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
                self.raw_norms, self.max_missing, self.missing, self.samples, seed, multiword=False
            ),
        )
        claims = [self._claim(row, test) for row, test in zip(rows, tests)]
        items = pa.table({"word": terms, "known": known})
        told = (plain(row) for row in rows)
        flat = [{k: v for k, v in r.items() if not isinstance(v, (list, dict))} for r in told]
        summary = {"tests": len(rows), "words": len(words), "words_known": int(known.sum())}
        if self.templates:
            summary["sentences"] = len(words) * len(self.sentences)
        return Measured(claims, items, {"tests": pa.Table.from_pylist(flat)}, summary)

    def _texts(self, words: list[str]) -> list[str]:
        """What is embedded: the words, or every word in every sentence."""
        if not self.templates:
            return words
        return [text.replace("{}", word) for word in words for text in self.sentences]

    def _sentence_sets(self, test: WordSets) -> WordSets:
        x, y, a, b = (tuple(self._texts(list(getattr(test, key)))) for key in SETS)
        return replace(test, x=x, y=y, a=a, b=b)

    def _claim(self, row: AssociationRow, test: WordSets) -> Finding:
        size = row.effect_size
        x, y, a, b = row.x_label, row.y_label, row.a_label, row.b_label
        near, far = (a, b) if not size < 0 else (b, a)
        sentence = (
            f"Words for {x} lie nearer to {near} than to {far}, compared with words for {y}."
            if size == size
            else f"{test.name} could not be computed."
        )
        listed = sum(len(getattr(test, key)) for key in SETS)
        return Finding(
            id=f"association/{'sentences/' if self.templates else ''}{row.test}",
            probe=self.name,
            metric="effect_size",
            value=size,
            low=row.effect_size_low,
            high=row.effect_size_high,
            p=row.p_two_sided,
            q=row.q,
            n=len(row.words_used),
            coverage=len(row.words_used) / listed,
            groups=(x, y),
            attribute=f"{a} / {b}",
            sentence=sentence,
            reason=row.reason or "",
            method=self._method(row.p_method, f"{x} and {y}"),
            as_published=self.as_published,
            control=test.social == "none",
            details={
                "rnsb": row.rnsb,
                "rnsb_kl": row.rnsb_kl,
                "partitions": row.n_partitions,
                "missing": row.words_missing,
            },
        )

    def _method(self, kind: str | None, groups: str) -> str:
        units = "words"
        if self.templates:
            count = f"{len(self.sentences)} sentences"
            units = f"sentences ({count} a word)" if self.as_published else f"words in {count} each"
        return f"{kind} permutation of {groups} {units}, two-sided"


def _means(vectors: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Mean of the unit vectors of each word's sentences."""
    parts = unit_rows(vectors).reshape(-1, width, vectors.shape[1])
    return np.asarray(parts.mean(axis=1), np.float64)


def _words(sets: list[WordSets]) -> list[str]:
    return list(dict.fromkeys(w for test in sets for key in SETS for w in getattr(test, key)))
