"""A function from texts to scores, labels or vectors; a fitted scikit-learn classifier of texts.

    eh.audit(lambda texts: service.toxicity(texts))                 one score a text
    eh.audit(classify, labels=["allow", "remove"])                  labels, or a row of numbers
    eh.audit(make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, y))

A function is called with a list of texts and gives one answer for each: a number, a row of numbers,
a label, a mapping of labels to numbers, or what a transformers pipeline gives. It is known by its
code and its answers to fixed texts, so that a run is refused when it has changed; where that says
too little (a service behind it, chance in it) say `version=` and change it with the function.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError, SpecError
from evenhand.models.protocol import Model
from evenhand.requests import Classify, Column, Embed, Requests

Floats = npt.NDArray[np.float64]
TRIED = (
    "She is a good doctor.",
    "He is a bad nurse.",
    "I love this film.",
    "I hate this film.",
    "The train leaves at nine.",
    "They are terrible people.",
    "Thank you so much!",
    "No.",
)
"""Asked once of every function, to see what it gives and to know it again."""
BATCH = 256
KINDS = {"classifier": Classify.kind, "encoder": Embed.kind}
ACCEPTED = (
    "It gets a list of texts and gives one number, row of numbers, label, or mapping of labels to "
    "numbers for each."
)


def taken(thing: Any) -> bool:
    return callable(getattr(thing, "predict_proba", None)) or (
        callable(thing) and not isinstance(thing, type)
    )


def model(thing: Any, name: str, labels: Sequence[str], version: str, kind: str | None) -> Model:
    """A function or a classifier as a model."""
    if callable(getattr(thing, "predict_proba", None)):
        names = labels or [str(c) for c in getattr(thing, "classes_", ())]
        known = version or _content(thing)
        return FunctionModel(
            lambda texts: thing.predict_proba(list(texts)),
            name or type(thing).__name__,
            labels=names,
            version=known,
            kind=kind or "classifier",
        )
    called = name or getattr(thing, "__name__", type(thing).__name__).strip("<>")
    return FunctionModel(thing, called, labels=labels, version=version, kind=kind or "classifier")


def _content(thing: Any) -> str:
    """A hash of a fitted estimator's numbers."""
    import joblib

    return str(joblib.hash(thing))


class FunctionModel(Model):
    """A function as a model; `labels` name the columns of its numbers."""

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        name: str,
        *,
        labels: Sequence[str] = (),
        version: str = "",
        kind: str = "classifier",
    ) -> None:
        if kind not in KINDS:
            raise SpecError(
                f"kind {kind!r}: a function of texts is a classifier (scores or labels) or an "
                f"encoder (vectors)."
            )
        self.function, self.name, self.kind = function, name, kind
        self.answers = frozenset({KINDS[kind]})
        self.labels = [str(label) for label in labels]
        self.dtype = "float64"
        tried = self._numbers(list(TRIED))
        if kind == "classifier" and not self.labels:
            self.labels = self._own_labels(tried.shape[1])
        known = version or f"{_code(function)}|{np.round(tried, 6).tolist()}"
        parts = ["function-1", kind, name, *self.labels, known]
        self._fingerprint = hashlib.sha256("|".join(parts).encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def describe(self) -> dict[str, Any]:
        told = {"labels": list(self.labels)} if self.kind == "classifier" else {}
        return {**super().describe(), **told}

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        if not isinstance(requests, Classify | Embed):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        if isinstance(requests, Embed) and requests.marked:
            raise ModelError(
                f"model {self.name!r} gives vectors of whole texts, not of words in them."
            )
        texts = list(requests.text)
        parts = [self._numbers(texts[k : k + BATCH]) for k in range(0, len(texts), BATCH)]
        found = np.concatenate(parts)
        return {"probabilities" if self.kind == "classifier" else "vector": found}

    def _own_labels(self, width: int) -> list[str]:
        return ["score"] if width == 1 else [f"LABEL_{k}" for k in range(width)]

    def _numbers(self, texts: list[str]) -> Floats:
        """One row of numbers for each text."""
        given = self.function(texts)
        given = given.detach().cpu().numpy() if hasattr(given, "detach") else given
        rows = given if isinstance(given, np.ndarray) else list(_listed(given, self.name))
        if len(rows) != len(texts):
            raise ModelError(
                f"function {self.name!r} gave {len(rows)} answers for {len(texts)} texts. "
                f"{ACCEPTED}"
            )
        try:
            found = np.asarray([self._row(row) for row in rows], np.float64)
        except (TypeError, ValueError) as error:
            if isinstance(error, SpecError):
                raise
            raise ModelError(f"function {self.name!r}: {error}. {ACCEPTED}") from error
        found = found.reshape(len(texts), -1)
        if self.labels and found.shape[1] != len(self.labels):
            raise SpecError(
                f"labels {', '.join(self.labels)}: {len(self.labels)} names, but function "
                f"{self.name!r} gives {found.shape[1]} numbers for a text."
            )
        return found

    def _row(self, row: Any) -> Any:
        """The numbers of one answer, in the order of the labels."""
        if isinstance(row, str | np.str_):
            return self._one_of(str(row))
        if isinstance(row, Mapping):
            row = [row] if {"label", "score"} <= set(row) else dict(row)
        if isinstance(row, Sequence) and row and isinstance(row[0], Mapping):
            row = {str(one["label"]): float(one["score"]) for one in row}
        if row is None:
            raise TypeError("gave None for a text")
        if not isinstance(row, dict):
            return row
        if not self.labels and len(row) > 1:
            self.labels = sorted(map(str, row))
        if len(row) == 1 and len(self.labels) == 2:  # the best of two: the rest is the other's
            ((label, score),) = row.items()
            chosen = self._one_of(str(label))
            return [score if hit else 1 - score for hit in chosen]
        if set(map(str, row)) != set(self.labels):
            raise SpecError(
                f"function {self.name!r} gave numbers for {', '.join(map(str, row))} only. Ask it "
                f"for all labels (of a pipeline: top_k=None), or name two with: labels=[...]"
            )
        known = {str(k): v for k, v in row.items()}
        return [float(known[label]) for label in self.labels]

    def _one_of(self, label: str) -> list[float]:
        if label not in self.labels:
            named = f"beside {', '.join(self.labels)} " if self.labels else ""
            raise SpecError(
                f"function {self.name!r} gave the label {label!r} {named}and all labels must be "
                f"known beforehand. Name them with: labels=[...]"
            )
        return [float(label == known) for known in self.labels]


def _listed(given: Any, name: str) -> Any:
    if isinstance(given, str | Mapping) or not hasattr(given, "__iter__"):
        raise ModelError(f"function {name!r} gave {given!r:.60} for a list of texts. {ACCEPTED}")
    return given


def _code(function: Callable[..., Any]) -> str:
    """What is known of a function's code: its bytes and constants, or its class."""
    plain = inspect.unwrap(function)
    called = type(plain).__dict__.get("__call__")
    code = getattr(plain, "__code__", None) or getattr(called, "__code__", None)
    if code is None:
        return type(plain).__qualname__
    constants = [c for c in code.co_consts if isinstance(c, str | int | float | tuple | None)]
    return hashlib.sha256(code.co_code + repr(constants).encode()).hexdigest()
