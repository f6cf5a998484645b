"""Correlations over families of related points."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.families import LEAST, over_families


def test_it_is_the_t_test_over_fishers_z() -> None:
    stats = pytest.importorskip("scipy.stats")
    rho = [0.7, 0.2, 0.5, 0.6, -0.1, 0.4]
    found = over_families(rho, [12] * 6)
    wanted = stats.ttest_1samp(np.arctanh(rho), 0.0)
    assert found.p == pytest.approx(wanted.pvalue, rel=1e-9)
    low, high = wanted.confidence_interval()
    assert (found.low, found.high) == pytest.approx((np.tanh(low), np.tanh(high)))


def test_few_families_get_a_number_and_no_verdict() -> None:
    found = over_families([0.9] * (LEAST - 1) + [float("nan"), 1.0], [20] * LEAST + [3])
    assert found.value == pytest.approx(0.9)
    assert found.families == LEAST - 1
    assert np.isnan([found.p, found.low, found.high, found.detectable]).all()
    assert found.reason.startswith(f"families: {LEAST - 1} with a correlation, {LEAST} are needed")
    assert np.isnan(over_families([], []).value)


def test_perfect_correlations_have_an_interval_still() -> None:
    found = over_families([1.0] * 5, [8] * 5)
    assert found.low < found.value < 1
    assert found.p < 1e-4
