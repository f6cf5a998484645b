"""Corrections against scipy, hand-made numbers and a known defect elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as sps

from evenhand.errors import DataError
from evenhand.stats.multiple import benjamini_hochberg

ps = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))


@given(ps)
@settings(max_examples=100, deadline=None)
def test_false_discovery_rates_against_scipy(p):
    assert benjamini_hochberg(p) == pytest.approx(sps.false_discovery_control(p, method="bh"))


def test_ranks_come_from_the_order_and_not_from_the_sorting_index():
    # With the index of the sorting taken for the rank, only two of these were kept.
    q = benjamini_hochberg([0.05, 0.06, 0.9, 0.01])
    assert q.tolist() == pytest.approx([0.08, 0.08, 0.9, 0.04])
    assert (q <= 0.1).sum() == 3


@given(p=ps)
@settings(max_examples=40, deadline=None)
def test_adjusted_values_keep_order_and_never_shrink(p):
    q = benjamini_hochberg(p)
    assert (q >= p - 1e-15).all()
    assert (q <= 1).all()
    assert (np.diff(q[np.argsort(p, kind="stable")]) >= 0).all()
    assert benjamini_hochberg(p[::-1])[::-1] == pytest.approx(q)


def test_nan_stays_nan_and_does_not_count():
    p = np.array([0.01, np.nan, 0.04, 0.2, np.nan])
    q = benjamini_hochberg(p)
    assert np.isnan(q).tolist() == [False, True, False, False, True]
    assert q[[0, 2, 3]] == pytest.approx(benjamini_hochberg([0.01, 0.04, 0.2]))


def test_any_shape_comes_back():
    p = np.random.default_rng(0).random((2, 3, 4))
    assert benjamini_hochberg(p).shape == (2, 3, 4)
    assert benjamini_hochberg(p).ravel() == pytest.approx(benjamini_hochberg(p.ravel()))
    assert benjamini_hochberg([]).shape == (0,)
    assert benjamini_hochberg(0.03) == pytest.approx(0.03)
    assert np.isnan(benjamini_hochberg([np.nan])).all()


@pytest.mark.parametrize("wrong", [-0.1, 1.5])
def test_a_value_that_is_no_probability_is_refused(wrong):
    with pytest.raises(DataError, match="is not a probability"):
        benjamini_hochberg([0.1, wrong])


def test_false_discovery_rate_against_theory():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(400):
        z = rng.normal(size=50)
        z[:10] += 3.5
        found = benjamini_hochberg(2 * sps.norm.sf(np.abs(z))) <= 0.1
        shares.append(found[10:].sum() / max(1, found.sum()))
    assert 0.05 <= np.mean(shares) <= 0.11  # 0.1 times the share of true nulls, 0.08
