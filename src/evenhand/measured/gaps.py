"""The gap between two groups, over whatever was sampled: names, cases, or the rows themselves.

    gap = mean outcome of the first group - mean outcome of the second

One sampled factor: clusters of rows (`stats.clustered_means`), so that cases which both groups
share are pairs. Names and cases: crossed factors (`stats.mixed`), every case with a level l of its
own in the fixed part and its difference d between the groups a draw,

    y = m_group + l_case + u_name +- d_case / 2 + e

so that groups are compared within cases, however unevenly these are shared out between them. Where
no case is about both groups there is nothing to compare within; cases are then draws like names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.clustered_means import Cells, of_shares
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
WAY = np.asarray([1.0, -1.0])
SHARE = (0.0, 1.0)
ONE_CASE = "one case is about both groups: no interval, no test"


@dataclass(frozen=True)
class Sampled:
    """What each row belongs to; None where the table does not say."""

    names: Codes | None = None
    cases: Codes | None = None

    @property
    def over(self) -> tuple[str, ...]:
        """What claims generalise over."""
        known = (("names", self.names), ("cases", self.cases))
        return tuple(word for word, codes in known if codes is not None) or ("rows",)

    @property
    def method(self) -> str:
        if len(self.over) > 1:
            return "names and cases as crossed samples, Satterthwaite t"
        return f"t over {self.over[0]}, robust to what their rows share (CR2)"

    def clusters(self, n: int) -> Codes:
        """The one sampled factor, names before cases."""
        known = [c for c in (self.names, self.cases) if c is not None]
        return known[0] if known else np.arange(n)


def gap(
    values: Floats,
    first: npt.NDArray[np.bool_],
    sampled: Sampled,
    *,
    family: int = 1,
    rate: float = 0.05,
) -> Estimate:
    """The gap with its interval and p.

    >>> values = np.asarray([1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    >>> found = gap(values, np.arange(8) < 4, Sampled())
    >>> found.value, round(found.p, 2)
    (0.5, 0.21)
    """
    if not first.any() or first.all():
        return Estimate(np.nan, reason="one of the groups has no readable outcome")
    how: dict[str, Any] = {"family": family, "rate": rate}
    cells = Cells.of(values, sampled.clusters(len(values)), np.where(first, 0, 1))
    decided = bool(np.isin(values, SHARE).all())
    if sampled.names is None or sampled.cases is None:
        found = cells.estimate(WAY, **how, bounds=SHARE if decided else None)
        return _seen(found, cells, cells.from_items(WAY) if decided else 0.0)
    # Rows of one name in one case are one answer, as often as it was asked.
    place = np.stack([sampled.names, sampled.cases, first], axis=1)
    asked, codes = np.unique(place, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    values = np.bincount(codes, values) / np.bincount(codes)
    names, first = asked[:, 0], asked[:, 2] > 0
    cases = np.unique(asked[:, 1], return_inverse=True)[1]
    fixed = np.stack([first, ~first], axis=1).astype(np.float64)
    shared = len(set(cases[first]) & set(cases[~first]))
    if shared == 1:  # its own difference cannot be told from that of the groups
        value = float(values[first].mean() - values[~first].mean())
        return Estimate(value, units=1, reason=ONE_CASE)
    if shared:
        half = np.where(first, 0.5, -0.5)
        design = Design([Factor(names), Factor(cases, half)], fixed, WAY, within=cases)
    else:
        design = Design([Factor(names), Factor(cases)], fixed, WAY)
    found = design.estimate(values, **how)
    each = design.shares * design.components(values)[:, 0]
    return _seen(found, cells, float(each[-1] / each.sum()) if decided and each.any() else 0.0)


def _seen(found: Estimate, cells: Cells, share: float) -> Estimate:
    """Of decisions: what is detectable with the spread of shares as far apart."""
    if not (share and found.detectable > 0):
        return found
    return replace(found, detectable=of_shares(found, cells, SHARE, share, WAY))


def balanced(
    groups: Sequence[str], cases: Codes | None, pair: tuple[str, str]
) -> npt.NDArray[np.bool_]:
    """Rows of the two groups; of cases only those that both have."""
    who = np.asarray(groups)
    keep = np.isin(who, pair)
    if cases is None:
        return keep
    both = set(cases[who == pair[0]].tolist()) & set(cases[who == pair[1]].tolist())
    return np.asarray(keep & np.isin(cases, list(both))) if both else keep
