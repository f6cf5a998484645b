"""A stand-in for a model whose scores are all stored: it knows its facts and answers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.confined import lifted
from evenhand.errors import ModelError
from evenhand.models.protocol import Model
from evenhand.requests import Column, Requests


class StoredModel(Model):
    """What run.json says of a model, so that its stored scores are found without its weights."""

    def __init__(self, spec: str, facts: Mapping[str, Any]) -> None:
        self._facts = dict(facts)
        self.name, self.kind = str(facts.get("name", spec)), str(facts.get("kind", ""))
        self.answers = frozenset(map(str, facts.get("answers", ())))
        self.device, self.dtype = str(facts.get("device", "cpu")), str(facts.get("dtype", ""))
        self.rung = str(facts.get("rung", ""))

    @property
    def alternates(self) -> bool:
        """Shards are read in the thread that asks for them, and in no other (`confined`)."""
        return True

    @property
    def fingerprint(self) -> str:
        return str(self._facts.get("fingerprint", ""))

    def describe(self) -> dict[str, Any]:
        return dict(self._facts)

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        raise ModelError(
            f"model {self.name!r}: the scores of {len(requests)} {requests.kind} questions are not "
            f"stored, and nothing else of the model is here. Score them with: evenhand resume RUN"
        )


class AskedAgain(StoredModel):
    """The model itself under its recorded identity, to be asked what is taken out of its scores.

    Its fingerprint may be another one (another device, another version of torch), its weights and
    the way it is asked may not.
    """

    def __init__(self, spec: str, facts: Mapping[str, Any], model: Model) -> None:
        super().__init__(spec, facts)
        self._model, self.token_budget = model, model.token_budget
        self.same = model.fingerprint == self.fingerprint
        found = {**model.describe(), "fingerprint": model.fingerprint}
        known = "weights_sha256" if facts.get("weights_sha256") else "fingerprint"
        for name in (known, "mitigations", "rung", "chat", "system"):
            if found.get(name) != facts.get(name):
                raise ModelError(
                    f"model {model.name!r}: has another {name} than the one that was asked "
                    f"({found.get(name)!r:.40} here, {facts.get(name)!r:.40} there), so its scores "
                    f"say nothing about the stored ones. Give the same model with: --model"
                )

    def prepare(self, requests: Requests) -> Any:
        with lifted():
            return self._model.prepare(requests)

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        with lifted():
            return self._model.answer(requests, prepared)
