"""The family that edits hidden states: which settings it has, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator

from evenhand.mitigations.base import Fitted, Judgement, Measurements, Note, one_of
from evenhand.mitigations.erasing import CLASSIFIERS
from evenhand.mitigations.proof import PROOF_CARDS, AuditedMitigation
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard

if TYPE_CHECKING:
    from evenhand.charts.base import Builder


KINDS = ("masked", "encoder", "classifier", "span", "choice")
POOLS = ("first", "mean")


class HiddenMitigation(AuditedMitigation):
    """Maps on the states of chosen layers, fitted on contexts that differ in the group alone."""

    name: ClassVar[str] = "hidden"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    methods: ClassVar[Mapping[str, str]] = {
        "leace": "Belrose et al. 2023",
        "inlp": "Ravfogel et al. 2020",
        "sentence": "Liang et al. 2020 (SentenceDebias)",
    }
    only_for: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rounds": ("inlp",),
        "classifier": ("inlp",),
        "components": ("sentence",),
    }
    cards: ClassVar[tuple[MetricCard, ...]] = (
        MetricCard(
            "readable",
            "read from the states",
            "accuracy of a fresh linear classifier on held-out texts; the ideal is chance",
            low=0.0,
            high=1.0,
        ),
        *PROOF_CARDS,
    )

    method: str = "leace"
    axis: str = Field("gender", description="gender, religion, race, names:A,B or a file.")
    layers: tuple[str, ...] = Field(
        ("last",), description="last, layer.3, pooler, all, or module paths."
    )
    pool: Annotated[str | None, one_of(POOLS)] = Field(
        None, description="first or mean token state; default: what the head reads."
    )
    rounds: int | None = Field(
        None, ge=1, description="inlp: how many; default: until nothing can be read, 80 at most."
    )
    components: int | None = Field(
        None, ge=1, description="sentence: how many; default: groups - 1."
    )
    classifier: Annotated[str, one_of(CLASSIFIERS)] = Field("lsq", description="inlp: lsq or svc.")
    axis_texts: Path | None = Field(
        None, description="Cut counterfactual pairs from this text (gender, religion)."
    )

    @field_validator("layers", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Split names at commas, as on the command line."""
        if isinstance(value, str):
            return tuple(n.strip() for n in value.split(",") if n.strip())
        return value

    def lexicons(self, kind: str) -> list[str]:
        from evenhand.mitigations.hidden.axes import FRAMES, PACKAGED

        own = [] if Path(self.axis).is_file() or self.axis_texts else [FRAMES]
        return [
            *own,
            *([PACKAGED[self.axis]] if self.axis in PACKAGED else []),
            *super().lexicons(kind),
        ]

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        """Fit; `texts`, where given, are cut into counterfactual pairs."""
        from evenhand.corpora.text import read_texts
        from evenhand.mitigations.hidden import fit
        from evenhand.mitigations.hidden.axes import axis_data

        if texts is None and self.axis_texts is not None:
            texts = read_texts(self.axis_texts, limit=20_000)
        return fit.fit(model, axis_data(self.axis, texts=texts, seed=self.seed), self, note)

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        from evenhand.mitigations.hidden.fit import load

        return load(folder, base)

    @classmethod
    def report(cls, measurements: Measurements) -> Judgement:
        from evenhand.mitigations.hidden.fit import report

        return report(super().report(measurements), measurements, cls.label)

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations import chart

        return {"readers": chart.readers, **super().charts()}
