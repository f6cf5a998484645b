"""Variance shares against analysis of variance and known components."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.stats.variance import variance_shares


def table(rng, shape, parts, rest=1.0):
    values = rest * rng.normal(size=shape)
    for axis, size in enumerate(parts):
        levels = [1] * len(shape)
        levels[axis] = shape[axis]
        values = values + size * rng.normal(size=levels)
    return values


def test_complete_tables_against_the_analysis_of_variance():
    values = table(np.random.default_rng(0), (6, 5), (1.0, 2.0))
    r, c = values.shape
    rows, cols, grand = values.mean(axis=1), values.mean(axis=0), values.mean()
    inside = values - rows[:, None] - cols + grand
    rest = (inside**2).sum() / ((r - 1) * (c - 1))
    by_row = (c * ((rows - grand) ** 2).sum() / (r - 1) - rest) / c
    by_col = (r * ((cols - grand) ** 2).sum() / (c - 1) - rest) / r
    result = variance_shares(values, ["template", "term"])
    assert result.components == pytest.approx([by_row, by_col, rest])
    assert result.names == ("template", "term", "rest")
    assert result.shares.sum() == pytest.approx(1)


def test_components_are_right_on_average_with_missing_cells():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(150):
        values = table(rng, (8, 7, 3), (1.0, 2.0, 0.0), rest=1.5)
        values[rng.random(values.shape) < 0.25] = np.nan
        found.append(variance_shares(values, ["template", "term", "order"]).components)
    assert np.mean(found, axis=0) == pytest.approx([1.0, 4.0, 0.0, 2.25], abs=0.4)


def test_an_interaction_is_found_when_asked_for():
    rng = np.random.default_rng(2)
    values = 2 * rng.normal(size=(12, 11, 1)) + rng.normal(size=(12, 11, 6))
    result = variance_shares(values, ["a", "b", "c"], interactions=True)
    assert result.names == ("a", "b", "c", "a x b", "a x c", "b x c", "rest")
    assert result.as_dict()["a x b"] == pytest.approx(0.8, abs=0.1)


def test_order_of_levels_and_shift_do_not_matter():
    rng = np.random.default_rng(3)
    values = table(rng, (5, 6), (1.0, 1.0))
    values[0, 3] = np.nan
    one = variance_shares(values, ["a", "b"])
    two = variance_shares(values[rng.permutation(5)][:, rng.permutation(6)] + 100, ["a", "b"])
    assert one.components == pytest.approx(two.components)
    assert (one.n, one.missing) == (29, 1)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full((2, 2), np.nan), "fewer than two values"),
        (np.ones((3, 1)) * [[1], [2], [3]], "a factor has one level only"),
        (np.full((3, 3), 0.1), "all values are equal"),
        (np.where(np.eye(3) > 0, np.arange(3.0), np.nan), "the cells present do not tell"),
    ],
)
def test_undefined_shares_are_nan_with_a_reason(values, reason):
    result = variance_shares(values, ["a", "b"])
    assert np.isnan(result.shares).all()
    assert result.reason.startswith(reason)


def test_wrong_options_name_what_is_accepted():
    with pytest.raises(DataError, match="factors: 1 names for 2 axes"):
        variance_shares(np.zeros((2, 2)), ["a"])
    with pytest.raises(DataError, match="three or more factors"):
        variance_shares(np.zeros((2, 2)), ["a", "b"], interactions=True)
