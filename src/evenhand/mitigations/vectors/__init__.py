"""The family that moves word vectors: attract-repel and projections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_serializer, field_validator, model_validator

from evenhand import __version__
from evenhand.arrays import save_array
from evenhand.audit.comparison.standing import standing
from evenhand.errors import SpecError, unknown
from evenhand.mitigations import saved
from evenhand.mitigations.base import (
    Fitted,
    Judgement,
    Measurements,
    Mitigation,
    Note,
    one_of,
    spec_of,
)
from evenhand.mitigations.changes import ChangeReport, decided
from evenhand.mitigations.proof import PROOF_CARDS, report_changes
from evenhand.mitigations.running import RATE
from evenhand.mitigations.vectors.attract_repel import DIRECTIONS
from evenhand.models.adapters.vectors import HeldVectors, VectorModel
from evenhand.models.loading.saved import MOVED
from evenhand.models.protocol import Model
from evenhand.models.vectors.files import VectorTable, write_words
from evenhand.probes.base import Behaviour
from evenhand.probes.shared.word_tests import lexicons_of
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.seals import digests, write_sealed
from evenhand.words.lexicons import WordSets, weat
from evenhand.writing import drafted

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.runner.progress import Progress

AXES = {"gender": "kato_winobias", "race": "kato_weat3"}
HELD_OUT = {"gender": ("weat6", "weat7", "weat8"), "race": ("weat3", "weat4", "weat5")}
NEIGHBOURS = 0.10
"""Margin: one of ten neighbours."""
STAGES = ("before", "after")
USES = {
    "similarity": "correlation of cosines with rated similarity",
    "analogies": "share of analogies answered",
}


class VectorMitigation(Mitigation):
    """Vectors of the words of an association test moved towards, or away from, each other."""

    name: ClassVar[str] = "vectors"
    kinds: ClassVar[tuple[str, ...]] = ("vectors",)
    exports: ClassVar[bool] = True
    methods: ClassVar[Mapping[str, str]] = {
        "attract-repel": "Mrkšić et al. 2017; Kato & Miyao 2024",
        "hard-projection": "Bolukbasi et al. 2016",
        "soft-projection": "Dev & Phillips 2019",
    }
    cards: ClassVar[tuple[MetricCard, ...]] = PROOF_CARDS

    method: str = "attract-repel"
    axis: str = Field("gender", description="gender or race: which test it is trained on.")
    sets: str | WordSets | None = Field(
        None, description="A test or a file of word lists; default: by axis."
    )
    direction: Annotated[str, one_of(DIRECTIONS)] = Field(
        "reduce", description="reduce or increase."
    )
    alpha: float | None = Field(
        None, description="Share of the change, 0 to 1; default: where the test reads zero."
    )
    move: Literal["test", "all"] = Field(
        "test",
        description="Projections: move the words of the test, or all words but those of the axis.",
    )
    similarity: Path | None = Field(
        None, description="Rated pairs (word1, word2, score): do cosines still follow people?"
    )
    analogies: Path | None = Field(
        None, description="Questions of four words a line: are they still answered?"
    )
    neighbours: int = Field(10, description="Nearest words added to each word of the sets.")
    device: str | None = Field(None, description="cpu, cuda, cuda:1.")

    @field_serializer("sets")
    def _named(self, sets: str | WordSets | None) -> str | None:
        return sets.name if isinstance(sets, WordSets) else sets

    @field_validator("alpha", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Any:
        try:
            share = None if value is None else float(value)
        except (TypeError, ValueError):
            share = float("nan")
        if share is not None and not 0 <= share <= 1:
            shown = value if share != share else share
            raise SpecError(f"--alpha '{shown}': accepted: a share from 0 to 1.")
        return share

    @model_validator(mode="after")
    def _can_work(self) -> VectorMitigation:
        if self.move == "all" and self.method == "attract-repel":
            raise SpecError(
                "--move 'all': attract-repel moves the words of its pairs. Accepted: test; or "
                "choose the method hard-projection or soft-projection"
            )
        if self.neighbours < 0:
            raise SpecError(f"--neighbours '{self.neighbours}': accepted: 0 or more.")
        _ = self.word_sets
        return self

    @cached_property
    def word_sets(self) -> WordSets:
        """The test that is trained on.

        >>> VectorMitigation(axis="gender").word_sets.name
        'kato_winobias'
        """
        from evenhand.probes.association.score import choose_tests

        if isinstance(self.sets, WordSets):
            return self.sets
        if self.sets is None:
            if self.axis not in AXES:
                hint = "Or name a test or a file of word lists: --sets weat7"
                raise SpecError(unknown("axis", self.axis, AXES, where="--axis", hint=hint))
            return weat(AXES[self.axis])
        chosen = choose_tests(self.sets)
        if len(chosen) != 1:
            names = ", ".join(test.name for test in chosen)
            raise SpecError(
                f"--sets {self.sets}: names {len(chosen)} tests ({names}). Accepted: one."
            )
        return chosen[0]

    @property
    def tests(self) -> list[WordSets]:
        """The test that is trained on, and those that are only measured."""
        held = () if self.sets is not None else HELD_OUT[self.axis]
        return [self.word_sets, *(weat(t) for t in held if t != self.word_sets.name)]

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        from evenhand.mitigations.vectors.fit import mitigate

        moved = mitigate(model.table, self, note)
        return FittedVectors(self, model, moved.facts, moved.vectors)

    def lexicons(self, kind: str) -> list[str]:
        return lexicons_of([test.name for test in self.tests])

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        """Load the saved vectors, which need no base."""
        return VectorModel.load(str(folder), folder.name)

    @classmethod
    def report(cls, measurements: Measurements) -> Judgement:
        return _report(measurements, cls.label)

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations import chart

        return {"tests": chart.tests, "changes": chart.changes, "stands": chart.stands}


@dataclass(frozen=True)
class FittedVectors(Fitted):
    """The moved vectors."""

    settings: VectorMitigation
    vectors: VectorTable

    def applied(self, model: Model) -> Model:
        return HeldVectors(self.vectors, self.title, model.fingerprint)

    def save(self, folder: str | Path) -> None:
        place = Path(folder)
        saved.check_free(place)
        table = self.vectors
        facts = {"format": 1, "evenhand": __version__, "source": spec_of(self.base), **self.facts}
        with drafted(place) as draft:
            save_array(draft / "vectors.npy", np.asarray(table.matrix, np.float32))
            write_words(draft / "words.parquet", table.words.to_pylist())
            write_sealed(draft / MOVED, facts, digests(draft))

    def export(self, path: Path) -> Mapping[str, Any]:
        """Write plain text, as other tools read vectors."""
        from evenhand.train.words import write_vectors

        write_vectors(path, self.vectors.words.to_pylist(), self.vectors.matrix)
        return {"export": str(path)}

    def measure(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Measurements:
        from evenhand.mitigations.vectors.fit import analogies, cosines, kept_shares, similarity

        assert isinstance(before, VectorModel)
        assert isinstance(after, VectorModel)
        settings, both = self.settings, (before.table, after.table)
        own, *others = settings.tests
        seen = {w for key in "xy" for w in self.facts["words"][key]}
        tests, numbers = [], {"kept": kept_shares(*both, seed=settings.seed)["all"]}
        for k, (test, left_out) in enumerate([(own, set()), *((t, seen) for t in others)]):
            sizes, tables = cosines(*both, test, left_out)
            tests.append({"test": test.name, "sizes": sizes})
            numbers |= {f"{k}.{name}": v for name, v in zip(("before", "after"), tables)}
        for name, measure, path in (
            ("similarity", similarity, settings.similarity),
            ("analogies", analogies, settings.analogies),
        ):
            if path is not None:
                numbers |= {
                    f"{name}.before": measure(both[0], path),
                    f"{name}.after": measure(both[1], path),
                }
        told = {name: self.facts[name] for name in ("before", "after", "touched", "amount")}
        facts = {"settings": settings.model_dump(mode="json"), "tests": tests, **told}
        return Measurements(self.base.name, facts, numbers)


def _report(measurements: Measurements, label: str) -> Judgement:
    from evenhand.mitigations.vectors.fit import POINTS, follow

    facts, numbers = measurements.facts, measurements.numbers
    made = [
        follow(
            t["test"],
            t["sizes"],
            [numbers[f"{k}.{n}"] for n in ("before", "after") if f"{k}.{n}" in numbers],
        )
        for k, t in enumerate(facts["tests"])
    ]
    tests, shares = decided(made[1:], RATE, (), ()), numbers["kept"]
    every = facts["settings"].get("move") == "all"
    which = "words" if every else "words which were not moved"
    what = f"share of the ten nearest words that {which} keep"
    one, two = (Behaviour(what, v, NEIGHBOURS) for v in (np.ones(len(shares)), shares))
    stands = []
    for name, said in USES.items():
        if f"{name}.before" in numbers:
            was, now = (Behaviour(said, numbers[f"{name}.{n}"], POINTS) for n in STAGES)
            stands.append(standing(was, now))
    reason = "" if tests else "only the words it was moved for were measured"
    found = ChangeReport(tuple(tests), (*stands, standing(one, two)), reason)
    trained = decided(made[:1], RATE, (), ())[0]
    told = report_changes(label, measurements.model, found)
    (claim,) = report_changes(label, measurements.model, ChangeReport((trained,))).findings
    raised = facts["settings"]["direction"] == "increase"
    asked = "It was asked to increase it. " if raised else ""
    moved = f"{facts['touched']} vectors moved, {100 * facts['amount']:.0f} % of the way."
    return replace(
        told,
        findings=[*told.findings, replace(claim, generalises_over=(), sentence=_own(claim))],
        tables={"tests": _rows(facts), **told.tables},
        buys=f"{found.headline} {asked}{_own(claim)}",
        costs=(moved, *told.costs),
        sure=(*told.sure, "Behaviour has to be measured where the vectors are used."),
        proof={**told.proof, "trained_on": trained.as_row()},
    )


def _rows(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every test with its numbers before and after."""
    return [
        {
            "test": one["test"],
            **{
                f"{k}_{stage}": v
                for stage, row in (("before", one), ("after", two))
                for k, v in row.items()
                if k != "test"
            },
        }
        for one, two in zip(facts["before"], facts["after"])
    ]


def _own(claim: Finding) -> str:
    """Say what became of the test that was trained on, which says nothing about other words."""
    return f"On the very words that it moved: {claim.sentence}"
