"""Units that do not vary: what is said of them, and what is not."""

from __future__ import annotations

import math

import pytest

from evenhand.stats.equivalence import inside
from evenhand.stats.estimate import ENOUGH, estimate


@pytest.mark.parametrize("units", [2, 3, ENOUGH - 1])
def test_few_units_without_spread_are_not_shown_to_lie_within_a_margin(units: int) -> None:
    found = estimate(0.0, 0.0, units - 1, units=units)
    assert found.value == 0
    assert found.p == 1
    assert math.isnan(found.low)
    assert math.isnan(inside(found, 0.1))
    assert f"{units} units that do not vary" in found.reason


def test_enough_units_without_spread_are() -> None:
    found = estimate(0.0, 0.0, ENOUGH - 1, units=ENOUGH)
    assert (found.low, found.high, found.reason) == (0, 0, "")
    assert inside(found, 0.1) < 0.05
