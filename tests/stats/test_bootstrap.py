"""Intervals against scipy, theory and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from evenhand.errors import DataError, SpecError
from evenhand.stats.bootstrap import (
    clustered,
    crossed,
    crossed_means,
    from_replicates,
    interval,
)


def covered(result, truth=0.0):
    return float(np.mean((result.low <= truth) & (truth <= result.high)))


@pytest.mark.parametrize("statistic", [np.mean, np.median])
@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_interval_against_scipy(statistic, method, theirs):
    x = np.random.default_rng(0).exponential(size=41)
    ours = interval(x, statistic, method=method, resamples=10_000)
    other = sps.bootstrap((x,), statistic, method=theirs, n_resamples=10_000, rng=1)
    assert ours.estimate == pytest.approx(statistic(x))
    assert ours.low == pytest.approx(other.confidence_interval.low, abs=0.03)
    assert ours.high == pytest.approx(other.confidence_interval.high, abs=0.03)
    assert ours.standard_error == pytest.approx(other.standard_error, rel=0.05)


@pytest.mark.parametrize("method", ["percentile", "expanded", "bca"])
def test_many_columns_give_the_interval_of_each(method):
    x = np.random.default_rng(1).normal(size=(20, 3))
    together = interval(x, method=method)
    for j in range(3):
        alone = interval(x[:, j], method=method)
        assert together.low[j] == pytest.approx(alone.low)
        assert together.high[j] == pytest.approx(alone.high)
    turned = interval(x.T, method=method, axis=1)
    assert turned.low == pytest.approx(together.low)


def test_same_seed_same_result_whatever_the_memory():
    x = np.random.default_rng(2).normal(size=30)
    for statistic in (np.mean, np.median):
        whole = interval(x, statistic, seed=3, resamples=300)
        parts = interval(x, statistic, seed=3, resamples=300, max_bytes=10_000)
        assert whole.replicates == pytest.approx(parts.replicates)
        assert interval(x, statistic, seed=4, resamples=300).low != whole.low


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


def test_level_is_respected():
    x = np.random.default_rng(4).normal(size=(60, 1_500))
    assert 0.75 <= covered(interval(x, level=0.8, resamples=400)) <= 0.84


@pytest.mark.parametrize("method", ["percentile", "expanded", "bca"])
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
        interval(values, np.median),
        clustered(values, np.arange(len(values))) if len(values) != 1 else interval(values),
    ):
        assert np.isnan([result.low, result.high]).all()
        assert result.reason == reason
        assert np.isnan(result.standard_error)


def test_clustered_by_single_values_equals_the_plain_interval():
    x = np.random.default_rng(5).normal(size=25)
    for method in ("percentile", "bca"):
        one, two = interval(x, method=method), clustered(x, np.arange(25), method=method)
        assert (one.low, one.high) == pytest.approx((two.low, two.high))


def test_clustered_means_against_a_plain_loop():
    rng = np.random.default_rng(6)
    clusters = np.repeat(["a", "b", "c", "d", "e"], [1, 4, 2, 7, 3])
    x = rng.normal(size=17)
    result = clustered(x, clusters, resamples=4_000)

    def plain_mean(rows, axis):
        return np.mean(rows, axis=axis)

    for method in ("percentile", "bca"):
        fast = clustered(x, clusters, resamples=4_000, method=method)
        slow = clustered(x, clusters, statistic=plain_mean, resamples=4_000, method=method)
        assert fast.low == pytest.approx(slow.low, abs=0.06)
        assert fast.high == pytest.approx(slow.high, abs=0.06)
    assert result.estimate == pytest.approx(x.mean())
    assert result.units == (5,)


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


def test_crossed_forms_agree_with_each_other_and_with_a_plain_loop():
    rng = np.random.default_rng(8)
    rows, cols = (a.ravel() for a in np.indices((6, 5)))
    kept = rng.random(30) < 0.8
    rows, cols = rows[kept], cols[kept]
    x = rng.normal(size=(kept.sum(), 2)) + rows[:, None]
    dense = crossed(x, rows, cols, resamples=300)
    sums, counts = np.zeros((6, 5, 2)), np.zeros((6, 5))
    np.add.at(sums, (rows, cols), x)
    np.add.at(counts, (rows, cols), 1)
    cells = crossed_means(sums, counts, resamples=300)
    assert dense.low == pytest.approx(cells.low)
    first, second = (np.random.default_rng(s) for s in np.random.SeedSequence(0).spawn(2))
    picks = [g.integers(0, n, size=(300, n)) for g, n in ((first, 6), (second, 5))]
    for b in range(5):
        w = (
            np.bincount(picks[0][b], minlength=6)[rows]
            * np.bincount(picks[1][b], minlength=5)[cols]
        )
        assert dense.replicates[b] == pytest.approx(w @ x / w.sum())
    assert dense.units == (6, 5)


def test_sparse_crossed_designs_take_another_route_to_the_same_place():
    rng = np.random.default_rng(9)
    rows, cols = np.arange(60) % 30, np.arange(60) % 29
    x = rng.normal(size=60)
    sparse = crossed(x, rows, cols, resamples=200, max_bytes=20_000)
    sums, counts = np.zeros((30, 29)), np.zeros((30, 29))
    np.add.at(sums, (rows, cols), x)
    np.add.at(counts, (rows, cols), 1)
    dense = crossed_means(sums, counts, resamples=200)
    assert sparse.replicates == pytest.approx(dense.replicates)


def test_counts_may_differ_by_test():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(8, 7, 3))
    counts = (rng.random((8, 7, 3)) < 0.7).astype(int)
    result = crossed_means(np.where(counts, x, np.nan), counts, resamples=200)
    for k in range(3):
        alone = crossed_means(x[..., k] * counts[..., k], counts[..., k], resamples=200)
        assert result.low[k] == pytest.approx(alone.low)
        assert result.estimate[k] == pytest.approx(x[..., k][counts[..., k] > 0].mean())


def test_crossed_coverage_against_theory():
    rng = np.random.default_rng(11)
    r, c, k = 25, 20, 300
    x = rng.normal(size=(r, 1, k)) + rng.normal(size=(1, c, k)) + rng.normal(size=(r, c, k))
    assert covered(crossed_means(x, np.ones((r, c)), resamples=400)) >= 0.9
    noise = rng.normal(size=(r, c, k))
    assert covered(crossed_means(noise, np.ones((r, c)), resamples=400)) >= 0.97


def test_one_row_or_a_test_without_values_is_undefined_with_a_reason():
    assert "one row cannot be resampled" in crossed([1.0, 2.0], [0, 0], [0, 1]).reason
    assert "one column cannot be resampled" in crossed([1.0, 2.0], [0, 1], [0, 0]).reason
    assert crossed_means(np.zeros((3, 3)), np.zeros((3, 3))).reason == "no observations"
    counts = np.ones((4, 4, 2))
    counts[..., 1] = 0
    result = crossed_means(np.ones((4, 4, 2)), counts)
    assert np.isnan(result.estimate).tolist() == [False, True]
    assert np.isnan(result.low).tolist() == [False, True]
    assert result.reason == "1 of 2 intervals have no defined replicates"


def test_resamples_without_any_cell_are_left_out_and_counted():
    result = crossed([1.0, 2.0, 3.0], [0, 1, 2], [0, 1, 2], resamples=500)
    assert result.undefined > 0
    assert 1 <= result.low <= result.high <= 3
    assert np.isfinite(result.standard_error)


def test_replicates_from_elsewhere_make_an_interval():
    result = from_replicates([1.0, 2.0], np.arange(101)[:, None] * [1.0, 2.0], level=0.9)
    assert result.low.tolist() == pytest.approx([5, 10])
    assert result.high.tolist() == pytest.approx([95, 190])
    assert from_replicates(1.0, []).reason == "fewer than two replicates"
    assert from_replicates(1.0, [1.0, 2.0], reason="no names").reason == "no names"


def test_wrong_options_name_what_is_accepted():
    with pytest.raises(SpecError, match="level: 95 is out of range"):
        interval([1.0, 2.0], level=95)
    with pytest.raises(SpecError, match="method: unknown value 'bca'"):
        crossed([1.0, 2.0], [0, 1], [0, 1], method="bca")
    with pytest.raises(SpecError, match="resamples: 1 is too few"):
        interval([1.0, 2.0], resamples=1)
    with pytest.raises(DataError, match="clusters: shape"):
        clustered([1.0, 2.0], ["a"])
    with pytest.raises(DataError, match="counts: shape"):
        crossed_means(np.zeros((2, 3)), np.zeros((3, 2)))
