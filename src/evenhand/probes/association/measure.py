"""`evenhand measure association`: WEAT and RNSB of vectors in a file or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field, InstanceOf, field_validator

from evenhand.errors import SpecError
from evenhand.models.adapters.vectors import VectorModel
from evenhand.models.objects import as_model
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.probes.association.score import (
    SETS,
    AssociationRow,
    Missing,
    Options,
    associate,
    choose_tests,
)
from evenhand.probes.base import Measured
from evenhand.probes.reading import Claims, Names, Reader, Result, Seed, Shown, number, span
from evenhand.probes.shared.word_effects import placebos
from evenhand.words.lexicons import WordSets
from evenhand.words.packs import load_pack, pack_tests, pack_words


@dataclass(frozen=True)
class VectorsRead:
    """Which vectors were measured."""

    source: str
    n_words: int
    dimensions: int


@dataclass(frozen=True)
class AssociationResult(Result):
    """One row per test."""

    measure: ClassVar[str] = "association"

    vectors: VectorsRead
    tests: Sequence[AssociationRow]
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        read = self.vectors
        rows = [
            [
                row.test,
                number(row.effect_size, "+.3f"),
                span(row.effect_size_low, row.effect_size_high, "+.2f"),
                number(row.p, ".2g"),
                number(row.q, ".2g"),
                number(row.percentile, ".0f"),
                number(row.p_two_sided, ".2g"),
                number(row.rnsb, "+.3f"),
                f"{len(row.words_used)}/{sum(part.listed for part in row.coverage.values())}",
            ]
            for row in self.tests
        ]
        yield Shown(
            f"{read.source}: {read.n_words} words, {read.dimensions} dimensions",
            ["test", "d", "95 % interval", "p", "q", "rank", "p here", "RNSB", "words"],
            rows,
        )
        yield Shown(
            "d: effect size; p and interval hold for target and attribute words like these. rank: "
            "percentile of d among random attribute words. p here: for these words, by permutation."
        )
        for row in self.tests:
            if row.reason:
                yield Shown(f"{row.test}: {row.reason}")
            for name, value in (row.others or {}).items():
                if name not in ("groups", "ideal"):
                    parts = value if isinstance(value, dict) else {"all words": value}
                    said = ", ".join(f"{part} {number(v, '+.4f')}" for part, v in parts.items())
                    sides = " v ".join((row.others or {})["groups"])
                    yield Shown(f"{row.test}  {name}: {said}  ({sides})")


class AssociationReader(Reader):
    name = "association"
    help = "Associations of word vectors: WEAT and RNSB, with p over words and for these words."

    vectors: str | Path | InstanceOf[VectorTable] = Field(
        description="A vector file or folder, or glove-6b-50d."
    )
    tests: str | Path | tuple[str | InstanceOf[WordSets], ...] = Field(
        description="weat1,weat7 or a JSON or TOML file of word lists."
    )
    language: str = Field("", description="Tests of this language's pack (tests: names, or all).")
    raw_norms: bool = Field(False, description="RNSB on vectors as given.")
    max_missing: float = Field(0.2, ge=0, le=1, description="Share of words a set may lack.")
    missing: Missing = Field(
        "threshold", description="threshold, keep, or balanced (target sets of equal size)."
    )
    also: Names[Literal["rnd", "mac", "ect", "ripa"]] = Field(
        (), description="Further metrics: rnd,mac,ect,ripa."
    )
    samples: int = Field(9_999, ge=1, description="Random partitions for a test.")
    seed: Seed = 0
    encoding: str = Field("utf-8", description="Encoding of the words in the file.")

    @field_validator("vectors", mode="before")
    @classmethod
    def _held(cls, given: Any) -> Any:
        """Vectors in memory as a table: what can be audited can be measured."""
        if isinstance(given, str | Path | VectorTable):
            return given
        model = as_model(given)
        if not isinstance(model, VectorModel):
            raise SpecError(
                f"model {model.name!r} is of kind {model.kind!r}: expected word vectors."
            )
        return model.table

    def read(self) -> AssociationResult:
        table = self.vectors
        if not isinstance(table, VectorTable):
            table = open_vectors(resolve_vectors(table), encoding=self.encoding)
        asked = self.only("raw_norms", "max_missing", "missing", "samples", "seed")
        tests, around = self._tests()
        options = Options(**asked, also=self.also, around=around)
        rows = associate(table, tests, options)
        facts = {"placebos": options.placebos, "multiword": options.multiword}
        read = VectorsRead(table.source, len(table), table.dimensions)
        result = AssociationResult(read, rows, asked | facts)
        return result.telling(lambda: self._claims(rows, tests, table.source))

    def _tests(self) -> tuple[list[WordSets], tuple[str, ...]]:
        """The tests meant, and the words that random attribute sets are drawn from."""
        if not self.language:
            return choose_tests(self.tests), ()
        pack = load_pack(self.language)
        named = self.tests.split(",") if isinstance(self.tests, str) else ()
        chosen = [name.strip() for name in named if name.strip() != "all"]
        return pack_tests(pack, chosen), tuple(pack_words(pack))

    def _claims(
        self, rows: Sequence[AssociationRow], tests: Sequence[WordSets], source: str
    ) -> Claims:
        from evenhand.probes.association.probe import Association, test_table

        named = {"tests": tuple(t.name for t in tests)}
        probe = Association.model_validate(named | self.only("language"))
        words = [(t.name, key, word) for t in tests for key in SETS for word in getattr(t, key)]
        used = {(row.test, word) for row in rows for word in row.words_used}
        items = pa.table(
            {
                "test": [t for t, _, _ in words],
                "set": [k for _, k, _ in words],
                "word": [w for _, _, w in words],
                "known": [(t, w) in used for t, _, w in words],
            }
        )
        findings = [probe.finding(row, test) for row, test in zip(rows, tests)]
        lost = len(words) - len(used)
        told = [f"{lost:,} of {len(words):,} words have no vector."] if lost else []
        found = Measured(
            findings, items, {"tests": test_table(rows)}, {"trust": told}, placebos(rows)
        )
        return Claims.of(probe, self, source, found)


READERS = (AssociationReader,)
