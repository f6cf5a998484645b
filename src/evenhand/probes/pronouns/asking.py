"""Pronouns put to a language model: which of them fits a sentence, by log-probability.

Masked models: the probability of each pronoun in its place. Causal models: the likelihood of the
pronoun and everything after it, given what stands before, since what decides often follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.probes.base import Asker, ItemShape
from evenhand.probes.pronouns.sentences import Sentence
from evenhand.requests import MASK, Continuation, MaskScore, Requests

Floats = npt.NDArray[np.float64]
SHAPE = ItemShape(text=("sentence",), score=("logprob_male", "logprob_female"))


def forms(sentence: Sentence, most: int) -> list[str]:
    """The pronouns that fit the sentence as it stands."""
    return [w for w in (sentence.male, sentence.female, sentence.neutral)[:most] if w]


def asked(sentences: Sequence[Sentence], kind: str, most: int) -> Requests:
    """One row per sentence and pronoun: male, female and, of three forms, neutral."""
    texts, endings = [], []
    for s in sentences:
        for word in forms(s, most):
            if kind == MaskScore.kind:
                texts.append(f"{s.left}{MASK}{s.right}")
                endings.append(word)
            else:
                texts.append(s.left.rstrip(" "))
                endings.append(f" {word}{s.right}" if s.left else f"{word}{s.right}")
    if kind == MaskScore.kind:
        return MaskScore(texts, endings)
    return Continuation(texts, endings)


def logprobs(ask: Asker, sentences: Sequence[Sentence], kind: str, label: str, most: int) -> Floats:
    """Log-probability of each pronoun, shape [sentences, most]; NaN where a form does not fit."""
    answered = iter(np.asarray(ask(asked(sentences, kind, most), label)["logprob"], np.float64))
    rows = [[next(answered) for _ in forms(s, most)] for s in sentences]
    return np.asarray([row + [np.nan] * (most - len(row)) for row in rows])


def shown(sentence: Sentence) -> str:
    return f"{sentence.left}{sentence.male}/{sentence.female}{sentence.right}"


def items_table(sentences: list[Sentence], scores: Floats) -> pa.Table:
    columns: dict[str, Any] = {
        name: [getattr(s, name) for s in sentences]
        for name in ("occupation", "kind", "leans", "refers")
    }
    columns["sentence"] = [shown(s) for s in sentences]
    for k, name in enumerate(("male", "female", "neutral")[: scores.shape[1]]):
        columns[f"logprob_{name}"] = scores[:, k]
    return pa.table(columns)
