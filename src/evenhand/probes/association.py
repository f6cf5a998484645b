"""Association tests on word vectors: WEAT and RNSB, from any model that can embed a word."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.findings import NAN, Finding
from evenhand.lexicons import WordSets
from evenhand.measures.association import SETS, choose_tests, measure, table_of
from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.requests import Embed


class Association(Probe):
    """Do the words of one group lie nearer to one attribute than those of the other?

    Sizes are effect sizes (Caliskan et al. 2017, ddof 0), p values come from all partitions of
    the target words, or from seeded ones when there are too many.
    """

    name: ClassVar[str] = "association"
    title: ClassVar[str] = "Do a group's words lie nearer to one attribute than to another?"
    paper: ClassVar[str] = "Caliskan et al. 2017 (WEAT), Sweeney and Najafian 2019 (RNSB)"
    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)
    detects: ClassVar[str] = "word vectors in which groups lie nearer to one attribute"

    tests: tuple[str, ...] = tuple(f"weat{k}" for k in range(1, 11))
    """Names of packaged tests, or one file with word lists x, y, a, b per test."""
    max_missing: float = Field(0.2, ge=0, le=1)
    raw_norms: bool = False
    samples: int = Field(9_999, ge=99)

    def word_sets(self) -> list[WordSets]:
        if len(self.tests) == 1:
            return choose_tests(self.tests[0])
        return choose_tests(self.tests)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        sets = self.word_sets()
        first = sets[0]
        example = (
            f"{first.name}: {first.x[0]}, ... v {first.y[0]}, ... | {first.a[0]}, {first.b[0]}"
        )
        return Preview(len(sets), Embed(_words(sets)), example)

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        sets = self.word_sets()
        words = _words(sets)
        vectors = ask(Embed(words), self.name).matrix("vector")
        known = ~np.isnan(vectors).any(axis=1)
        table = table_of([w for w, k in zip(words, known) if k], vectors[known])
        result = measure(
            table,
            sets,
            raw_norms=self.raw_norms,
            max_missing=self.max_missing,
            samples=self.samples,
            seed=seed,
            multiword=False,
        )
        rows = result["tests"]
        claims = [self._claim(row, test) for row, test in zip(rows, sets)]
        items = pa.table({"word": words, "known": known})
        flat = [{k: v for k, v in row.items() if not isinstance(v, (list, dict))} for row in rows]
        summary = {"tests": len(rows), "words": len(words), "words_known": int(known.sum())}
        return Measured(claims, items, {"tests": pa.Table.from_pylist(flat)}, summary)

    def _claim(self, row: dict[str, Any], test: WordSets) -> Finding:
        size = NAN if row["effect_size"] is None else float(row["effect_size"])
        x, y, a, b = (row[f"{key}_label"] for key in SETS)
        near, far = (a, b) if not size < 0 else (b, a)
        sentence = (
            f"Words for {x} lie nearer to {near} than to {far}, compared with words for {y}."
            if size == size
            else f"{test.name} could not be computed."
        )
        listed = sum(len(getattr(test, key)) for key in SETS)
        return Finding(
            id=f"association/{row['test']}",
            probe=self.name,
            metric="effect_size",
            value=size,
            low=_number(row["effect_size_low"]),
            high=_number(row["effect_size_high"]),
            p=_number(row["p_two_sided"]),
            q=_number(row["q"]),
            n=len(row["words_used"]),
            coverage=len(row["words_used"]) / listed,
            groups=(x, y),
            attribute=f"{a} / {b}",
            sentence=sentence,
            reason=row["reason"] or "",
            method=f"{row['p_method']} permutation of {x} and {y} words, two-sided",
            as_published=self.as_published,
            details={
                "rnsb": row["rnsb"],
                "rnsb_kl": row["rnsb_kl"],
                "partitions": row["n_partitions"],
                "missing": row["words_missing"],
            },
        )


def _words(sets: list[WordSets]) -> list[str]:
    return list(dict.fromkeys(w for test in sets for key in SETS for w in getattr(test, key)))


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)
