"""CEAT on an encoder: word associations over many contexts of each word.

Deviates: the vector is that of the context window (mean of its token vectors), not of the word's
own pieces inside it, which keeps the probe to requests that every encoder answers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.errors import DataError
from evenhand.probes.association.score import choose_tests
from evenhand.probes.base import Asker, Measured, Preview
from evenhand.probes.ceat.cards import CARDS
from evenhand.probes.ceat.measure import SETS, CeatRow, find_contexts, read_lines, score_test
from evenhand.probes.shared.reach import short_sets
from evenhand.probes.shared.word_effects import METHOD, OVER, placebos
from evenhand.probes.shared.word_tests import WordTests, lexicons_of, tested
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import with_q
from evenhand.strict import record
from evenhand.words.lexicons import WordSets


class Ceat(WordTests):
    """Do words of a group, in their contexts, lie nearer to one attribute than to another?

    Args:
        data: a text corpus, one passage per line, in which the words are looked up.
        tests: packaged tests such as weat6, or a JSON or TOML file of word lists.
        window: words kept to each side (the paper: 9).
        contexts: at most this many contexts per word.
        draws: effect sizes combined.
    """

    name: ClassVar[str] = "ceat"
    title: ClassVar[str] = "Do a group's words, in context, lie nearer to one attribute?"
    paper: ClassVar[str] = "Guo and Caliskan 2021 (CEAT)"
    detects: ClassVar[str] = "contexts in which groups' words lie nearer to one attribute"
    bound: ClassVar[str] = "the occurrences drawn of each word of its tests"
    cards: ClassVar = CARDS

    data: str = ""
    tests: tuple[str, ...] = ("weat6", "weat7", "weat8")
    window: int = Field(9, ge=0)
    contexts: int = Field(50, ge=1)
    draws: int = Field(1_000, ge=10)
    max_missing: float = Field(0.2, ge=0, le=1)

    def word_sets(self) -> list[WordSets]:
        return choose_tests(self.tests[0] if len(self.tests) == 1 else self.tests)

    def found(self, tests: list[WordSets]) -> dict[str, list[str]]:
        lines = read_lines(find_data(self.data, "CEAT (a text corpus, one passage per line)"))
        words = dict.fromkeys(w for t in tests for key in SETS for w in getattr(t, key))
        there = find_contexts(list(words), lines, window=self.window, most=self.contexts)
        if not any(there.values()):
            raise DataError(
                f"{self.data}: none of the {len(words)} words occurs in the text. Case counts; "
                "give a larger corpus with: --data FILE"
            )
        return there

    def lexicons(self) -> list[str]:
        return lexicons_of(self.tests)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        tests = self.word_sets()
        texts = _texts(self.found(tests))
        return Preview(len(tests), Embed(texts), texts[0], self.limits())

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        if self.as_published:
            return ()
        sizes = ((t.name, [len(getattr(t, key)) for key in "xyab"]) for t in self.word_sets())
        return short_sets(sizes, self.rate)

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        tests = self.word_sets()
        there = self.found(tests)
        texts = _texts(there)
        made = ask(Embed(texts), self.name).matrix("vector")
        known = dict(zip(texts, made))
        vectors = {
            w: [known[t] for t in rows if np.isfinite(known[t]).all()] for w, rows in there.items()
        }
        rows = [
            score_test(
                t,
                vectors,
                max_missing=self.max_missing,
                draws=self.draws,
                as_published=self.as_published,
                seed=seed,
                family=len(tests),
                rate=self.rate,
            )
            for t in tests
        ]
        rows = with_q(rows, [row.p for row in rows])
        flat = [{k: v for k, v in r.items() if k != "words_missing"} for r in record(rows)]
        items = pa.table(
            {
                "word": [w for w, row in there.items() for _ in row],
                "context": [t for row in there.values() for t in row],
            }
        )
        absent = sorted(w for w, row in there.items() if not row)
        summary = {"tests": len(rows), "contexts": len(texts), "words_without_context": absent}
        claims = [self.finding(r, t) for r, t in zip(rows, tests)]
        tables = {"tests": pa.Table.from_pylist(flat)}
        return Measured(claims, items, tables, summary, placebos(rows))

    def finding(self, row: CeatRow, test: WordSets) -> Finding:
        """What is said of one test."""
        published = self.as_published
        return tested(
            row,
            "words for",
            n=row.n,
            head=f"{row.test} in context",
            id=f"ceat/{row.test}",
            metric="combined_effect_size",
            units="words",
            over=() if published else OVER,
            method="random effects over draws" + ("" if published else f"; {METHOD}"),
            as_published=published,
            control=test.social == "none",
            social=test.social,
        )


def _texts(there: dict[str, list[str]]) -> list[str]:
    return list(dict.fromkeys(t for row in there.values() for t in row))
