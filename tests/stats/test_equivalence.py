"""Within a margin, beyond it, worse, not worse: against plain t tests, and at their boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.equivalence import (
    above,
    below,
    beyond,
    inside,
    not_worse,
    planned_units,
    units_to_settle,
    worse,
)
from evenhand.stats.estimate import Estimate, estimate
from evenhand.stats.sequential import levels, looks_within, spent

NAN = float("nan")


def seen(values: np.ndarray) -> Estimate:
    error = values.std(ddof=1) / len(values) ** 0.5
    return estimate(float(values.mean()), float(error), len(values) - 1, units=len(values))


def test_one_sided_p_values_are_those_of_t_tests() -> None:
    values = np.random.default_rng(0).normal(0.1, 1, 25)
    found = seen(values)
    for bound in (-0.4, 0.0, 0.3):
        for mine, way in ((above, "greater"), (below, "less")):
            theirs = stats.ttest_1samp(values, bound, alternative=way).pvalue
            assert mine(found, bound) == pytest.approx(theirs)
    assert inside(found, 0.5) == max(below(found, 0.5), above(found, -0.5))
    assert beyond(found) == pytest.approx(found.p)


def test_errors_at_the_boundaries_are_at_most_nominal() -> None:
    """2,000 draws each; 0.065 is three standard errors above 0.05."""
    rng, n, d = np.random.default_rng(1), 20, 0.5
    counts = np.zeros(5)
    for _ in range(2_000):
        x, y = rng.normal(size=(2, n))
        on, other = seen(x + d), seen(y)
        counts += [
            inside(on, d) <= 0.05,  # on the margin
            beyond(on, d) <= 0.05,
            worse(seen(x + 3), other) <= 0.05,  # far off, and unchanged
            worse(seen(x), seen(x + y)) <= 0.05,  # even before and after
            not_worse(seen(x + 3), seen(y + d), d) <= 0.05,  # grew by the margin
        ]
    assert (counts / 2_000 <= 0.065).all(), counts / 2_000


def test_what_is_undefined_stays_undefined() -> None:
    lost, good = Estimate(NAN), estimate(0.1, 0.05, 10, units=11)
    found = [inside(lost, 1), beyond(lost), worse(lost, good), not_worse(good, lost, 1)]
    assert np.isnan(found).all()
    assert np.isnan([inside(good, NAN), not_worse(good, good, NAN)]).all()
    assert units_to_settle(estimate(0.1, 0.05, 10, units=11), 0.1) is None
    assert planned_units(lost, 0.1) is None


def test_growth_on_the_harmless_side_is_no_harm() -> None:
    after, change = estimate(-0.5, 0.05, 30, units=31), estimate(-0.5, 0.05, 30, units=31)
    assert worse(after, change) < 0.001
    assert worse(after, change, one_sided=True) > 0.999
    assert not_worse(after, change, 0.1, one_sided=True) < 0.001


def test_looks_share_the_rate() -> None:
    for looks in range(1, 7):
        assert sum(levels(looks, 0.05)) == pytest.approx(0.05)
        assert min(levels(looks)) > 0
    assert spent(0.25) < spent(0.5) < spent(1.0)
    assert looks_within(1, 1e9) == 1
