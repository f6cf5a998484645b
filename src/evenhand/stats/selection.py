"""One error rate over a whole suite, and intervals that know they were picked.

Each probe is a family of tests. A suite asks first which families hold anything at all (the Simes
p of a family), then which tests inside the families it kept (Benjamini and Bogomolov 2014): the
expected share of false findings, averaged over the kept families, stays below the rate, and a model
without any difference is called even in 95 of 100 suites, however many probes a suite has.

Intervals of findings that were picked are widened to the level 1 - rate * picked / tested
(Benjamini and Yekutieli 2005), so that 95 of 100 *reported* intervals hold the truth. At that level
a finding is picked exactly when its interval leaves the ideal out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.multiple import benjamini_hochberg

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """What a suite makes of one family of tests.

    Attributes:
        q: per test; at most the rate exactly for what the suite detects.
        threshold: the largest p that is detected in this family (0: nothing can be).
        simes: p of the family as a whole.
        kept: whether the suite looked into it.
    """

    q: Floats
    threshold: float
    simes: float
    kept: bool


def simes(p: npt.ArrayLike) -> float:
    """p that no test of a family is true (Simes 1986): min over i of m p_(i) / i; NaN if empty.

    >>> simes([0.01, 0.5, 0.9])
    0.03
    """
    known = np.asarray(p, np.float64)
    known = np.sort(known[~np.isnan(known)])
    if not len(known):
        return float("nan")
    return float(min(1.0, (len(known) * known / np.arange(1, len(known) + 1)).min()))


def hierarchical(families: Sequence[npt.ArrayLike], rate: float = 0.05) -> list[Family]:
    """q of every test of every family, at one rate over all of them.

    With m families of which R have a Simes p that Benjamini-Hochberg keeps at the rate, tests of a
    kept family are detected at rate * R / m inside it: q = min(1, q_inside * m / R). In a family
    that was not kept no q is at most the rate.

    >>> [f.q.round(3).tolist() for f in hierarchical([[0.001, 0.2], [0.3, 0.8]])]
    [[0.004, 0.4], [0.6, 0.8]]
    """
    tested = [np.asarray(p, np.float64) for p in families]
    whole = np.asarray([simes(p) for p in tested])
    outer = benjamini_hochberg(whole)
    m = int((~np.isnan(whole)).sum())
    kept = [bool(q <= rate) for q in outer]
    share = sum(kept) / m if m else 0.0
    out = []
    for p, s, q, keep in zip(tested, whole, outer, kept):
        inside = benjamini_hochberg(p)
        if keep:
            # Division last: the same comparison as "p at most the threshold".
            adjusted = np.minimum(1.0, inside / share)
            picked = adjusted <= rate
            line = float(p[picked].max(initial=0.0))
            out.append(Family(adjusted, line, float(s), True))
        else:
            out.append(Family(np.fmax(inside, q), 0.0, float(s), False))
    return out


def over_families(labels: Sequence[str], p: Sequence[float], rate: float = 0.05) -> list[float]:
    """q of each test, where tests with the same label form a family.

    >>> over_families(["a", "b", "a"], [0.001, 0.3, 0.2])
    [0.004, 0.3, 0.4]
    """
    order = list(dict.fromkeys(labels))
    places = [[i for i, label in enumerate(labels) if label == name] for name in order]
    found = hierarchical([[p[i] for i in at] for at in places], rate)
    q = {i: float(v) for at, family in zip(places, found) for i, v in zip(at, family.q)}
    return [q[i] for i in range(len(p))]


def picked_level(picked: int, tested: int, share: float = 1.0, rate: float = 0.05) -> float:
    """Level of the interval of a picked finding: 1 - rate * share * picked / tested.

    `share` is the share of families that were kept (R / m), by which the rate inside a family is
    lowered.

    >>> picked_level(2, 10)
    0.99
    """
    return 1.0 - rate * share * picked / max(1, tested)
