"""What every rung gives: a probability for each option, by calls to a server."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from evenhand.models.endpoints.client import Calls, Unreadable
from evenhand.models.endpoints.dialect import Dialect
from evenhand.requests import Choose

NAN = float("nan")
T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """One answered question: probability of each option, share refused, share unread, and the
    mass of all options together (None: their sum)."""

    probabilities: Sequence[float]
    refused: float = NAN
    unread: float = 0.0
    mass: float | None = None


@dataclass(frozen=True)
class Load:
    """What one question takes: calls, characters sent in all of them, tokens that come back."""

    calls: int
    characters: int
    tokens_out: int


class Rung:
    """A way to learn which option is taken.

    Attributes:
        number: its place on the ladder, 1 is best.
        name: as it is recorded.
        sampled: whether probabilities are shares of sampled answers.
        way: which of several forms of it this server knows.
    """

    number: ClassVar[int]
    name: ClassVar[str]
    sampled: ClassVar[bool] = False
    way: str = ""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @property
    def as_chat(self) -> bool:
        """Whether questions are turns of a conversation."""
        return True

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        """Ask one question."""
        raise NotImplementedError

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        """What asking it takes, without asking."""
        raise NotImplementedError


def message(answer: Any) -> dict[str, Any]:
    """The message of a chat answer."""
    choices = answer.get("choices")
    if not choices or not isinstance(choices[0].get("message"), dict):
        raise Unreadable("the answer lacks choices[0].message")
    found: dict[str, Any] = choices[0]["message"]
    return found


def sample_seed(seed: int, draw: str) -> int:
    """A server's seed for one draw; equal draws of different questions share it.

    >>> sample_seed(0, "1") == sample_seed(0, "1"), sample_seed(0, "1") == sample_seed(1, "1")
    (True, False)
    """
    return int(hashlib.sha256(f"{seed}:{draw}".encode()).hexdigest()[:7], 16)


def checked(values: Sequence[Any], what: str) -> list[float]:
    """Probabilities as they must be: numbers between 0 and 1 that sum to at most 1.

    Raises:
        Unreadable: naming the first thing that is wrong.
    """
    numbers = _numbers(values, what)
    if any(not math.isfinite(v) or v < 0 or v > 1 + 1e-3 for v in numbers):
        raise Unreadable(f"{what} are not probabilities: {numbers!r}")
    if sum(numbers) > 1 + 1e-2:
        raise Unreadable(f"{what} sum to {sum(numbers):.3f}")
    return numbers


FAKED_LOGPROB = -9998.0
"""Servers that know no log-probability write -9999 ("very unlikely") where one is asked for."""


def logprobs(values: Sequence[Any], what: str) -> list[float]:
    """Log-probabilities as they must be: numbers of at most 0, and not made up.

    >>> logprobs([-0.5, -3], "they")
    [-0.5, -3.0]

    Raises:
        Unreadable: naming the first thing that is wrong.
    """
    numbers = _numbers(values, what)
    wrong = [v for v in numbers if math.isnan(v) or v > 1e-6]
    if wrong:
        raise Unreadable(f"{what} are above 0 or undefined: {wrong[:3]!r}")
    if len(numbers) > 1 or numbers[:1] != [0.0]:  # a single sure token is no fake
        flat = {v for v in numbers if v != 0.0}
        if all(v <= FAKED_LOGPROB for v in flat) and flat:
            zero = [0.0] if 0.0 in numbers else []
            raise Unreadable(f"{what} are faked: every value is {_either([*zero, *flat])}")
    return numbers


def _either(values: Sequence[float]) -> str:
    return " or ".join(f"{v + 0.0:g}" for v in sorted(values, reverse=True))


def _numbers(values: Sequence[Any], what: str) -> list[float]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unreadable(f"{what} are not numbers: {value!r}")
    try:
        return [float(value) for value in values]
    except OverflowError:
        raise Unreadable(f"{what} are not numbers: one has hundreds of digits") from None


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What several pieces of work give; the first failure ends the others, so that nothing more
    is paid."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as many:
        first: BaseException = many
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]
