"""A model whose answers you write yourself: for tests, demonstrations and known answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from evenhand.errors import SpecError, unknown
from evenhand.models.adapters.scripted_answers import by_row, completed, of_batch
from evenhand.models.protocol import Model
from evenhand.requests import TYPES, Column, Requests

Answerer = Callable[..., Any]


class ScriptedModel(Model):
    """Answers each request kind with a function of one row.

    Args:
        answers: request kind -> function taking the row's columns by position and giving either
            one value (for the first output) or a dict of outputs.
        name: what it is called in reports.
        version: change it when the functions change; it is part of the fingerprint.
        facts: what else `describe` says, e.g. the labels of a classifier.
        whole: the functions take a whole batch of requests and give its output columns, for
            scripts that must be fast.

    Raises:
        ModelError: a function returned something else, when the model is asked.

    >>> from evenhand.requests import Option
    >>> model = ScriptedModel({"option": lambda prompt, option: float(len(option))})
    >>> batch = Option(prompt=["p", "p"], option=["yes", "maybe"])
    >>> model.answer(batch, None)["logit"]
    array([3., 5.])

    For `choose` a function gives the probabilities of a row's options (tab-separated); what they
    sum to is the mass unless it says otherwise, and nothing is refused or unread.
    """

    kind = "scripted"
    rung = "scripted"

    def __init__(
        self,
        answers: Mapping[str, Answerer],
        *,
        name: str = "scripted",
        version: str = "1",
        whole: bool = False,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._functions = _functions(answers)
        self.answers = frozenset(answers)
        self._fingerprint = hashlib.sha256(f"scripted:{name}:{version}".encode()).hexdigest()
        self.rows_scored = 0
        self._whole = whole
        self._facts = dict(facts or {})

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "parameters": 0, **self._facts}

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        function = self._functions[requests.kind]
        self.rows_scored += len(requests)
        if self._whole:
            return completed(requests, of_batch(self.name, requests, function(requests)))
        answered = [function(*row) for row in requests.rows()]
        return completed(requests, by_row(self.name, requests, answered))


def _functions(answers: Any) -> dict[str, Answerer]:
    """The functions by request kind."""
    if not isinstance(answers, Mapping):
        raise SpecError(
            f"a scripted model of {answers!r}: expected a mapping of request kinds to functions, "
            f"e.g. {{'choose': function}}. Kinds: {', '.join(TYPES)}."
        )
    for kind, function in answers.items():
        if kind not in TYPES:
            raise SpecError(unknown("request kind", str(kind), TYPES))
        if not callable(function):
            raise SpecError(
                f"a scripted model: {kind!r} has {function!r}, which is not a function."
            )
    return dict(answers)
