"""SEAT on an encoder: do sentences about a group lie nearer to one attribute than another?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.probes.association.cards import CARDS
from evenhand.probes.base import Asker, Measured, Preview
from evenhand.probes.seat.measure import (
    SeatRow,
    SeatTest,
    read_tests,
    score_test,
    with_placebos,
)
from evenhand.probes.shared.reach import short_sets
from evenhand.probes.shared.word_effects import METHOD, OVER, placebos
from evenhand.probes.shared.word_tests import WordTests, social_side, tested
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import with_q
from evenhand.strict import record


class Seat(WordTests):
    """Do sentences about a group lie nearer to one attribute than to another?

    Args:
        data: SEAT's folder of tests, or one of its files.
        tests: names such as sent-weat6; by default all sentence tests of the folder.
        max_missing: the share of texts that a set may lack.
    """

    name: ClassVar[str] = "seat"
    title: ClassVar[str] = "Do sentences about a group lie nearer to one attribute than to another?"
    paper: ClassVar[str] = "May et al. 2019 (SEAT)"
    detects: ClassVar[str] = "sentence vectors in which groups lie nearer to one attribute"
    bound: ClassVar[str] = "the sentences of its tests"
    cards: ClassVar = CARDS

    data: str = ""
    tests: tuple[str, ...] = ()
    max_missing: float = Field(0.2, ge=0, le=1)
    samples: int = Field(9_999, ge=99)

    def chosen(self) -> list[SeatTest]:
        return read_tests(find_data(self.data, "SEAT (its folder of tests)"), self.tests)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.chosen()
        texts = _texts(found)
        return Preview(len(found), Embed(texts), texts[0], self.limits())

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        found = () if self.as_published else self.chosen()
        sentences = tuple(
            f"{t.name}: sentences whose words are not known, so there will be no verdict"
            for t in found
            if not t.by_word
        )
        sizes = ((t.name, [len(set(u)) for u in t.units.values()]) for t in found if t.by_word)
        return (*sentences, *short_sets(sizes, self.rate))

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        found = self.chosen()
        texts = _texts(found)
        rows_of = ask(Embed(texts), self.name).matrix("vector")
        known = np.isfinite(rows_of).all(axis=1)
        vectors = {t: v for t, v, k in zip(texts, rows_of, known) if k}
        rows = [
            score_test(
                t,
                vectors,
                max_missing=self.max_missing,
                as_published=self.as_published,
                samples=self.samples,
                seed=seed,
                family=len(found),
                rate=self.rate,
            )
            for t in found
        ]
        if not self.as_published:
            rows = with_placebos(rows, found, vectors, seed)
        rows = with_q(rows, [row.p for row in rows])
        flat = [{k: v for k, v in r.items() if not isinstance(v, dict)} for r in record(rows)]
        items = pa.table({"text": texts, "known": known})
        summary = {"tests": len(rows), "texts": len(texts), "texts_known": int(known.sum())}
        claims, tables = [self.finding(r) for r in rows], {"tests": pa.Table.from_pylist(flat)}
        return Measured(claims, items, tables, summary, placebos(rows))

    def finding(self, row: SeatRow) -> Finding:
        """What is said of one test."""
        words = not self.as_published and row.by_word
        return tested(
            row,
            "sentences about",
            n=sum((row.n_units or {}).values()) if words else row.n,
            head=row.test,
            id=f"seat/{row.test}",
            metric="effect_size",
            units="words" if words else "sentences",
            over=OVER if words else (),
            method=METHOD if words else "sentences permuted between targets",
            as_published=self.as_published,
            social=social_side(row.test),
        )


def _texts(tests: list[SeatTest]) -> list[str]:
    return list(dict.fromkeys(t for test in tests for texts in test.texts.values() for t in texts))
