"""What calls use and cost: counted, foreseen, and stopped before a limit.

    cost = tokens in x price in / 1e6 + tokens out x price out / 1e6

Prices are the user's (they change, and differ by contract); without them the cost is unknown and
said to be. Calls under way count with what they may use at most, so that the limit holds even when
many are under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.errors import ModelError, SpecError

MILLION = 1_000_000
MOST_TOKENS = 10_000_000
"""More than any call can use: what a server counts beyond is no count."""
CHARACTERS_PER_TOKEN = 3.0
"""Before anything was counted; a little low, so that forecasts err on the dear side."""


@dataclass(frozen=True)
class Usage:
    """Calls and tokens; `estimated` where the server did not count them."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.estimated or other.estimated,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def usage_of(answer: Any, body_characters: int, tokens_out: int = 0) -> Usage:
    """What an answer says it used, in any of the dialects; what it leaves out is estimated on the
    dear side, so that a limit holds at a server that does not count.

    Args:
        answer: what came back, whatever that is.
        body_characters: sent.
        tokens_out: that may have come back at most.

    >>> usage_of({"usage": {"prompt_tokens": 7, "completion_tokens": 2}}, 30)
    Usage(calls=1, tokens_in=7, tokens_out=2, estimated=False)
    >>> usage_of({"usage": None}, 30, 48)
    Usage(calls=1, tokens_in=10, tokens_out=48, estimated=True)
    """
    whole = answer if isinstance(answer, Mapping) else {}
    given = whole.get("usage")
    told = given if isinstance(given, Mapping) else {}
    one = _count(told, "prompt_tokens", "input_tokens")
    one = _count(whole, "tokens_evaluated") if one is None else one
    two = _count(told, "completion_tokens", "output_tokens")
    two = _count(whole, "tokens_predicted") if two is None else two
    return Usage(
        1,
        round(body_characters / CHARACTERS_PER_TOKEN) if one is None else one,
        tokens_out if two is None else two,
        estimated=one is None or (two is None and tokens_out > 0),
    )


def _count(told: Mapping[str, Any], *names: str) -> int | None:
    """A number of tokens, where there is one that can be."""
    for name in names:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None


@dataclass(frozen=True)
class Prices:
    """Per million tokens, in whatever currency; None where not given."""

    tokens_in: float | None = None
    tokens_out: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        for option, value in (
            ("--price-in", self.tokens_in),
            ("--price-out", self.tokens_out),
            ("--max-cost", self.most),
        ):
            if value is not None and not value >= 0:
                raise SpecError(f"{option} {value!r}: expected 0 or more.")
        if self.most is not None and not self.known:
            raise SpecError(
                f"--max-cost {self.most}: what a call costs is unknown. Give your prices per "
                f"million tokens with: --price-in X --price-out Y"
            )

    @property
    def known(self) -> bool:
        return self.tokens_in is not None or self.tokens_out is not None

    def cost(self, usage: Usage) -> float | None:
        """What the usage costs; None without prices.

        >>> Prices(1.0, 2.0).cost(Usage(1, 500_000, 250_000))
        1.0
        """
        if not self.known:
            return None
        dear = usage.tokens_in * (self.tokens_in or 0) + usage.tokens_out * (self.tokens_out or 0)
        return dear / MILLION


class Meter:
    """Counts what is used, and refuses a call that might go beyond the limit."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.used = Usage()
        self._held = 0.0
        self._characters = 0
        self._tokens = 0
        """Of these characters; `used` also has the calls of earlier attempts at a run."""

    @property
    def characters_per_token(self) -> float:
        known = self._characters and self._tokens and not self.used.estimated
        return self._characters / self._tokens if known else CHARACTERS_PER_TOKEN

    def hold(self, characters: int, tokens_out: int) -> float:
        """Set aside what a call may cost.

        Raises:
            ModelError: it might go beyond the limit.
        """
        held = self.prices.cost(Usage(1, round(characters / CHARACTERS_PER_TOKEN), tokens_out))
        if held is None or self.prices.most is None:
            return 0.0
        spent = self.prices.cost(self.used) or 0.0
        if spent + self._held + held > self.prices.most:
            raise ModelError(
                f"--max-cost {self.prices.most:g}: {spent:.4g} is spent on {self.used.calls:,} "
                "calls, and the next might go beyond the limit. Finished calls are kept and not "
                "paid again; continue with: evenhand resume RUN --max-cost X"
            )
        self._held += held
        return held

    def settle(self, held: float, used: Usage | None = None, characters: int = 0) -> None:
        """Give back what was set aside, and count what the call really used."""
        self._held = max(0.0, self._held - held)
        if used is not None:
            self.used += used
            self._characters += characters
            self._tokens += used.tokens_in if characters else 0
