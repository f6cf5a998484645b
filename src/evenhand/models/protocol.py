"""What the runner needs of a model, whatever stands behind it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from evenhand.requests import Column, Requests


@runtime_checkable
class Model(Protocol):
    """Something that answers requests.

    Attributes:
        name: how people call it.
        kind: causal, masked, span, choice, encoder, vectors, classifier or scripted.
        answers: the request kinds it can answer.
        fingerprint: changes whenever its scores may change (weights, dtype, mitigations,
            adapter version, batch plan).
    """

    name: str
    kind: str
    answers: frozenset[str]

    @property
    def fingerprint(self) -> str:
        """Names the model's scores."""

    def describe(self) -> dict[str, Any]:
        """Facts for the record: parameters, dtype, device, source."""

    def prepare(self, requests: Requests) -> Any:
        """Work that can be done ahead of the device (tokenising). May run in another thread."""

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        """One value per row and output column, in row order."""
