"""Two-sample, shared and paired tests against scipy, theory and hand counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from evenhand.errors import DataError, SpecError
from evenhand.stats import permutation
from evenhand.stats._draws import Plan, combination_rows, sign_blocks, split_blocks
from evenhand.stats.permutation import shared, two_sample

numbers = st.floats(-100, 100, allow_nan=False, width=32)
small_samples = st.lists(numbers, min_size=1, max_size=5)


def mean_difference(x, y, axis=-1):
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)


@pytest.mark.parametrize(("n_x", "n_y"), [(4, 4), (3, 6), (2, 5), (7, 2)])
def test_exact_p_against_scipy(n_x, n_y):
    rng = np.random.default_rng(n_x)
    x, y = rng.normal(0.5, 1, n_x), rng.normal(0, 1, n_y)
    ours = two_sample(x, y, statistic="mean-difference")
    for side, p in [("greater", ours.p_right), ("less", ours.p_left)]:
        theirs = sps.permutation_test(
            (x, y), mean_difference, n_resamples=np.inf, alternative=side, vectorized=True
        )
        assert p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.method == "exact"
    assert ours.n_partitions == math.comb(n_x + n_y, n_x)


def test_sampled_p_against_exact_within_monte_carlo_error():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.6, 1, 9), rng.normal(0, 1, 8)
    exact = two_sample(x, y)
    sampled = two_sample(x, y, samples=40_000, max_exact=0)
    assert (exact.method, sampled.method) == ("exact", "sampled")
    for name in ("p_right", "p_left", "p_two_sided"):
        assert getattr(sampled, name) == pytest.approx(getattr(exact, name), abs=0.012)


def test_two_sided_p_uses_the_difference_of_means_for_unequal_sizes():
    x, y = [5.0, 0.0], [1.0, 2.0, 0.0, 3.0, 1.0]
    pooled = np.array(x + y)
    rows = combination_rows(7, 2, 0, 21)
    inside = pooled[rows].mean(axis=1)
    outside = (pooled.sum() - pooled[rows].sum(axis=1)) / 5
    observed = abs(np.mean(x) - np.mean(y))
    expected = np.mean(np.abs(inside - outside) >= observed - 1e-9)
    for statistic in ("sum-difference", "mean-difference"):
        result = two_sample(x, y, statistic=statistic)
        assert result.p_two_sided == pytest.approx(expected)


def test_the_statistic_is_a_difference_of_sums_or_of_means():
    x, y = [1.5, 2.0, 9.0], [0.5, 0.25]
    for statistic, value in [("sum-difference", 11.75), ("mean-difference", 12.5 / 3 - 0.375)]:
        assert two_sample(x, y, statistic=statistic).statistic == pytest.approx(value)


@given(small_samples, small_samples)
@settings(max_examples=60, deadline=None)
def test_swapping_the_groups_flips_the_sign_and_the_tails(x, y):
    one, two = two_sample(x, y), two_sample(y, x)
    assert one.statistic == pytest.approx(-two.statistic, abs=1e-9)
    assert one.p_right == pytest.approx(two.p_left)
    assert one.p_two_sided == pytest.approx(two.p_two_sided)


@given(small_samples, small_samples, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_inside_a_group_does_not_matter(x, y, random):
    moved = list(x)
    random.shuffle(moved)
    one, two = two_sample(x, y), two_sample(moved, y)
    assert (one.p_right, one.p_two_sided) == (two.p_right, two.p_two_sided)


@given(small_samples, small_samples)
@settings(max_examples=60, deadline=None)
def test_tails_cover_everything_and_p_is_never_zero(x, y):
    result = two_sample(x, y)
    assert result.p_right + result.p_left >= 1
    assert min(result.p_right, result.p_left, result.p_two_sided) > 0
    assert max(result.p_right, result.p_left, result.p_two_sided) <= 1


def test_p_never_zero_when_sampled():
    x, y = np.arange(30.0) + 100, np.arange(30.0)
    result = two_sample(x, y, samples=99)
    assert result.p_right == pytest.approx(0.01)
    values = np.concatenate([x, y])[:, None] * [1.0, 2.0]
    many = shared(values, np.arange(60) < 30, samples=99)
    assert many.p.tolist() == pytest.approx([0.01, 0.01])
    assert many.p_max_t.tolist() == pytest.approx([0.01, 0.01])


def test_ties_from_rounding_count_as_extreme():
    # 0.1 + 0.2 and 0.3 differ in the last bit, so only a tolerance sees the tie.
    result = two_sample([0.1, 0.2, 0.7], [0.3, 0.0, 0.7])
    assert result.p_two_sided == 1.0
    constant = two_sample([0.1] * 4, [0.1] * 5)
    assert (constant.p_right, constant.p_left, constant.p_two_sided) == (1.0, 1.0, 1.0)


def test_same_seed_same_result_whatever_the_block_size(monkeypatch):
    rng = np.random.default_rng(5)
    x, y = rng.random(20), rng.random(20)
    whole = two_sample(x, y, samples=500, seed=7)
    monkeypatch.setattr(permutation, "BLOCK", 8_000)
    parts = two_sample(x, y, samples=500, seed=7)
    assert whole == parts
    assert whole.p_two_sided == parts.p_two_sided
    assert two_sample(x, y, samples=500, seed=8).p_two_sided != whole.p_two_sided


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, np.nan], [1.0], "x: 1 of 2 values are not finite"),
        ([1.0], [np.inf], "y: 1 of 1 values are not finite"),
        ([], [1.0], "x: no values"),
    ],
)
def test_undefined_input_gives_nan_with_a_reason(x, y, reason):
    result = two_sample(x, y)
    assert np.isnan([result.statistic, result.p_right, result.p_left, result.p_two_sided]).all()
    assert result.reason == reason


def test_one_value_each_gives_a_half():
    result = two_sample([2.0], [1.0])
    assert (result.p_right, result.p_two_sided, result.n_partitions) == (0.5, 1.0, 2)


def test_wrong_options_name_what_is_accepted():
    with pytest.raises(SpecError, match=r"statistic: unknown value 'median'\. Accepted"):
        two_sample([1.0], [2.0], statistic="median")
    with pytest.raises(SpecError, match="samples: 0 is too few"):
        two_sample(np.arange(20.0), np.arange(20.0), samples=0)
    with pytest.raises(DataError, match=r"x: shape \(1, 1\) is not a vector"):
        two_sample([[1.0]], [2.0])
    with pytest.raises(DataError, match="labels: shape"):
        shared(np.zeros((3, 2)), [True, False])
    with pytest.raises(DataError, match="neither True nor False"):
        shared(np.zeros((3, 2)), [0, 1, 2])


def test_listed_subsets_are_all_different_and_complete():
    rows = np.concatenate([combination_rows(9, 4, a, a + 42) for a in (0, 42, 84)])
    assert len({tuple(row) for row in rows.tolist()}) == math.comb(9, 4)
    assert (np.diff(rows, axis=1) > 0).all()


def test_listed_splits_choose_the_right_number_on_either_side():
    for k in (2, 5):
        blocks = list(split_blocks(7, k, Plan("exact", 21), seed=0, rows=4))
        rows = np.concatenate(blocks)
        assert (rows.sum(axis=1) == k).all()
        assert len(np.unique(rows, axis=0)) == 21


def test_signs_do_not_depend_on_the_block_size():
    made = Plan("sampled", 50)
    whole = np.concatenate(list(sign_blocks(5, made, seed=3, rows=50)))
    parts = np.concatenate(list(sign_blocks(5, made, seed=3, rows=7)))
    assert (whole == parts).all()
    assert set(np.unique(whole)) == {-1.0, 1.0}


def test_two_sample_false_positive_rate_against_theory():
    rng = np.random.default_rng(11)
    draws = [two_sample(rng.exponential(size=6), rng.exponential(size=5)) for _ in range(400)]
    for name in ("p_right", "p_two_sided"):
        rate = np.mean([getattr(d, name) <= 0.05 for d in draws])
        assert 0.02 <= rate <= 0.08
