"""Correlations over families of related points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evenhand.stats.families import LEAST, over_families


def test_it_is_the_t_test_over_fishers_z_or_that_of_signs() -> None:
    stats = pytest.importorskip("scipy.stats")
    for rho in ([0.7, 0.2, 0.5, 0.6, -0.1, 0.4], [0.9, -0.8, 0.1, 0.3, 0.2, 0.1, -0.1, 0.05]):
        z = np.arctanh(rho)
        found = over_families(rho, [12] * len(z))
        wanted = stats.ttest_1samp(z, 0.0)
        signs = np.asarray(list(product([-1, 1], repeat=len(z))))
        flipped = np.mean(np.abs(signs @ z) >= abs(z.sum()) - 1e-12)
        assert found.p == pytest.approx(max(wanted.pvalue, flipped), rel=1e-6)
        if wanted.pvalue > flipped:
            low, high = wanted.confidence_interval()
            assert (found.low, found.high) == pytest.approx((np.tanh(low), np.tanh(high)))
        assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)


def test_few_families_get_a_number_and_no_verdict() -> None:
    found = over_families([0.9] * (LEAST - 1) + [float("nan"), 1.0], [20] * LEAST + [3])
    assert found.value == pytest.approx(0.9)
    assert found.families == LEAST - 1
    assert np.isnan([found.p, found.low, found.high, found.detectable]).all()
    assert found.reason.startswith(f"families: {LEAST - 1} with a correlation, {LEAST} are needed")
    assert np.isnan(over_families([], []).value)


def test_perfect_correlations_have_an_interval_still() -> None:
    found = over_families([1.0] * 6, [8] * 6)
    assert 0 < found.low < found.value < 1
    # Signs are all that is known: six that agree are one of 32 cases, however near 1 they are.
    assert found.p == pytest.approx(1 / 32)


def test_too_few_families_for_so_many_tests_are_named() -> None:
    found = over_families([1.0] * 6, [8] * 6, family=6)
    assert np.isnan(found.detectable)
    assert "8 are needed for a lone correlation among 6 tests" in found.reason
    assert over_families([1.0] * 8, [8] * 8, family=6).detectable < 1


@pytest.mark.parametrize("families", [6, 7, 8])
def test_signs_that_fall_by_chance_are_no_correlation(families: int) -> None:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (800, families))
    alarms = [over_families(row, [12] * families).p <= 0.05 for row in signs]
    assert np.mean(alarms) <= 0.06
