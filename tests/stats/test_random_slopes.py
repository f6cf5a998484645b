"""The mixed model against statsmodels, where that converges, and against closed forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.stats.random_slopes import random_slopes

statsmodels = pytest.importorskip("statsmodels.regression.mixed_linear_model")


def drawn(seed: int, groups: int = 40, rows: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unbalanced data with correlated intercepts and slopes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, groups, groups * rows)
    x = np.stack([np.ones(len(codes)), rng.integers(0, 2, len(codes)), rng.normal(size=len(codes))])
    u = rng.multivariate_normal([0, 0, 0], [[1, 0.3, 0], [0.3, 0.5, 0.1], [0, 0.1, 0.4]], groups)
    y = ((np.asarray([1.0, -0.5, 0.2]) + u[codes]) * x.T).sum(axis=1)
    return y + rng.normal(0, 0.7, len(codes)), x.T, codes


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_equal_to_statsmodels_within_a_thousandth(seed: int, restricted: bool) -> None:
    y, x, groups = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = statsmodels.MixedLM(y, x, groups=groups, exog_re=x).fit(reml=restricted)
    found = random_slopes(y, x, groups, x, restricted=restricted)
    assert oracle.converged
    assert found.converged
    assert np.allclose(found.b, oracle.fe_params, atol=1e-3)
    assert np.allclose(found.error, oracle.bse_fe, atol=1e-3)
    assert np.allclose(found.covariance, oracle.cov_re, atol=5e-3)
    assert found.loglikelihood == pytest.approx(oracle.llf, abs=1e-2)
    assert found.loglikelihood >= oracle.llf - 1e-4


def test_a_balanced_intercept_is_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(20, 1)) + rng.normal(0, 0.5, (20, 6))
    found = random_slopes(y.ravel(), np.ones((120, 1)), np.repeat(np.arange(20), 6))
    within = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum() / 100
    assert found.residual == pytest.approx(within, rel=1e-4)
    assert found.error[0] == pytest.approx(y.mean(axis=1).std(ddof=1) / np.sqrt(20), rel=1e-4)
    assert not found.singular


def test_no_spread_between_groups_is_said() -> None:
    y = np.tile([0.0, 1.0, 2.0, 3.0], 10)
    assert random_slopes(y, np.ones((40, 1)), np.repeat(np.arange(10), 4)).singular


def test_effects_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(DataError, match="mixed model: 4 rows and 2 fixed effects"):
        random_slopes(np.arange(4.0), np.ones((4, 2)), [0, 0, 1, 1])
