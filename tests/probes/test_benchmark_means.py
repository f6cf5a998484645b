"""The mean that benchmarks share: intervals, p and what cannot be known."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.clustered_means import Cells, clustered_mean, halves


def test_the_interval_of_a_mean_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = alarms = 0
    for _ in range(200):
        effects = rng.normal(0, 1, 12)
        values = (effects[:, None] + rng.normal(0, 0.3, (12, 5))).ravel()
        row = clustered_mean(values, np.repeat(np.arange(12), 5))
        hits += row.low <= 0 <= row.high
        alarms += row.p <= 0.05
    assert 0.90 <= hits / 200 <= 0.98
    assert hits + alarms == 200  # p and interval are one test


def test_one_value_a_cluster_is_the_t_test_and_two_strata_are_welchs() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    x, y = rng.normal(0.4, 1, 20), rng.normal(0, 1, 20)
    one = clustered_mean(x, range(20))
    assert one.p == pytest.approx(stats.ttest_1samp(x, 0).pvalue)
    assert one.freedom == pytest.approx(19)
    both = np.concatenate([2 * x, -2 * y])
    two = clustered_mean(both, range(40), strata=np.repeat([0, 1], 20))
    assert two.value == pytest.approx(x.mean() - y.mean())
    assert two.error == pytest.approx(np.sqrt(x.var(ddof=1) / 20 + y.var(ddof=1) / 20))
    assert two.freedom == pytest.approx(38)
    assert two.p == pytest.approx(stats.ttest_ind(x, y).pvalue)


def test_freedom_and_variance_are_those_of_the_whole_matrices() -> None:
    rng = np.random.default_rng(2)
    codes, kinds = rng.integers(0, 6, 60), rng.integers(0, 2, 60)
    y = rng.normal(size=60)
    cells = Cells.of(y, codes, kinds)
    x = np.eye(2)[kinds]
    w = x @ np.diag(1 / x.sum(axis=0)) @ [0.5, 0.5]
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    annihilate = np.eye(60) - hat
    columns = []
    for c in range(6):
        at = np.flatnonzero(codes == c)
        values, vectors = np.linalg.eigh(annihilate[np.ix_(at, at)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        columns.append(annihilate[:, at] @ root @ w[at])
    g = np.stack(columns, axis=1)
    found = cells.estimate()
    assert found.error**2 == pytest.approx(((g.T @ y) ** 2).sum())
    b = g.T @ g  # items are independent: psi is the number of items
    right = np.trace(b) ** 2 / np.trace(b @ b)
    assert cells._freedom(np.full(2, 0.5), cells.counts) == pytest.approx(right)


def test_clusters_that_agree_to_the_digit_are_no_certainty() -> None:
    # 120 answers, 4 templates, 14 of 30 right in each: .467 [.467, .467] would be a lie.
    values, templates = ([1.0] * 14 + [0.0] * 16) * 4, np.repeat(range(4), 30)
    row = clustered_mean(values, templates, ideal=1.0, bounds=(0.0, 1.0))
    assert row.value == pytest.approx(14 / 30)
    assert row.low < 0.2 < 0.7 < row.high
    assert np.isnan(row.detectable)
    twice = clustered_mean(values * 2, np.tile(templates, 2), ideal=1.0, bounds=(0.0, 1.0))
    assert (twice.low, twice.high) == pytest.approx((row.low, row.high))


@pytest.mark.parametrize(("units", "told"), [(2, False), (5, False), (6, True), (30, True)])
def test_values_that_are_all_alike_have_an_exact_interval(units: int, told: bool) -> None:
    row = clustered_mean([100.0] * units, range(units), ideal=50.0, bounds=(0.0, 100.0))
    assert (row.p <= 0.05) is told
    assert (row.low > 50.0) is told
    assert row.high == 100.0
    even = clustered_mean([0.0] * units, range(units), bounds=(-1.0, 1.0))
    assert (even.p, even.value) == (1.0, 0.0)
    assert even.low < 0 < even.high


def test_a_stratum_of_one_cluster_has_no_interval_and_says_so() -> None:
    row = clustered_mean([1.0, 0.0, 1.0], "abc", strata="xxy")
    assert row.value == 0.75
    assert np.isnan(row.low)
    assert np.isnan(row.p)
    assert row.reason == "a part with one cluster of items: no interval, no test"


def test_random_halves_find_nothing_whatever_clusters_are_like() -> None:
    rng = np.random.default_rng(3)
    codes = np.repeat(range(40), rng.integers(1, 30, 40))
    values = 3 + rng.normal(0, 1, 40)[codes] + rng.normal(size=len(codes))
    tests, alarms = halves(values, codes, rng.integers(0, 2, len(codes)), splits=400)
    assert tests == 400
    assert alarms / tests <= 0.07
