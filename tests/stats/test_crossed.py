"""Contrasts of contrasts: the analysis of variance, invariance, and calibration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.mixed import Design, Factor

Floats = npt.NDArray[np.float64]


def leaning(rng: np.random.Generator, n: int, m: int, rows: int, columns: int) -> Floats:
    """Levels, leans of rows and columns, and noise; no contrast."""
    side = np.where(np.arange(m) < columns, 0.5, -0.5)
    half = np.where(np.arange(n) < rows, 0.5, -0.5)
    table = rng.normal(size=(n, m)) + rng.normal(0, 3, (n, 1)) + rng.normal(0, 3, m)
    table += rng.normal(0, 1, (n, 1)) * side + half[:, None] * rng.normal(0, 1, m)
    return np.asarray(table)


def test_for_sets_of_equal_size_the_variance_is_that_of_the_crossed_model() -> None:
    table = leaning(np.random.default_rng(0), 12, 16, 6, 8)
    t, a = np.repeat(np.arange(12), 16), np.tile(np.arange(16), 12)
    x, first = t < 6, a < 8
    fixed = np.stack([x & first, x & ~first, ~x & first, ~x & ~first], axis=1).astype(float)
    factors = [
        Factor(t), Factor(t, np.where(first, 0.5, -0.5)),
        Factor(a), Factor(a, np.where(x, 0.5, -0.5)),
    ]  # fmt: skip
    wanted = Design(factors, fixed, [1.0, -1.0, -1.0, 1.0]).estimate(table.ravel())
    (found,) = crossed_contrasts([table], 6, 8)
    assert found.value == pytest.approx(wanted.value, abs=1e-12)
    assert found.error == pytest.approx(wanted.error, rel=1e-9)


def test_levels_of_rows_and_columns_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    table = leaning(rng, 9, 7, 4, 3)
    moved = table + rng.normal(0, 9, (9, 1)) + rng.normal(0, 9, 7)
    one, two = crossed_contrasts([table, moved], 4, 3)
    assert two.value == pytest.approx(one.value, abs=1e-9)
    assert two.error == pytest.approx(one.error, rel=1e-6)
    assert two.p == pytest.approx(one.p, rel=1e-6)


def test_exchanging_rows_and_columns_changes_nothing() -> None:
    table = leaning(np.random.default_rng(2), 9, 7, 4, 3)
    one, two = crossed_contrasts([table], 4, 3)[0], crossed_contrasts([table.T], 3, 4)[0]
    assert (one.value, one.error, one.freedom) == pytest.approx((two.value, two.error, two.freedom))


def test_one_draw_in_a_set_has_no_variance() -> None:
    (found,) = crossed_contrasts([np.eye(4)], 1, 2)
    assert found.reason
    assert np.isnan(found.p)


@pytest.mark.parametrize("sizes", [(8, 16, 4, 8), (20, 30, 15, 25)])
def test_random_leans_are_found_no_more_often_than_they_should(
    sizes: tuple[int, int, int, int],
) -> None:
    rng = np.random.default_rng(3)
    rows, n, columns, m = sizes
    tables = np.stack([leaning(rng, n, m, rows, columns) for _ in range(600)])
    found = crossed_contrasts(tables, rows, columns)
    alarms = np.mean([e.p <= 0.05 for e in found])
    inside = np.mean([e.low <= 0 <= e.high for e in found])
    assert 0.02 <= alarms <= 0.075
    assert inside == pytest.approx(1 - alarms)
