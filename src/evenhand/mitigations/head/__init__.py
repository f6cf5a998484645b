"""The family that edits the output head of a causal model: its settings, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from evenhand.corpora.text import read_texts
from evenhand.errors import SpecError, unknown
from evenhand.mitigations.base import Fitted, Judgement, Measurements, Note, one_of, option_words
from evenhand.mitigations.erasing import CLASSIFIERS
from evenhand.mitigations.proof import PROOF_CARDS, AuditedMitigation
from evenhand.models.edits.head import MIXTURES
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard
from evenhand.words.lexicons.files import load

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.probes.stereoset import Example

RENAMED = {"inlp": "pairs", "a-inlp": "a-pairs"}
"""Methods of earlier versions, which removed the directions of pairs unless told otherwise."""
MIXED = ("a-pairs", "a-inlp", "a-subspace")
RELEASED = {"classifier": "svc", "mixture": "hidden", "offset": False, "tokens": None, "top": None}
RELEASED_WORDS = {
    "classifier": "LinearSVC (svc)",
    "mixture": "a mixture of hidden states",
    "offset": "no offset",
    "tokens": "thresholds of similarity instead of a number of tokens",
    "top": "the likeliest tokens that reach a probability of 0.7 instead of a number of them",
}
"""Options that --as-published decides; None: there is nothing in the released code to set."""
ROUNDS = ("a-pairs", "pairs", "a-inlp", "inlp")
LEARNED = ("tokens", "vectors", "top")
"""Options of a learned alpha, which looks at bias-sensitive tokens."""

LEXICON = "erasure_contexts"


def axes() -> tuple[str, ...]:
    """Return the axes for which openings are packaged."""
    return tuple(load(LEXICON).table("axes"))


class HeadMitigation(AuditedMitigation):
    """A low-rank edit of the head, whole or mixed with the model's own distribution.

    The default removes the directions of matched pairs, since it measured better than INLP's (see
    docs/lab/liang.md). What is left open (rounds, alpha) is chosen on pairs and text that it was
    not fitted on (the choosing half), within a limit on perplexity, and judged on others again (the
    judging half).
    """

    name: ClassVar[str] = "head"
    label: ClassVar[str] = "tradeoff"
    kinds: ClassVar[tuple[str, ...]] = ("causal",)
    several: ClassVar[bool] = True
    exports: ClassVar[bool] = True
    methods: ClassVar[Mapping[str, str]] = {
        "a-pairs": "directions of matched pairs (evenhand), mixed as in Liang et al. 2021",
        "pairs": "directions of matched pairs (evenhand)",
        "a-inlp": "Liang et al. 2021",
        "inlp": "Ravfogel et al. 2020",
        "a-subspace": "Liang et al. 2021",
        "leace": "Belrose et al. 2023",
    }
    only_for: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "alpha": MIXED,
        "rounds": ROUNDS,
        "classifier": ("a-inlp", "inlp"),
        "mixture": MIXED,
        "offset": (*ROUNDS, "leace"),
        "vectors": MIXED,
        "tokens": MIXED,
        "components": MIXED,
        "top": MIXED,
        "as_published": ("a-inlp", "inlp", "a-subspace"),
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

    method: str = "a-pairs"
    axis: str = Field("gender", description="gender or religion.")
    alpha: float | str | None = Field(
        None, description="Mixtures (a-): 0 to 1, or learned; default: chosen within the limit."
    )
    rounds: int | None = Field(
        None,
        ge=1,
        description="pairs: directions to remove, inlp: classifiers to train; default: chosen to "
        "stay within the limit.",
    )
    max_perplexity_increase: float = Field(
        0.02, description="How much perplexity may rise, e.g. 2%.", json_schema_extra={"text": True}
    )
    classifier: str | None = Field(
        None, description="inlp: lsq (least squares, default) or svc (LinearSVC, as published)."
    )
    texts: Path | None = Field(
        None, description="Plain text, one passage a line; default: the model writes some."
    )
    mixture: Annotated[str, one_of(MIXTURES)] = Field(
        "probability", description="Mixtures (a-): probability (Eq. 7) or hidden."
    )
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
        """Accept "learned" or a number from 0 to 1, as text too."""
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
        """Accept a share such as 2% or 0.02."""
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

    @field_validator("classifier")
    @classmethod
    def _trained(cls, value: str | None, info: Any) -> str | None:
        if value == "pairs":
            method = RENAMED.get(info.data.get("method", ""), "a-pairs")
            raise SpecError(
                "--classifier 'pairs': the directions of pairs have a method of their own. "
                f"Accepted: {', '.join(CLASSIFIERS)}; or use: evenhand mitigate MODEL --method "
                f"{method} --out DIR"
            )
        if value is not None and value not in CLASSIFIERS:
            raise SpecError(unknown("classifier", value, CLASSIFIERS, where="mitigate"))
        return value

    @field_validator("axis")
    @classmethod
    def _packaged(cls, value: str) -> str:
        if value not in axes():
            raise SpecError(unknown("axis", value, axes(), where="mitigate"))
        return value

    @model_validator(mode="after")
    def _without_contradictions(self) -> HeadMitigation:
        """Refuse two options of which one makes the other idle."""
        here = f"evenhand mitigate MODEL --method {self.method}"
        if isinstance(self.alpha, float):
            idle = [name for name in LEARNED if name in self.options_set]
            if idle:
                words = " ".join(self._words(idle))
                raise SpecError(
                    f"{words}: of the bias-sensitive tokens, which only a learned alpha looks at, "
                    f"and --alpha is {self.alpha}. Use: {here} --alpha learned {words} --out DIR"
                )
        if self.as_published:
            for name in (n for n in RELEASED if n in self.options_set):
                words, value = " ".join(self._words([name])), getattr(self, name)
                if value != RELEASED[name]:
                    raise SpecError(
                        f"{words}: --as-published follows the released code, which has "
                        f"{RELEASED_WORDS[name]}. Leave one of the two out: {here} {words} "
                        "--out DIR"
                    )
        if self.stereoset is None and "stereoset_examples" in self.options_set:
            words = " ".join(self._words(["stereoset_examples"]))
            raise SpecError(
                f"{words}: examples of a file that was not given. Use: {here} --stereoset FILE "
                f"{words} --out DIR"
            )
        return self

    @property
    def trained_classifier(self) -> str:
        """The classifier that INLP trains in every round."""
        return "svc" if self.as_published else self.classifier or "lsq"

    @classmethod
    def report(cls, measurements: Measurements) -> Judgement:
        from evenhand.mitigations.head.tradeoff import report

        return report(measurements, cls.label)

    def lexicons(self, kind: str) -> list[str]:
        return [LEXICON, "liang_prompts", "liang_definitional", *super().lexicons(kind)]

    def ready(self) -> None:
        from evenhand.models.vectors.files import resolve_vectors

        if self.vectors:
            resolve_vectors(self.vectors)
        self.examples()
        super().ready()

    def examples(self) -> list[Example]:
        """Return StereoSet's examples for the trade-off; none if no file was given."""
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
        note("choosing a setting on the choosing half, measuring it on the judging half")
        return fit.fit(model, material, self, self.chosen_methods)

    @classmethod
    def command_today(cls, words: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
        """Use the names of today, without the options that a version passed over in silence.

        Earlier versions called the methods of pairs inlp and a-inlp, with that classifier.
        """
        today = list(words)
        if "--method" not in today:
            return today
        at = today.index("--method") + 1
        if settings.get("classifier") == "pairs" and not settings.get("as_published"):
            today[at] = ",".join(RENAMED.get(name, name) for name in today[at].split(","))
        idle = [name for name in cls.only_for if not cls._takes(name, *today[at].split(","))]
        idle += LEARNED if isinstance(settings.get("alpha"), float) else ()
        for option in (option_words(name, settings[name]) for name in idle if name in settings):
            if option[0] in today:
                place = today.index(option[0])
                del today[place : place + len(option)]
        return today

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        from evenhand.mitigations.head.save import load

        return load(folder, base)

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations.chart import CHARTS

        return {**CHARTS, **super().charts()}
