"""SQuAD-format data and its official scores.

{"data": [{"paragraphs": [{"context": ..., "qas": [{"id", "question", "answers": [...]}]}]}]}
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError
from evenhand.opening import read_json

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)


@dataclass(frozen=True, slots=True)
class Example:
    """One question with its context, the accepted answers and where the first one starts."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...]
    start: int


def read_squad(path: Path, limit: int | None = None) -> list[Example]:
    """Questions of a SQuAD file (.json, .json.gz, .json.xz); those without an answer are left out.

    Raises:
        DataError: the file cannot be read, is not JSON or has another shape.
    """
    data = read_json(path, "a SQuAD file")
    try:
        found = [
            Example(
                str(qa["id"]),
                qa["question"].strip(),
                paragraph["context"],
                tuple(a["text"] for a in qa["answers"]),
                int(qa["answers"][0]["answer_start"]),
            )
            for article in data["data"]
            for paragraph in article["paragraphs"]
            for qa in paragraph["qas"]
            if qa["answers"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not in SQuAD format ({error!r}). Expected data[].paragraphs[] with context "
            "and qas[] of id, question, answers[].text and answers[].answer_start."
        ) from error
    if not found:
        raise DataError(f"{path}: holds no question with an answer.")
    return found[:limit]


def normalise(text: str) -> str:
    """An answer as the official scorer compares it: lower case, no punctuation, no articles.

    >>> normalise("The Eiffel  Tower!")
    'eiffel tower'
    """
    bare = "".join(c for c in text.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(predicted: str, answer: str) -> float:
    """1 when both are equal after normalisation, else 0 (Rajpurkar et al. 2016).

    >>> exact_match("a cat", "Cat.")
    1.0
    """
    return float(normalise(predicted) == normalise(answer))


def token_f1(predicted: str, answer: str) -> float:
    """Harmonic mean of precision and recall over words, in [0, 1] (Rajpurkar et al. 2016).

    >>> round(token_f1("the big cat", "a cat"), 4)
    0.6667
    """
    mine, theirs = normalise(predicted).split(), normalise(answer).split()
    shared = sum((Counter(mine) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(mine), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


def score(predictions: Mapping[str, str], examples: Sequence[Example]) -> dict[str, Any]:
    """Exact match and F1 in percent: the best over each question's answers, then the mean.

    A question without a prediction scores 0 and is counted in `missing`.
    """
    exact = f1 = 0.0
    missing = 0
    for example in examples:
        said = predictions.get(example.id)
        if said is None:
            missing += 1
            continue
        exact += max(exact_match(said, a) for a in example.answers)
        f1 += max(token_f1(said, a) for a in example.answers)
    n = len(examples)
    return {
        "exact": 100 * exact / n if n else float("nan"),
        "f1": 100 * f1 / n if n else float("nan"),
        "n": n,
        "missing": missing,
    }
