"""The family that moves word vectors: attract-repel and projections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field, field_serializer, field_validator, model_validator

from evenhand import __version__
from evenhand.errors import SpecError, unknown
from evenhand.mitigations import saved
from evenhand.mitigations.base import Fitted, Judgement, Mitigation, Note, quiet, spec_of
from evenhand.models.adapters.vectors import VectorModel
from evenhand.models.protocol import Model
from evenhand.models.vectors.files import VectorTable, write_words
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import defined, number
from evenhand.words.lexicons import WordSets, weat

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.runner.progress import Progress

AXES = {"gender": "kato_winobias", "race": "kato_weat3"}
HELD_OUT = {"gender": ("weat6", "weat7", "weat8"), "race": ("weat3", "weat4", "weat5")}
DIRECTIONS = ("reduce", "increase")
FACTS = "evenhand-vectors.json"


class VectorMitigation(Mitigation):
    """Vectors of the words of an association test moved towards, or away from, each other."""

    name: ClassVar[str] = "vectors"
    kinds: ClassVar[tuple[str, ...]] = ("vectors",)
    exports: ClassVar[bool] = True
    methods: ClassVar[Mapping[str, str]] = {
        "attract-repel": "Mrksic et al. 2017; Kato & Miyao 2024",
        "hard-projection": "Bolukbasi et al. 2016",
        "soft-projection": "Dev & Phillips 2019",
    }
    cards: ClassVar[tuple[MetricCard, ...]] = (
        MetricCard(
            "association_change", "change of association",
            "in cosines, mean over words; below 0: nearer to no association",
        ),
    )  # fmt: skip

    method: str = "attract-repel"
    axis: str = Field("gender", description="gender or race: which test is trained on.")
    sets: str | WordSets | None = Field(
        None, description="A test or a file of word lists; default: by axis."
    )
    direction: str = Field("reduce", description="reduce or increase.")
    alpha: float | None = Field(
        None, description="Share of the change, 0 to 1; default: where the test reads zero."
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
            raise SpecError(f"--alpha '{shown}': accepted is a share from 0 to 1.")
        return share

    @model_validator(mode="after")
    def _can_work(self) -> VectorMitigation:
        if self.direction not in DIRECTIONS:
            raise SpecError(unknown("direction", self.direction, DIRECTIONS, where="--direction"))
        if self.neighbours < 0:
            raise SpecError(f"--neighbours '{self.neighbours}': accepted is 0 or more.")
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

    def fit(
        self, model: Model, *, texts: Sequence[str] | None = None, note: Note = quiet
    ) -> Fitted:
        from evenhand.mitigations.vectors.fit import mitigate

        self.require_kind(model)
        assert isinstance(model, VectorModel)
        moved = mitigate(model.table, self, note)
        return FittedVectors(self, model, moved.facts, moved.vectors)

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        """What is saved are vectors like any others, which need no base."""
        from evenhand.models.loading.resolver import resolve

        return resolve(str(folder))

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations.vectors import chart

        return {"tests": chart.tests}


class MovedVectors(VectorModel):
    """Vectors in memory, made from others."""

    def __init__(self, table: VectorTable, origin: str, name: str) -> None:
        self.name, self.source, self.table = name, "", table
        state = hashlib.sha256(f"vectors-moved|{origin}|".encode())
        state.update(np.ascontiguousarray(table.matrix).data)
        self._fingerprint = state.hexdigest()


@dataclass(frozen=True)
class FittedVectors(Fitted):
    """The moved vectors."""

    settings: VectorMitigation
    vectors: VectorTable

    def applied(self, model: Model) -> Model:
        return MovedVectors(self.vectors, model.fingerprint, self.title)

    def save(self, folder: str | Path) -> None:
        place = Path(folder)
        saved.empty(place)
        table = self.vectors
        np.save(place / "vectors.npy", np.asarray(table.matrix, np.float32), allow_pickle=False)
        write_words(place / "words.parquet", table.words.to_pylist())
        facts = {"format": 1, "evenhand": __version__, "source": spec_of(self.base), **self.facts}
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        (place / FACTS).write_text(text + "\n", encoding="utf-8")

    def export(self, path: Path) -> Mapping[str, Any]:
        """Plain text, as other tools read vectors."""
        from evenhand.train.words import write_vectors

        write_vectors(path, self.vectors.words.to_pylist(), self.vectors.matrix)
        return {"export": str(path)}

    def judged(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Judgement:
        from evenhand.mitigations.vectors.fit import paired_changes

        assert isinstance(before, VectorModel)
        assert isinstance(after, VectorModel)
        changes = paired_changes(before.table, after.table, self.settings)
        rows = [
            {**change, **{f"{k}_before": v for k, v in one.items() if k != "test"},
             **{f"{k}_after": v for k, v in two.items() if k != "test"}}
            for change, one, two in zip(changes, self.facts["before"], self.facts["after"])
        ]  # fmt: skip
        return Judgement(
            findings=[self._finding(row) for row in rows],
            tables={"tests": rows},
            buys=self._buys(rows),
            costs=self._costs(),
            sure=(
                "The first test is the one trained on; the others say how far that reaches.",
                "Whether behaviour changes has to be measured where the vectors are used.",
            ),
        )

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        label = self.settings.label
        return Finding(
            id=f"{label}/{row['test']}", probe=label, metric="association_change",
            value=row["change"], low=row["low"], high=row["high"], p=row["p"], q=row["q"],
            n=row["n"], attribute=row["test"], model=self.base.name,
            detected=bool(row["q"] <= 0.05) if defined(row["q"]) else None,
            sentence=f"{row['test']}: {_sizes(row)}.", units="words",
            reason="" if defined(row["change"]) else "fewer than two words have a vector",
            method="the same words before and after; sign flips and bootstrap over words",
        )  # fmt: skip

    def _buys(self, rows: Sequence[Mapping[str, Any]]) -> str:
        first = rows[0]
        if not defined(first["q"]):
            return f"Not shown: {first['test']} could not be measured."
        if self.settings.direction == "increase":
            return f"No, it was asked to raise it. {first['test']}: {_sizes(first)}."
        head = "Not shown" if not first["q"] <= 0.05 else "Yes" if first["change"] < 0 else "No"
        return f"{head}. {first['test']}: {_sizes(first)}."

    def _costs(self) -> tuple[str, ...]:
        kept = self.facts["neighbours_kept"]
        out = [f"{self.facts['touched']} vectors moved, {self.facts['amount']:.0%} of the way."]
        if kept["sample"]:
            out.append(
                f"{kept['sample']} sampled words that were not moved keep {kept['all']:.1%} of "
                f"their ten nearest words ({kept['untouched']:.1%} of those not moved either)."
            )
        return tuple(out)


def _sizes(row: Mapping[str, Any]) -> str:
    """The effect size before and after; the statistic where it has none."""
    for key, name in (("effect_size", "effect size d"), ("statistic", "WEAT statistic")):
        values = [row.get(f"{key}_{stage}") for stage in ("before", "after")]
        if all(defined(v) for v in values):
            return f"{name} {number(values[0])} before, {number(values[1])} after"
    return str(row.get("reason_after") or row.get("reason_before") or "not defined")
