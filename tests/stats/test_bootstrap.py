"""Intervals against scipy, theory and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from evenhand.errors import DataError, SpecError
from evenhand.stats import bootstrap
from evenhand.stats.bootstrap import clustered, interval


def covered(result, truth=0.0):
    return float(np.mean((result.low <= truth) & (truth <= result.high)))


def test_interval_against_scipy():
    x = np.random.default_rng(0).exponential(size=41)
    ours = interval(x, resamples=10_000)
    other = sps.bootstrap((x,), np.mean, method="percentile", n_resamples=10_000, rng=1)
    assert ours.estimate == pytest.approx(x.mean())
    assert ours.low == pytest.approx(other.confidence_interval.low, abs=0.03)
    assert ours.high == pytest.approx(other.confidence_interval.high, abs=0.03)


@pytest.mark.parametrize("method", ["percentile", "expanded"])
def test_many_columns_give_the_interval_of_each(method):
    x = np.random.default_rng(1).normal(size=(20, 3))
    together = interval(x, method=method)
    for j in range(3):
        alone = interval(x[:, j], method=method)
        assert together.low[j] == pytest.approx(alone.low)
        assert together.high[j] == pytest.approx(alone.high)


def test_same_seed_same_result_whatever_the_memory(monkeypatch):
    x = np.random.default_rng(2).normal(size=30)
    whole = interval(x, seed=3, resamples=300)
    assert interval(x, seed=4, resamples=300).low != whole.low
    monkeypatch.setattr(bootstrap, "BLOCK", 10_000)
    parts = interval(x, seed=3, resamples=300)
    assert (whole.low, whole.high) == pytest.approx((parts.low, parts.high))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_inside_the_range_of_the_values(x):
    result = interval(x, resamples=200)
    assert min(x) - 1e-9 <= result.low <= result.high <= max(x) + 1e-9


def test_coverage_against_theory():
    rng = np.random.default_rng(3)
    for n, low, high in [(8, 0.84, 0.93), (40, 0.91, 0.97)]:
        x = rng.normal(size=(n, 1_500))
        assert low <= covered(interval(x, resamples=500)) <= high
    assert covered(interval(rng.normal(size=(8, 1_500)), resamples=500, method="expanded")) > 0.9


@pytest.mark.parametrize("method", ["percentile", "expanded"])
def test_constant_values_give_an_interval_of_width_zero(method):
    result = interval([0.1] * 7, method=method)
    assert (result.low, result.high) == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "values: no values"),
        ([1.0], "one value cannot be resampled"),
        ([1.0, np.nan, 2.0], "values: 1 of 3 values are not finite"),
        ([np.inf, -np.inf], "values: 2 of 2 values are not finite"),
    ],
)
def test_undefined_input_gives_nan_with_a_reason(values, reason):
    for result in (
        interval(values),
        clustered(values, np.arange(len(values))) if len(values) != 1 else interval(values),
    ):
        assert np.isnan([result.low, result.high]).all()
        assert result.reason == reason


def test_clustered_by_single_values_equals_the_plain_interval():
    x = np.random.default_rng(5).normal(size=25)
    for method in ("percentile", "expanded"):
        one, two = interval(x, method=method), clustered(x, np.arange(25), method=method)
        assert (one.low, one.high) == pytest.approx((two.low, two.high))


def test_clustered_means_against_a_plain_loop():
    rng = np.random.default_rng(6)
    clusters = np.repeat(["a", "b", "c", "d", "e"], [1, 4, 2, 7, 3])
    x = rng.normal(size=17)
    result = clustered(x, clusters, resamples=4_000)
    rows = [np.flatnonzero(clusters == c) for c in "abcde"]
    drawn = [
        x[np.concatenate([rows[c] for c in rng.integers(0, 5, 5)])].mean() for _ in range(4_000)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.06)
    assert result.estimate == pytest.approx(x.mean())
    assert result.units == 5


def test_clustered_coverage_against_theory():
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(30), 6)
    x = rng.normal(size=(30, 800))[codes] + rng.normal(size=(180, 800))
    assert 0.9 <= covered(clustered(x, codes, resamples=500)) <= 0.97
    assert covered(interval(x, resamples=200)) < 0.8  # ignoring the clusters is too sure


def test_one_cluster_is_undefined_with_a_reason():
    result = clustered([1.0, 2.0], ["a", "a"])
    assert (result.estimate, result.reason) == (1.5, "one cluster cannot be resampled")
    assert np.isnan([result.low, result.high]).all()


def test_wrong_options_name_what_is_accepted():
    with pytest.raises(SpecError, match="method: unknown value 'bca'"):
        interval([1.0, 2.0], method="bca")
    with pytest.raises(SpecError, match="resamples: 1 is too few"):
        interval([1.0, 2.0], resamples=1)
    with pytest.raises(DataError, match="clusters: shape"):
        clustered([1.0, 2.0], ["a"])
