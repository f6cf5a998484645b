"""Many tests under one set of permutations, and paired tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats import permutation
from evenhand.stats.permutation import paired_sign_flip, shared, two_sample

LABELS = np.array([True] * 4 + [False] * 6)


def test_shared_p_equals_the_two_sample_p_of_each_column():
    values = np.random.default_rng(0).normal(size=(10, 5))
    result = shared(values, LABELS)
    for j in range(5):
        alone = two_sample(values[LABELS, j], values[~LABELS, j], statistic="mean-difference")
        assert result.difference[j] == pytest.approx(alone.statistic)
        assert result.p[j] == pytest.approx(alone.p_two_sided)
    assert (result.method, result.n_partitions) == ("exact", 210)


def test_max_t_against_a_plain_loop():
    values = np.random.default_rng(1).normal(size=(8, 3)) * [1, 5, 0.1] + [0, 3, 0]
    labels = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=bool)
    null = []
    for chosen in itertools.combinations(range(8), 4):
        mark = np.isin(np.arange(8), chosen)
        null.append(values[mark].mean(axis=0) - values[~mark].mean(axis=0))
    null = np.array(null)
    observed = values[labels].mean(axis=0) - values[~labels].mean(axis=0)
    sizes = np.abs(null) / null.std(axis=0)
    expected = [np.mean(sizes.max(axis=1) >= t - 1e-9) for t in np.abs(observed) / null.std(axis=0)]
    assert shared(values, labels).p_max_t.tolist() == pytest.approx(expected)


def test_adjusted_p_is_never_below_the_single_p():
    values = np.random.default_rng(2).normal(size=(40, 20))
    result = shared(values, np.arange(40) < 15, samples=999)
    assert (result.p_max_t >= result.p).all()
    assert result.method == "sampled"


def test_shared_result_does_not_depend_on_memory(monkeypatch):
    values = np.random.default_rng(3).normal(size=(40, 7))
    labels = np.arange(40) < 20
    whole = shared(values, labels, samples=500, seed=4)
    monkeypatch.setattr(permutation, "BLOCK", 20_000)
    parts = shared(values, labels, samples=500, seed=4)
    assert (whole.p == parts.p).all()
    assert (whole.p_max_t == parts.p_max_t).all()


def test_nan_and_constant_columns_leave_the_others_alone():
    values = np.random.default_rng(4).normal(size=(10, 4))
    clean = shared(values, LABELS)
    values = np.column_stack([values, np.full(10, 0.1), values[:, 0]])
    values[3, 5] = np.nan
    result = shared(values, LABELS)
    assert (result.p[:4] == clean.p).all()
    assert (result.p_max_t[:4] == clean.p_max_t).all()
    assert (result.p[4], result.p_max_t[4]) == (1.0, 1.0)
    assert np.isnan([result.difference[5], result.p[5], result.p_max_t[5]]).all()
    assert result.reasons == ("", "", "", "", "", "1 of 10 values are not finite")


def test_an_empty_group_is_undefined_with_a_reason():
    result = shared(np.ones((3, 2)), [True, True, True])
    assert np.isnan(result.p).all()
    assert result.reasons == ("a group is empty",) * 2


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_swapping_the_labels_flips_only_the_sign(seed):
    values = np.random.default_rng(seed).normal(size=(7, 3))
    labels = np.array([1, 1, 0, 0, 0, 1, 0], dtype=bool)
    one, two = shared(values, labels), shared(values, ~labels)
    assert one.difference == pytest.approx(-two.difference)
    assert (one.p == two.p).all()
    assert (one.p_max_t == two.p_max_t).all()


def test_family_wise_error_of_max_t_against_theory():
    rng = np.random.default_rng(5)
    hits = 0
    for trial in range(300):
        values = rng.standard_t(4, size=(20, 8)) * np.arange(1, 9)
        result = shared(values, np.arange(20) < 9, samples=199, max_exact=0, seed=trial)
        hits += bool((result.p_max_t <= 0.05).any())
    assert 0.02 <= hits / 300 <= 0.085


def test_sign_flip_against_full_enumeration():
    d = np.random.default_rng(7).normal(0.3, 1, 9)
    null = np.array([np.mean(np.array(s) * d) for s in itertools.product((-1, 1), repeat=9)])
    result = paired_sign_flip(d)
    assert result.mean.tolist() == pytest.approx([d.mean()])
    assert result.p_two_sided[0] == pytest.approx(np.mean(np.abs(null) >= abs(d.mean()) - 1e-12))
    assert (result.method, result.n_flips) == ("exact", 512)


def test_sampled_sign_flip_against_exact():
    d = np.random.default_rng(8).normal(0.4, 1, (12, 3))
    exact = paired_sign_flip(d)
    sampled = paired_sign_flip(d, max_exact=0, samples=20_000)
    assert sampled.p_two_sided == pytest.approx(exact.p_two_sided, abs=0.015)


def test_sign_flip_of_nothing_or_nan_is_undefined_with_a_reason():
    empty = paired_sign_flip([])
    assert np.isnan(empty.p_two_sided).all()
    assert empty.reasons == ("no differences",)
    table = np.array([[1.0, np.nan], [2.0, 1.0]])
    result = paired_sign_flip(table)
    assert result.p_two_sided[0] == 0.5
    assert np.isnan(result.p_two_sided[1])
    assert result.reasons == ("", "1 of 2 values are not finite")


def test_sign_flip_of_zeros_has_p_one():
    result = paired_sign_flip(np.zeros((5, 2)))
    assert (result.p_two_sided == 1).all()


def test_sign_flip_of_one_difference_has_p_one():
    result = paired_sign_flip([3.0])
    assert result.p_two_sided[0] == 1.0
