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
from functools import partial
from typing import Any

from evenhand.models.adapters.causal_choose import lettered
from evenhand.models.endpoints.client import Calls, Unreadable
from evenhand.models.endpoints.rungs.base import Choice, Load, Rung, checked, logprobs
from evenhand.requests import Choose

MOST_UNSEEN = 0.1
"""What an option whose letter is not in the list may have at most, to be counted as nothing."""
AROUND = " \t\n\u0120\u2581()[]{}.,:;*_`'\"#"
"""What may stand around a letter: blanks, blanks as tokenizers write them, punctuation."""


class TopLogprobs(Rung):
    """Reads the letters among the most likely first tokens."""

    number, name = 2, "top log-probabilities"

    def body(self, prompt: str, options: Sequence[str]) -> dict[str, Any]:
        asked = prompt + lettered(options)
        return self.dialect.ask(asked, tokens=1, logprobs=True, top_logprobs=self.dialect.top)

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        body = self.body(prompt, options)
        read = partial(top_tokens, least=len(options))
        top = await call("/chat/completions", body, read, tokens_out=1)
        masses = letter_masses(top, len(options))
        if _unseen(top, masses) > MOST_UNSEEN:
            return Choice([0.0] * len(options), unread=1.0)
        return Choice(masses)

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        return Load(1, len(json.dumps(self.body(prompt, options))), 1)


def top_tokens(answer: Any, least: int = 2) -> list[tuple[str, float]]:
    """The most likely first tokens with their log-probabilities.

    Args:
        answer: of the server.
        least: with fewer, an option that is not among them cannot be told from one of no
            probability.

    Raises:
        Unreadable: they are missing, too few, or no log-probabilities.
    """
    choices = answer.get("choices") or [{}]
    given = choices[0].get("logprobs")
    content = given.get("content") if isinstance(given, dict) else None
    if not content:
        raise Unreadable("log-probabilities were asked for and are missing from the answer")
    listed = content[0].get("top_logprobs") or []
    if not listed:
        raise Unreadable("top_logprobs were asked for and are missing from the answer")
    if len(listed) < least:
        raise Unreadable(
            f"of the top_logprobs that were asked for {len(listed)} came back, for {least} options"
        )
    values = logprobs([t.get("logprob") for t in listed], "the top log-probabilities")
    checked([math.exp(value) for value in values], "the probabilities of the top tokens")
    return [(str(t["token"]), value) for t, value in zip(listed, values)]


def _unseen(top: Sequence[Sequence[Any]], masses: Sequence[float]) -> float:
    """What an option whose letter is not listed may have: no more than the last that is listed,
    and no more than what all of them leave."""
    if all(masses):
        return 0.0
    listed = [math.exp(float(value)) for _, value in top]
    return min(*listed, max(0.0, 1.0 - sum(listed)))


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

    >>> faked([[("A", 0.0), ("B", -100), ("C", -100)], [("B", 0.0), ("A", -100), ("C", -100)]])
    'faked: every value is 0 or -100'
    """
    values = [[float(v) for _, v in top] for top in lists]
    flat = {v for row in values for v in row}
    if len(flat) <= 2 < min(map(len, values)):
        return f"faked: every value is {' or '.join(f'{v + 0.0:g}' for v in sorted(flat)[::-1])}"
    if len(values) > 1 and all(row == values[0] for row in values):
        return f"faked: the same values for different questions ({values[0][:3]})"
    return ""
