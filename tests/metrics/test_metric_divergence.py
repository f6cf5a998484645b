"""Distances between next-token distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.errors import DataError
from evenhand.metrics import divergence

ALL = (divergence.kl_divergence, divergence.squared_hellinger, divergence.jensen_shannon)
logits = hnp.arrays(np.float64, (3, 7), elements=st.floats(-60, 60))


@given(logits)
def test_identical_rows_are_exactly_zero(rows: np.ndarray) -> None:
    for distance in ALL:
        assert (distance(rows, rows.copy()) == 0).all()


@given(logits, logits)
def test_ranges_and_symmetry(p: np.ndarray, q: np.ndarray) -> None:
    h2, js = divergence.squared_hellinger(p, q), divergence.jensen_shannon(p, q)
    kl = divergence.kl_divergence(p, q)
    assert ((h2 >= 0) & (h2 <= 1)).all()
    assert ((js >= 0) & (js <= math.log(2))).all()
    assert (kl >= 0).all()
    assert (h2 == divergence.squared_hellinger(q, p)).all()
    np.testing.assert_allclose(js, divergence.jensen_shannon(q, p), atol=1e-15)
    # H^2 <= KL / 2, a known bound that ties the two together.
    assert (h2 <= kl / 2 + 1e-12).all()


def test_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    distance = pytest.importorskip("scipy.spatial.distance")
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    kl = divergence.kl_divergence(np.log(p)[None], np.log(q)[None])[0]
    assert kl == pytest.approx(stats.entropy(p, q), abs=1e-12)
    js = divergence.jensen_shannon(np.log(p)[None], np.log(q)[None])[0]
    assert js == pytest.approx(distance.jensenshannon(p, q) ** 2, abs=1e-12)
    h2 = divergence.squared_hellinger(np.log(p)[None], np.log(q)[None])[0]
    assert h2 == pytest.approx(1 - np.sqrt(p * q).sum(), abs=1e-12)


def test_nearly_equal_float32_rows_never_give_nan() -> None:
    rng = np.random.default_rng(1)
    row = rng.normal(size=(1, 50_000)).astype(np.float32)
    near = np.nextafter(row, np.float32(9))
    for distance in ALL:
        value = distance(row, near)[0]
        assert 0 <= value < 1e-10


def test_tokens_without_mass() -> None:
    p, q = np.array([[0.0, -np.inf, -1.0]]), np.array([[-np.inf, -np.inf, 0.0]])
    assert divergence.kl_divergence(p, q)[0] == np.inf
    assert divergence.kl_divergence(q, p)[0] == pytest.approx(math.log(1 + math.e))
    assert np.isfinite(divergence.jensen_shannon(p, q)[0])
    assert 0 < divergence.squared_hellinger(p, q)[0] < 1


def test_nan_and_empty_rows_are_refused() -> None:
    with pytest.raises(DataError, match="row 1: the largest value is 'nan'"):
        divergence.log_normalise([[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(DataError, match="row 0: the largest value is '-inf'"):
        divergence.log_normalise([[-np.inf, -np.inf]])
    with pytest.raises(DataError, match=r"shapes \(1, 2\) and \(1, 3\) differ"):
        divergence.kl_divergence([[0.0, 0.0]], [[0.0, 0.0, 0.0]])
    with pytest.raises(DataError, match="a row has no value"):
        divergence.jensen_shannon([], [])
