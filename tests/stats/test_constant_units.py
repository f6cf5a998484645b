"""Units that do not vary: what is said of them, and what is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from evenhand.audit.comparison.paired import step
from evenhand.audit.estimates import open_interval
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.stats.equivalence import inside, not_worse, units_to_settle
from evenhand.stats.estimate import ENOUGH, estimate
from evenhand.stats.mixed import Design, Factor


@pytest.mark.parametrize("units", [2, 3, ENOUGH - 1])
def test_few_units_without_spread_are_not_shown_to_lie_within_a_margin(units: int) -> None:
    found = estimate(0.0, 0.0, units - 1, units=units)
    assert found.value == 0
    assert found.p == 1
    assert math.isnan(found.low)
    assert math.isnan(inside(found, 0.1))
    assert f"{units} units that do not vary" in found.reason


@pytest.mark.parametrize(("units", "shown"), [(ENOUGH, False), (58, False), (59, True)])
def test_equal_units_bound_the_share_of_others_and_no_more(units: int, shown: bool) -> None:
    """One answer in 20 may still be otherwise when 58 are alike: (1 - 0.05) ** 58 > 0.05."""
    found = replace(estimate(0.0, 0.0, 1, units=units), room=1.0)
    assert (inside(found, 0.05) <= 0.05) == shown
    assert (not_worse(found, found, 0.05) <= 0.05) == (units >= 72)  # either side: twice the p
    assert units_to_settle(found, 0.05) == 59


def test_where_nothing_says_how_far_others_lie_nothing_is_shown() -> None:
    found = estimate(0.0, 0.0, 1, units=1_000)
    assert math.isnan(inside(found, 0.1))
    assert math.isnan(not_worse(found, found, 0.1))
    assert units_to_settle(found, 0.1) is None


@pytest.mark.parametrize("units", [ENOUGH, 7, 40])
def test_interval_and_p_of_equal_units_off_the_ideal_agree(units: int) -> None:
    found = estimate(0.4, 0.0, 1, units=units, ideal=0.1)
    assert found.p == 2.0 ** (1 - units) <= 0.05
    assert 0.1 < found.low < 0.4 < found.high


def test_the_interval_of_units_that_show_the_ideal_is_open() -> None:
    bounded, free = (MetricCard("m", "m", low=-end, high=end) for end in (1.0, math.inf))
    flat = Finding("p/x", "p", "m", 0.0, "", 0.0, 0.0, p=1.0, n=20, error=0.0)
    found = open_interval(flat, bounded)
    assert round(found.high, 3) == 0.168 == -round(found.low, 3)
    assert open_interval(found, bounded) == found
    assert math.isnan(open_interval(flat, free).low)
    assert "20 units that do not vary" in open_interval(flat, free).reason
    varies = replace(flat, low=-0.1, high=0.1)
    assert open_interval(varies, bounded) == varies


def test_how_coarse_items_are_says_what_equal_runs_leave_open() -> None:
    counted = pa.table({"yes": [0.0, 1.0, 0.5], "who": ["a", "b", "c"]})
    scored = pa.table({"score": [0.123456, 0.123457, 0.9], "refused": [0.0, 0.0, 0.0]})
    assert step([counted, counted]) == 0.5
    assert step([scored, scored]) == pytest.approx(1e-6)
    assert math.isnan(step([pa.table({"yes": [0.0, 0.0]})] * 2))


@pytest.mark.parametrize("size", [1e-9, 0.3, 3.0, 1e6])
def test_what_squares_leave_behind_is_no_spread(size: float) -> None:
    """Values that are all the same get the p of equal signs, whatever is regressed on."""
    x = np.random.default_rng(0).normal(size=9)
    line = np.stack([np.ones(9), x - x.mean()], axis=1)
    height, slope = (
        Design([Factor(np.arange(9))], line, way).estimate(np.full(9, size))
        for way in ([1.0, 0.0], [0.0, 1.0])
    )
    assert height.p == 2.0**-8
    assert height.low > 0
    assert abs(slope.value) < 1e-12 * size
    assert slope.p == 1
