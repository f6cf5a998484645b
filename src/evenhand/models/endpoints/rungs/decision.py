"""Rung 1: decision endpoints, which give a probability for every option in one pass.

    POST /v1/systemone   state, questions: {name: {type: choice, instructions, criteria}}
    POST /v1/decisions   input, questions: [{name, type: choice, instructions, choices}]

The server shares a probability of one between the options, so the mass is always 1 and what it
would have said otherwise is not seen. A refusal of /v1/decisions is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evenhand.models.endpoints.client import Calls, Unreadable
from evenhand.models.endpoints.rungs.base import NAN, Choice, Load, Rung, checked
from evenhand.requests import Choose

SYSTEMONE, DECISIONS = "/systemone", "/decisions"
QUESTION = "answer"


class Decision(Rung):
    """Asks a decision endpoint."""

    number, name = 1, "decision endpoint"

    def body(self, prompt: str, options: Sequence[str]) -> dict[str, Any]:
        passage, _, question = prompt.rpartition("\n")
        model, system = self.dialect.model, self.dialect.system
        if self.way == SYSTEMONE:
            state = "\n\n".join(part for part in (system, passage or question) if part)
            asked = {"type": "choice", "criteria": dict.fromkeys(options)}
            if passage:
                asked["instructions"] = question
            return {"model": model, "state": state, "questions": {QUESTION: asked}}
        told = passage or question
        given: Any = self.dialect.messages(told) if system else told
        choices = [{"value": option} for option in options]
        one = {"name": QUESTION, "type": "choice", "instructions": question, "choices": choices}
        return {"model": model, "input": given, "questions": [one]}

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        def read(answer: Any) -> list[float]:
            return (
                _systemone(answer, options)
                if self.way == SYSTEMONE
                else _decisions(answer, options)
            )

        found = await call(self.way, self.body(prompt, options), read)
        seen = NAN if self.way == SYSTEMONE else float(not found)
        return Choice(found or [0.0] * len(options), seen)

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        return Load(1, len(json.dumps(self.body(prompt, options))), 0)


def _systemone(answer: Any, options: Sequence[str]) -> list[float]:
    given = ((answer.get("answers") or {}).get(QUESTION) or {}).get("probabilities")
    if not isinstance(given, dict):
        raise Unreadable(f"the answer lacks answers.{QUESTION}.probabilities")
    missing = [o for o in options if o not in given]
    if missing:
        raise Unreadable(f"there is no probability for the option {missing[0]!r}")
    return checked([given[o] for o in options], "the probabilities")


def _decisions(answer: Any, options: Sequence[str]) -> list[float]:
    """The probabilities; none at all when the question was refused."""
    found = next((a for a in answer.get("answers") or [] if isinstance(a, dict)), None)
    if found is None:
        raise Unreadable("the answer lacks answers")
    if found.get("type") == "refusal":
        return []
    given = {p.get("value"): p.get("probability") for p in found.get("probabilities") or []}
    missing = [o for o in options if o not in given]
    if missing:
        raise Unreadable(f"there is no probability for the option {missing[0]!r}")
    return checked([given[o] for o in options], "the probabilities")
