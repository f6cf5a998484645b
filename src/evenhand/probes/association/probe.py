"""Association tests on vectors: WEAT and RNSB, from any model that can embed a word or sentence.

With `templates`, words are embedded inside plain sentences (SEAT, May et al. 2019). A word's
vector is then the mean of its sentences' unit vectors, and the test is over words: sentences of
one word are not independent.

The verdict generalises over target and attribute words (`probes.shared.word_tests`); the exact
permutation p is told as one for these words. It is the verdict in `as_published` only, which also
counts every sentence as SEAT does, and is too small for both reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, InstanceOf, field_validator, model_validator

from evenhand.charts.builders import NEARER, Ranked, sets_of
from evenhand.compare.items import Items
from evenhand.compare.rows import Row, Test
from evenhand.errors import SpecError
from evenhand.metrics.association import unit_rows
from evenhand.models.adapters.vectors import VectorModel
from evenhand.models.objects import as_model
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.probes.association.score import (
    IDEAL,
    Missing,
    VectorTests,
    choose_tests,
    pool,
    table_of,
)
from evenhand.probes.base import Way
from evenhand.probes.reading import FileItems, ItemsReader, Names, Result, Seed, Shown, number, span
from evenhand.probes.shared.word_tests import (
    DRAWS,
    EFFECT_SIZE,
    METHOD,
    OVER,
    SETS,
    WordTests,
    lexicons_of,
    word_finding,
    words_of,
)
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.words.lexicons import WordSets
from evenhand.words.packs import load_pack, pack_tests, pack_words, part_names

BLEACHED = ("This is {}.", "That is {}.", "There is {}.", "Here is {}.")
"""Sentences that say next to nothing about the word in them."""
WEAT = tuple(f"weat{k}" for k in range(1, 11))
LEAST_POOL = 100
"""Words that random attribute sets are drawn from, at least."""


CARDS = (EFFECT_SIZE,)
CHARTS = {
    "tests": Ranked(
        "Word association tests",
        "effect size d (from −2 to 2)",
        f"{NEARER} Method checks are about flowers and weapons: they show that the test sees what "
        "everybody agrees on.",
        sets_of,
        value="effect_size",
        low="effect_size_low",
        high="effect_size_high",
    ),
}


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
    hidden: ClassVar[tuple[str, ...]] = ("words_used", "words_missing", "coverage", "others")

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

    def gather(self, way: Way) -> Items:
        tests = self.word_sets()
        first = tests[0]
        example = (
            f"{first.name}: {first.x[0]}, ... v {first.y[0]}, ... | {first.a[0]}, {first.b[0]}"
        )
        return Items({"test": [t.name for t in tests]}, about=tests, example=example)

    def ask(self, items: Items, way: Way) -> Embed:
        return Embed(self._texts(self._words(items.about)))

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        tests, vectors = items.about, answers.matrix("vector")
        listed, terms = words_of(tests), self._words(tests)
        if self.templates and self.as_published:
            terms, tests = self._texts(terms), [self._of_sentences(test) for test in tests]
        elif self.templates:
            vectors = _means(vectors, len(self.sentences))
        known = ~np.isnan(vectors).any(axis=1)
        prepared = VectorTests(
            table_of([t for t, k in zip(terms, known) if k], vectors[known]),
            tests,
            self.raw_norms,
            self.max_missing,
            self.missing,
            self.samples,
            way.seed,
            multiword=False,
            placebos=0 if self.as_published else DRAWS,
            around=tuple(self._around()) if self.language else (),
            as_published=self.as_published,
        )
        of_tests = np.isin(terms, words_of(tests))
        facts = {"words": len(listed), "words_known": int((known & of_tests).sum())}
        if self.templates:
            facts["sentences"] = len(listed) * len(self.sentences)
        columns = {"word": terms, "known": known, "placebo": ~of_tests}
        return Items(columns, about=prepared, facts=facts)

    def declare(self, items: Items) -> Iterator[Test]:
        place = "sentences/" if self.templates else ""
        for test in items.about.declare():
            yield replace(test, place=f"{place}{test.place}")

    def finding(self, row: Row) -> Finding:
        published, test = self.as_published, row.test.about
        return word_finding(
            row,
            self.name,
            units="words",
            over=() if published else OVER,
            coverage=row.n / sum(len(getattr(test, key)) for key in SETS),
            method=self._method(row["p_method"], f"{test.x_label} and {test.y_label}"),
            as_published=published,
            control=test.social == "none",
            details={
                "p_words": row["p_two_sided"],
                "percentile": row["percentile"],
                "rnsb": row["rnsb"],
                "rnsb_kl": row["rnsb_kl"],
                "partitions": row["n_partitions"],
                "missing": row["words_missing"],
            },
        )

    def _method(self, kind: str | None, groups: str) -> str:
        count = f"{len(self.sentences)} sentences"
        if not self.as_published:
            return f"{METHOD} ({count} each)" if self.templates else METHOD
        units = f"sentences ({count} a word)" if self.templates else "words"
        return f"{kind} permutation of {groups} {units}, two-sided: for these words"

    def _around(self) -> list[str]:
        """Words to draw random attribute sets from."""
        return pack_words(load_pack(self.language)) if self.language else pool()

    def _words(self, tests: Sequence[WordSets]) -> list[str]:
        """Words of the tests, then enough others to draw random attribute sets from."""
        if self.as_published:
            return words_of(tests)
        wanted = max(LEAST_POOL, 4 * max(len(test.a) + len(test.b) for test in tests))
        wide = self._around()
        return list(dict.fromkeys([*words_of(tests), *wide[:: max(1, len(wide) // wanted)]]))

    def _texts(self, words: Sequence[str]) -> list[str]:
        """What is embedded: the words, or every word in every sentence."""
        if not self.templates:
            return list(words)
        return [text.replace("{}", word) for word in words for text in self.sentences]

    def _of_sentences(self, test: WordSets) -> WordSets:
        x, y, a, b = (tuple(self._texts(getattr(test, key))) for key in SETS)
        return replace(test, x=x, y=y, a=a, b=b)


def _means(vectors: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Mean of the unit vectors of each word's sentences."""
    parts = unit_rows(vectors).reshape(-1, width, vectors.shape[1])
    return np.asarray(parts.mean(axis=1), np.float64)


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
    tests: Sequence[Row]
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        read = self.vectors
        rows = [
            [
                row["test"],
                number(row["effect_size"], "+.3f"),
                span(row["effect_size_low"], row["effect_size_high"], "+.2f"),
                number(row.p, ".2g"),
                number(row.q, ".2g"),
                number(row["percentile"], ".0f"),
                number(row["p_two_sided"], ".2g"),
                number(row["rnsb"], "+.3f"),
                f"{len(row['words_used'])}/{sum(p['listed'] for p in row['coverage'].values())}",
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
                yield Shown(f"{row['test']}: {row.reason}")
            others = row.get("others", {})
            for name in [n for n in others if n in IDEAL]:
                value = others[name]
                parts = value if isinstance(value, dict) else {"all words": value}
                text = ", ".join(f"{part} {number(v, '+.4f')}" for part, v in parts.items())
                sides = " v ".join(others["groups"])
                yield Shown(f"{row['test']}  {name}: {text}  ({sides})")


class AssociationReader(ItemsReader):
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

    def items(self) -> FileItems:
        table = self.vectors
        if not isinstance(table, VectorTable):
            table = open_vectors(resolve_vectors(table), encoding=self.encoding)
        tests, around = self._tests()
        prepared = VectorTests(table, tests, **self._asked(), also=self.also, around=around)
        used = {(one.test.name, word) for one in prepared.covered for word in one.used}
        words = [(t.name, key, word) for t in tests for key in SETS for word in getattr(t, key)]
        columns = dict(zip(("test", "set", "word"), map(list, zip(*words))))
        known = [(test, word) in used for test, _, word in words]
        lost = len(words) - len(used)
        trust = [f"{lost:,} of {len(words):,} words have no vector."] if lost else []
        items = Items({**columns, "known": known}, about=prepared, facts={"trust": trust})
        named = {"tests": tuple(t.name for t in tests)}
        probe = Association.model_validate(named | self.only("language"))
        return FileItems(probe, items, Path(table.source))

    def result(self, rows: list[Row], file: FileItems) -> AssociationResult:
        prepared, table = file.items.about, file.items.about.vectors
        facts = {"placebos": prepared.placebos, "multiword": prepared.multiword}
        read = VectorsRead(table.source, len(table), table.dimensions)
        return AssociationResult(read, rows, self._asked() | facts)

    def _asked(self) -> dict[str, Any]:
        return self.only("raw_norms", "max_missing", "missing", "samples", "seed")

    def _tests(self) -> tuple[list[WordSets], tuple[str, ...]]:
        """The tests meant, and the words that random attribute sets are drawn from."""
        if not self.language:
            return choose_tests(self.tests), ()
        pack = load_pack(self.language)
        named = self.tests.split(",") if isinstance(self.tests, str) else ()
        chosen = [name.strip() for name in named if name.strip() != "all"]
        return pack_tests(pack, chosen), tuple(pack_words(pack))


READERS = (AssociationReader,)
