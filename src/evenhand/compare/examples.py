"""The example that a finding shows: the median item among those that go the way of its claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Example:
    """The median item of those that go the way of a claim.

    Attributes:
        place: where it is in the values.
        agree: how many items go this way.
        size: how many have a value.
    """

    place: int
    agree: int
    size: int

    def described(self, what: str) -> str:
        """Return its place among the items in words.

        >>> Example(0, 3, 4).described("texts")
        'the median of the 3 of 4 texts that go this way'
        """
        return f"the median of the {self.agree} of {self.size} {what} that go this way"


def median_example(
    values: npt.ArrayLike,
    way: float,
    *,
    ties: Sequence[Any] | npt.NDArray[Any] | None = None,
    upper: bool = False,
) -> Example | None:
    """Return the median item among those whose value has the sign of `way`, None without any.

    Args:
        values: one per item; NaN is left out.
        way: the value of the claim; one that is not above 0 asks for values below 0.
        ties: puts items of equal value in order; by default their own order.
        upper: of an even number, take the one with the larger value in the direction of the claim.

    >>> median_example([0.1, 0.4, -0.2, 0.3, float("nan")], 1.0)
    Example(place=3, agree=3, size=4)
    >>> median_example([0.1, 0.2], -1.0) is None
    True
    """
    ahead = np.asarray(values, np.float64) * (1.0 if way > 0 else -1.0)
    agree = np.flatnonzero(ahead > 0).tolist()
    if not agree:
        return None
    agree.sort(key=lambda k: (ahead[k], *(() if ties is None else (ties[k],))))
    place = agree[(len(agree) - (not upper)) // 2]
    return Example(place, len(agree), int(np.isfinite(ahead).sum()))
