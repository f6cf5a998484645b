"""Noise floors against enumeration and theory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand.stats.noise import noise_floor


def mean_size(cells):
    """Mean over the second axis, absolute, then the mean over the third."""
    return np.abs(np.nanmean(cells, axis=1)).mean(axis=1)


def test_floor_against_full_enumeration():
    values = np.random.default_rng(0).normal(size=(6, 3))
    signs = np.array(list(itertools.product((1, -1), repeat=6)))
    null = mean_size(signs[:, :, None] * values)
    result = noise_floor(values, mean_size)
    assert (result.method, result.n_flips) == ("exact", 64)
    assert result.p95 == pytest.approx(np.quantile(null, 0.95))
    assert result.observed == pytest.approx(mean_size(values[None])[0])
    assert result.mean == pytest.approx(null.mean())
    assert result.p == pytest.approx(np.mean(null >= result.observed - 1e-9))


def test_sampled_floor_against_exact():
    values = np.random.default_rng(1).normal(0.3, 1, size=(9, 4))
    exact = noise_floor(values, mean_size)
    sampled = noise_floor(values, mean_size, max_exact=0, samples=8_000, max_bytes=100_000)
    assert sampled.mean == pytest.approx(exact.mean, rel=0.02)
    assert sampled.p95 == pytest.approx(exact.p95, rel=0.05)
    assert sampled.p == pytest.approx(exact.p, abs=0.02)


def test_the_floor_of_a_mean_size_against_theory():
    n = 400
    values = np.random.default_rng(2).normal(size=(n, 50))
    result = noise_floor(values, mean_size, samples=300)
    assert result.mean == pytest.approx(np.sqrt(2 / np.pi / n), rel=0.1)
    assert result.observed == pytest.approx(result.mean, rel=0.3)


def test_codes_say_which_rows_flip_together():
    values = np.random.default_rng(3).normal(size=(4, 5))
    two = noise_floor(values, mean_size, codes=[0, 0, 1, 1])
    assert two.n_flips == 4
    one = noise_floor(values, mean_size, codes=np.zeros(4))
    assert (one.p, one.mean) == (1.0, pytest.approx(one.observed))


def test_several_statistics_at_once():
    values = np.random.default_rng(4).normal(size=(30, 3))
    result = noise_floor(values, lambda v: np.abs(v.mean(axis=1)), samples=99)
    assert result.observed.shape == result.p.shape == result.p95.shape == (3,)
    assert (result.p > 0).all()


def test_missing_cells_are_the_reducers_business():
    values = np.random.default_rng(5).normal(size=(20, 3))
    values[2, 1] = np.nan
    assert noise_floor(values, mean_size, samples=99).reason == ""
    plain = noise_floor(values, lambda v: np.abs(v.mean(axis=(1, 2))), samples=99)
    assert np.isnan(plain.p)
    assert plain.reason == "the reducer gave NaN"


def test_nothing_measured_is_nan_with_a_reason():
    result = noise_floor(np.full((3, 2), np.nan), mean_size)
    assert np.isnan([result.observed, result.mean, result.p95, result.p]).all()
    assert result.reason == "no finite values"
    assert noise_floor(np.empty((0, 2)), mean_size).reason == "no finite values"


def test_same_seed_same_result():
    values = np.random.default_rng(6).normal(size=(40, 2))
    one, two = (noise_floor(values, mean_size, samples=50, seed=9) for _ in range(2))
    assert one == two


def test_false_positive_rate_against_theory():
    rng = np.random.default_rng(7)
    ps = [noise_floor(rng.normal(size=(10, 4)), mean_size, seed=s).p for s in range(300)]
    assert 0.02 <= np.mean(np.array(ps) <= 0.05) <= 0.085
