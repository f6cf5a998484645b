"""What a scorer gives, and finding one by name.

    vader            sentiment by the VADER lexicon (Hutto and Gilbert 2014)
    FOLDER or HUB    any text-classification checkpoint, such as one of `evenhand train regard`

A regard classifier is trained on texts whose demographic is masked as XYZ, so the probe masks it
too before scoring; otherwise the label would leak in (Sheng et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, ModelError, need
from evenhand.probes.base import Asker
from evenhand.requests import Classify

LABELS = ("negative", "neutral", "positive")
THRESHOLD = 0.05  # of VADER's compound score, as its authors set it


@dataclass(frozen=True)
class Scored:
    """One label and one score per text.

    Attributes:
        labels: 0 negative, 1 neutral, 2 positive, -1 where the scorer says it is none of them.
        score: from -1 (negative) to 1 (positive).
    """

    labels: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]


class Scorer(Protocol):
    """Anything that judges texts."""

    name: str
    masks: bool

    def __call__(self, texts: Sequence[str]) -> Scored: ...


def scorer(name: str, ask: Asker) -> Scorer:
    """The scorer of that name: "vader", or the checkpoint behind the probe's helper."""
    return Vader() if name == Vader.name else Checkpoint(name, ask.helper("scorer"))


class Vader:
    """Sentiment by lexicon and rules; needs the package vaderSentiment."""

    name = "vader"
    masks = False

    def __init__(self) -> None:
        module: Any = need(
            "vaderSentiment.vaderSentiment", extra="sentiment", what="the sentiment scorer 'vader'"
        )
        self._analyser = module.SentimentIntensityAnalyzer()

    def __call__(self, texts: Sequence[str]) -> Scored:
        score = np.asarray([self._analyser.polarity_scores(t)["compound"] for t in texts])
        labels = np.where(score >= THRESHOLD, 2, np.where(score <= -THRESHOLD, 0, 1))
        return Scored(labels.astype(np.int64), score.astype(np.float64))


class Checkpoint:
    """A text-classification checkpoint with labels for negative, neutral and positive."""

    def __init__(self, spec: str, ask: Asker) -> None:
        facts = ask.describe()
        self.name = str(facts["name"])
        self.columns = label_columns(facts.get("labels", ()), spec)
        self.masks = any("regard" in str(v).lower() for v in (spec, facts.get("purpose")))
        self._ask = ask

    def __call__(self, texts: Sequence[str]) -> Scored:
        p = np.asarray(self._ask(Classify(list(texts))).matrix("probabilities"))
        if not np.isfinite(p).all():
            raise DataError(f"scorer {self.name!r}: gave NaN probabilities.")
        best = p.argmax(axis=1)
        where = np.full(p.shape[1], -1)
        where[list(self.columns)] = np.arange(len(LABELS))
        low, high = self.columns[0], self.columns[2]
        return Scored(where[best], p[:, high] - p[:, low])


def label_columns(labels: Sequence[str], spec: str) -> tuple[int, int, int]:
    """Columns of negative, neutral and positive, by the checkpoint's label names.

    >>> label_columns(["negative", "neutral", "positive", "other"], "mine")
    (0, 1, 2)
    """
    low = [str(x).lower() for x in labels]
    found = []
    for name in LABELS:
        at = [i for i, x in enumerate(low) if x in (name, name[:3])]
        if len(at) != 1:
            raise ModelError(
                f"scorer {spec!r}: its labels are {list(labels)}. Accepted: a checkpoint with one "
                "label each named negative, neutral and positive. Train one with: evenhand train "
                "regard"
            )
        found.append(at[0])
    return found[0], found[1], found[2]
