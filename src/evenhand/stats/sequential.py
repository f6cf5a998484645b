"""Looking more than once at data that grow: how much of an error rate each look may use.

The spending function of Lan and DeMets (1983) that gives about equal bounds (Pocock's),

    f(t) = a ln(1 + (e - 1) t),        t the share of the units of the last look that is possible,

lets look k use f(t_k) - f(t_(k-1)). Each look is tested at what it may use, so that the chance of
an error at any look is at most a, whatever the estimates have in common (union bound). How many
looks there are is fixed before the first.
"""

from __future__ import annotations

import itertools
import math

DOUBLING = 2


def spent(share: float, rate: float = 0.05) -> float:
    """How much of the rate may be used when this share of the units is known.

    >>> spent(1.0), round(spent(0.5), 4)
    (0.05, 0.031)
    """
    return rate * math.log1p((math.e - 1) * share)


def levels(looks: int, rate: float = 0.05) -> list[float]:
    """What each look may use, where every look doubles the units.

    >>> [round(a, 4) for a in levels(3)]
    [0.0179, 0.0131, 0.019]
    """
    used = [0.0, *(spent(DOUBLING ** (k - looks), rate) for k in range(1, looks + 1))]
    return [b - a for a, b in itertools.pairwise(used)]


def looks_within(budget: float, once: float, most: int = 6) -> int:
    """How many looks fit: the first is there, each further one asks twice as much as the last.

    >>> looks_within(600, 100), looks_within(100, 100), looks_within(600, 0.0)
    (3, 1, 6)
    """
    if once <= 0:
        return most
    return min(most, int(math.log2(budget / once + DOUBLING)))
