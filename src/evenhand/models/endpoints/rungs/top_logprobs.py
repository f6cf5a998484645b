"""Rung 2: chat with top log-probabilities; options stand under letters.

    P(option k) = sum of P(token) over first tokens that are its letter, however written
                  ("A", " A", "(A", "A.", "**A"; never the lower-case article "a")

The mass is what all letters have together; the rest went to answers that are no letter.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Sequence
from typing import Any

from evenhand.models.adapters.causal_choose import lettered
from evenhand.models.endpoints.client import Calls, Unreadable
from evenhand.models.endpoints.rungs.base import Choice, Load, Rung, checked
from evenhand.requests import Choose

MOST_OPTIONS = 26
AROUND = " \t\n\u0120\u2581()[]{}.,:;*_`'\"#"
"""What may stand around a letter: blanks, blanks as tokenizers write them, punctuation."""
FAKED_LOGPROB = -9998.0


class TopLogprobs(Rung):
    """Reads the letters among the most likely first tokens."""

    number, name = 2, "top log-probabilities"

    def body(self, prompt: str, options: Sequence[str]) -> dict[str, Any]:
        asked = prompt + lettered(options)
        return self.dialect.ask(asked, tokens=1, logprobs=True, top_logprobs=self.dialect.top)

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        body = self.body(prompt, options)
        top = await call("/chat/completions", body, top_tokens, tokens_out=1)
        return Choice(letter_masses(top, len(options)))

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        return Load(1, len(json.dumps(self.body(prompt, options))), 1)


def top_tokens(answer: Any) -> list[tuple[str, float]]:
    """The most likely first tokens with their log-probabilities.

    Raises:
        Unreadable: they are missing, or are no log-probabilities.
    """
    choices = answer.get("choices") or [{}]
    content = (choices[0].get("logprobs") or {}).get("content")
    if not content:
        raise Unreadable("log-probabilities were asked for and are missing from the answer")
    found = [(str(t["token"]), float(t["logprob"])) for t in content[0].get("top_logprobs") or []]
    if not found:
        raise Unreadable("top_logprobs were asked for and are missing from the answer")
    if any(math.isnan(value) or value > 1e-6 for _, value in found):
        raise Unreadable(f"log-probabilities above 0 or undefined: {found[:3]!r}")
    checked([math.exp(value) for _, value in found], "the probabilities of the top tokens")
    return found


def letter_masses(top: Sequence[Sequence[Any]], options: int) -> list[float]:
    """The probability of each letter, its spellings summed.

    >>> letter_masses([("A", math.log(.5)), (" B", math.log(.2)), ("a", math.log(.1))], 2)
    [0.5, 0.2]
    """
    masses = dict.fromkeys(string.ascii_uppercase[:options], 0.0)
    for token, value in top:
        letter = str(token).strip(AROUND)
        if letter in masses:
            masses[letter] += math.exp(float(value))
    return [round(mass, 15) for mass in masses.values()]


def faked(lists: Sequence[Sequence[Sequence[Any]]]) -> str:
    """Why log-probabilities of several different questions are not real; "" when they may be.

    >>> faked([[("A", 0.0), ("B", -9999.0)], [("B", 0.0), ("A", -9999.0)]])
    'faked: every value is 0 or -9999'
    """
    values = [[float(v) for _, v in top] for top in lists]
    flat = {v for row in values for v in row}
    if flat <= {0.0} | {v for v in flat if v <= FAKED_LOGPROB}:
        return f"faked: every value is {' or '.join(f'{v:g}' for v in sorted(flat, reverse=True))}"
    if len(values) > 1 and all(row == values[0] for row in values):
        return f"faked: the same values for different questions ({values[0][:3]})"
    if len(flat) == 1:
        return f"faked: every value is {flat.pop():g}"
    return ""
