"""The family that edits the output head of causal models: which settings it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from evenhand.corpora.passages import read_texts
from evenhand.errors import SpecError, unknown
from evenhand.mitigations.base import Fitted, Judgement, Note
from evenhand.mitigations.grounds import Grounds
from evenhand.mitigations.head.openings import LEXICON, axes
from evenhand.mitigations.proof import PROOF_CARDS, ProvedMitigation
from evenhand.models.edits.head import MIXTURES
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.probes.stereoset import Example

CLASSIFIERS = ("pairs", "lsq", "svc")


class HeadMitigation(ProvedMitigation):
    """A low-rank edit of the head, whole or mixed with the model's own distribution.

    What is left open (rounds, alpha) is chosen on pairs and text that it was not fitted on, within
    a limit on perplexity, and judged on others again.
    """

    name: ClassVar[str] = "head"
    label: ClassVar[str] = "tradeoff"
    kinds: ClassVar[tuple[str, ...]] = ("causal",)
    several: ClassVar[bool] = True
    exports: ClassVar[bool] = True
    methods: ClassVar[Mapping[str, str]] = {
        "a-inlp": "Liang et al. 2021",
        "a-subspace": "Liang et al. 2021",
        "inlp": "Ravfogel et al. 2020",
        "leace": "Belrose et al. 2023",
    }
    cards: ClassVar[tuple[MetricCard, ...]] = (
        MetricCard(
            "relative_fall",
            "fall of the measured gap",
            "share of the typical squared Hellinger distance of held-out pairs; 1: all",
            high=1.0,
            higher_is_better=True,
        ),
        *PROOF_CARDS,
    )

    method: str = "a-inlp"
    axis: str = Field("gender", description="gender or religion.")
    alpha: float | str | None = Field(
        None, description="0 to 1, or learned; default: chosen to stay within the limit below."
    )
    rounds: int | None = Field(
        None, description="Directions to remove; default: chosen to stay within the limit."
    )
    max_perplexity_increase: float = Field(
        0.02, description="How much perplexity may rise, e.g. 2%.", json_schema_extra={"text": True}
    )
    classifier: str = Field("pairs", description="What a round removes: pairs, lsq, svc.")
    texts: Path | None = Field(
        None, description="Plain text, one passage a line; default: the model writes some."
    )
    mixture: str = Field("probability", description="probability (Eq. 7) or hidden.")
    first_token_only: bool = Field(False, description="Edit the first token only.")
    offset: bool = Field(True, description="Keep the mean state in place (not with --export).")
    vectors: str = Field(
        "", description="Word vectors for the bias-sensitive tokens; default: the model's own."
    )
    tokens: int = Field(1_000, ge=2, description="How many bias-sensitive tokens.")
    openings: int = Field(240, ge=20, description="How many sets of openings to fit on.")
    components: int | None = Field(
        None, description="Components of the bias subspace; default: 1 for gender, 2 for religion."
    )
    top: int = Field(50, ge=1, description="How many tokens a learned alpha looks at.")
    stereoset: Path | None = Field(
        None, description="StereoSet's gold file: add it to the trade-off."
    )
    stereoset_examples: int = Field(
        120, ge=2, description="How many examples to draw from each of its splits."
    )

    @field_validator("alpha", mode="before")
    @classmethod
    def _weight(cls, value: Any) -> Any:
        """A number, or "learned"; text is what the command line gives."""
        try:
            number = value if value in (None, "learned") else float(value)
        except (TypeError, ValueError):
            number = -1.0
        if isinstance(number, float) and not 0.0 <= number <= 1.0:
            shown = f"{value!r}" if isinstance(value, str) else f"'{value}'"
            raise SpecError(f"--alpha {shown}: expected a number from 0 to 1, or 'learned'.")
        return number

    @field_validator("max_perplexity_increase", mode="before")
    @classmethod
    def _share(cls, value: Any) -> float:
        """2% or 0.02."""
        text = str(value)
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1.0
        if not 0.0 <= share < float("inf"):
            raise SpecError(
                f"--max-perplexity-increase {text!r}: expected a share of 0 or more, such as 2% or "
                "0.02."
            )
        return share

    @model_validator(mode="after")
    def _known(self) -> HeadMitigation:
        named = (("classifier", CLASSIFIERS), ("mixture", MIXTURES), ("axis", axes()))
        for name, known in named:
            if getattr(self, name) not in known:
                raise SpecError(unknown(name, getattr(self, name), known, where="mitigate"))
        if self.rounds is not None and self.rounds < 1:
            raise SpecError(f"--rounds '{self.rounds}': expected 1 or more.")
        return self

    @classmethod
    def concluded(cls, grounds: Grounds) -> Judgement:
        from evenhand.mitigations.head.judging import concluded

        return concluded(grounds, cls.label)

    def lexicons(self, kind: str) -> list[str]:
        return [LEXICON, "liang_prompts", "liang_definitional", *super().lexicons(kind)]

    def ready(self) -> None:
        from evenhand.models.vectors.files import resolve_vectors

        if self.vectors:
            resolve_vectors(self.vectors)
        self.examples()
        super().ready()

    def examples(self) -> list[Example]:
        """StereoSet's examples for the trade-off; none where it was not asked for."""
        from evenhand.mitigations.head import stereo

        if self.stereoset is None:
            return []
        stereo.check_mixture("hidden" if self.as_published else self.mixture)
        return stereo.examples_of(self.stereoset, self.axis, self.stereoset_examples, self.seed)

    def check_export(self, model: Any) -> None:
        from evenhand.mitigations.head.save import check_exportable

        check_exportable(self, model)

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        """Fit the methods asked for on the same states and choose the best within the limit."""
        from evenhand.mitigations.head import fit

        if texts is None and self.texts is not None:
            texts = read_texts(self.texts)
        material = fit.collect(model, self, texts, note)
        note("judging settings")
        return fit.fit(model, material, self, self.chosen_methods)

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        from evenhand.mitigations.head.save import load

        return load(folder, base)

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations.head.chart import CHARTS

        return {**CHARTS, **super().charts()}
