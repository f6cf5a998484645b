"""A model whose answers you write yourself: for tests, demonstrations and known answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evenhand.models.protocol import Model
from evenhand.requests import TYPES, Choose, Column, Requests

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
        self.answers = frozenset(answers)
        self._fingerprint = hashlib.sha256(f"scripted:{name}:{version}".encode()).hexdigest()
        self.rows_scored = 0
        self._functions = dict(answers)
        self._whole = whole
        self._facts = dict(facts or {})

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "parameters": 0, **self._facts}

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        function = self._functions[requests.kind]
        if self._whole:
            self.rows_scored += len(requests)
            return _completed(requests, function(requests))
        outputs, choose = TYPES[requests.kind].outputs, isinstance(requests, Choose)
        first = next(iter(outputs))
        answered = [function(*row) for row in requests.rows()]
        self.rows_scored += len(answered)
        columns: dict[str, Column] = {}
        for name, type_name in outputs.items():
            values = [
                a.get(name, _blank(type_name))
                if isinstance(a, dict)
                else (a if name == first else _blank(type_name))
                for a in answered
            ]
            number = {"float": np.float64, "int": np.int32}.get(type_name)
            columns[name] = np.asarray(values, dtype=number) if number else values
        said = {name for a in answered if isinstance(a, dict) for name in a} | {first}
        return _completed(requests, {n: c for n, c in columns.items() if n in said or not choose})


def _completed(requests: Requests, given: dict[str, Column]) -> dict[str, Column]:
    """The answers to `choose` with what a script may leave out."""
    if not isinstance(requests, Choose):
        return given
    made: dict[str, Column] = {
        "probabilities": given["probabilities"],
        "mass": np.asarray([np.sum(row) for row in given["probabilities"]], np.float64),
        "refused": np.zeros(len(requests)),
        "unread": np.zeros(len(requests)),
    }
    return made | given


def _blank(type_name: str) -> Any:
    """What an output is when a script does not give it."""
    return {"float": np.nan, "int": 1, "string": ""}.get(type_name, [])
