"""Pronouns put to a language model: which of them fits a sentence, by log-probability.

Masked models: the probability of each pronoun in its place. Causal models: the likelihood of the
pronoun and everything after it, given what stands before, since what decides often follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand.compare.items import Items
from evenhand.probes.base import ItemShape, Probe, Way
from evenhand.requests import MASK, Continuation, MaskScore, Requests

MALE = ("he", "him", "his", "himself")
FEMALE = ("she", "her", "hers", "herself")
GENDERS = ("male", "female", "neutral")


@dataclass(frozen=True)
class Sentence:
    """A sentence around one pronoun: what stands before and after it, and its three forms.

    `leans` is the gender of WinoBias's stereotype (+1 male, -1 female; 0: not said), `refers`
    whether the pronoun stands for the occupation. `neutral` is empty where "they" would need
    another verb form, so that it cannot be compared in the same sentence.
    """

    left: str
    right: str
    male: str
    female: str
    occupation: str
    kind: str
    leans: int = 0
    refers: bool = True
    neutral: str = ""

    @property
    def shown(self) -> str:
        """The sentence with both pronouns."""
        return f"{self.left}{self.male}/{self.female}{self.right}"


class PronounProbe(Probe):
    """Base of probes that score the pronouns of sentences.

    Occupations are the unit that is sampled: their sentences are no independent evidence.
    """

    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    bound: ClassVar[str] = "the benchmark's sentences"
    genders: ClassVar[tuple[str, ...]] = GENDERS[:2]
    """Whose pronouns are scored."""
    item_shape: ClassVar = ItemShape(text=("sentence",), score=("logprob_male", "logprob_female"))

    def ask(self, items: Items, way: Way) -> Requests:
        texts, endings = [], []
        rows = zip(*(items[f"_{name}"] for name in ("left", "right")))
        for k, (left, right) in enumerate(rows):
            for word in (items[f"_{gender}"][k] for gender in self.genders):
                if not word:
                    continue
                if way.kind == MaskScore.kind:
                    texts.append(f"{left}{MASK}{right}")
                    endings.append(word)
                else:
                    texts.append(left.rstrip(" "))
                    endings.append(f" {word}{right}" if left else f"{word}{right}")
        kind = MaskScore if way.kind == MaskScore.kind else Continuation
        return kind(texts, endings)

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        """Log-probabilities by gender; NaN where a form does not fit the sentence."""
        fits = np.stack([items[f"_{gender}"] != "" for gender in self.genders], axis=1)
        scores = np.full(fits.shape, np.nan)
        scores[fits] = np.asarray(answers["logprob"], np.float64)
        return items.having({f"logprob_{g}": scores[:, k] for k, g in enumerate(self.genders)})


def sentence_items(sentences: Sequence[Sentence], **beside: Any) -> Items:
    """Sentences as items of a probe."""
    written = {n: [getattr(s, n) for s in sentences] for n in ("occupation", "kind", "leans")}
    hidden = {f"_{n}": [getattr(s, n) for s in sentences] for n in ("left", "right", *GENDERS)}
    return Items(
        {
            **written,
            "refers": [s.refers for s in sentences],
            "sentence": [s.shown for s in sentences],
            **hidden,
        },
        example=sentences[0].shown,
        **beside,
    )


def log_odds(items: Items) -> np.ndarray:
    """log P(he) - log P(she) of every sentence."""
    return np.subtract(items.numbers("logprob_male"), items.numbers("logprob_female"))
