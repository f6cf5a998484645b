"""Reliability from repeated runs, and the ceiling it puts on a correlation."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.reliability import attenuation_ceiling, reliability


def test_interval_and_p_are_those_of_a_ratio_of_variances() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    again, points = rng.normal(size=6), rng.normal(scale=2, size=25)
    found = reliability(again, points, level=0.9)
    ratio = again.var(ddof=1) / points.var(ddof=1)
    assert found.reliability == pytest.approx(1 - ratio, abs=1e-14)
    assert found.low == pytest.approx(1 - ratio / stats.f.ppf(0.05, 5, 24), abs=1e-10)
    assert found.high == pytest.approx(1 - ratio / stats.f.ppf(0.95, 5, 24), abs=1e-10)
    assert found.p == pytest.approx(stats.f.sf(1 / ratio, 24, 5), abs=1e-12)


def test_the_interval_covers_the_truth_at_its_level() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(800):
        found = reliability(rng.normal(size=4), rng.normal(scale=2, size=20))
        covered += found.low <= 0.75 <= found.high
    assert covered / 800 == pytest.approx(0.95, abs=0.025)


def test_the_ceiling_is_where_a_perfect_relation_ends_up() -> None:
    rng = np.random.default_rng(2)
    truth = rng.normal(size=20_000)
    seen = truth + rng.normal(scale=1.5, size=20_000)
    found = reliability(rng.normal(scale=1.5, size=20_000), seen)
    assert np.corrcoef(truth, seen)[0, 1] == pytest.approx(found.ceiling, abs=0.02)
    both = attenuation_ceiling(found.reliability, found.reliability)
    other = truth + rng.normal(scale=1.5, size=20_000)
    assert np.corrcoef(other, seen)[0, 1] == pytest.approx(both, abs=0.02)


@pytest.mark.parametrize(
    ("again", "points", "reason"),
    [
        ([1.0], [1.0, 2.0], "1 replicates are too few, 2 are needed"),
        ([1.0, np.nan], [1.0, 2.0], "1 replicates are too few, 2 are needed"),
        ([1.0, 2.0], [1.0], "1 points are too few, 2 are needed"),
        ([1.0, 2.0], [3.0, 3.0], "all points are equal"),
    ],
)
def test_undefined_has_a_reason(again: list[float], points: list[float], reason: str) -> None:
    found = reliability(again, points)
    assert np.isnan(found.reliability)
    assert found.reason == reason


def test_equal_repeats_are_perfectly_reliable() -> None:
    found = reliability([0.5, 0.5, 0.5], [0.1, 0.9, 0.4])
    assert (found.reliability, found.low, found.high, found.ceiling) == (1.0, 1.0, 1.0, 1.0)
