"""The released SODAPOP test, step by step, against the vectorised one."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.stats.permutation import as_published_sodapop, shared


def faithful(values, samples):
    """Count with one list mean per permutation, as the released program does."""
    n = len(values) // 2
    names = [f"name {i}" for i in range(2 * n)]
    rate = dict(zip(names, values.tolist(), strict=True))

    def difference(first, second):
        return np.average([rate[i] for i in first]) - np.average([rate[i] for i in second])

    stream = np.random.RandomState(10)
    observed = difference(names[:n], names[n:])
    larger = 0
    for _ in range(samples):
        order = stream.permutation(names)
        larger += abs(difference(order[:n], order[n:])) > abs(observed)
    return larger


@pytest.mark.parametrize("digits", [None, 1])
def test_counts_equal_a_faithful_loop_for_25_v_25(digits):
    values = np.random.default_rng(0).random((50, 3))
    if digits is not None:
        values = np.round(values, digits)  # coarse rates make many exact ties
    result = as_published_sodapop(values, np.arange(50) < 25, samples=2_000)
    assert result.larger.tolist() == [faithful(values[:, j], 2_000) for j in range(3)]


@pytest.mark.parametrize("n", [1, 3, 4, 7, 8, 12])
def test_counts_equal_a_faithful_loop_for_small_groups_to_the_last_bit(n):
    values = np.round(np.random.default_rng(n).random((2 * n, 3)), 3)
    result = as_published_sodapop(values, np.arange(2 * n) < n, samples=700)
    assert result.larger.tolist() == [faithful(values[:, j], 700) for j in range(3)]


def test_small_groups_count_reorderings_of_the_observed_split_as_larger():
    # Strictly larger splits do not exist here, yet rounding makes the released count positive.
    values = np.array([0.75, 0.61, 0.52, 0.51, 0.33, 0.37, 0.24, 0.29])[:, None]
    result = as_published_sodapop(values, np.arange(8) < 4)
    assert result.samples == 7_000
    assert result.larger[0] == faithful(values[:, 0], 7_000) > 0
    assert shared(values, np.arange(8) < 4).p[0] == pytest.approx(2 / 70)


@pytest.mark.parametrize(("n", "samples"), [(2, 600), (4, 7_000), (7, 343_200)])
def test_number_of_samples_follows_the_released_rule(n, samples):
    assert samples == 100 * math.comb(2 * n, n)
    values = np.zeros((2 * n, 1))
    result = as_published_sodapop(values, np.arange(2 * n) < n)
    assert result.samples == samples
    assert result.p.tolist() == [0.0]


def test_labels_may_be_interleaved():
    values = np.random.default_rng(3).random((8, 2))
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 0], dtype=bool)
    ordered = np.concatenate([values[labels], values[~labels]])
    mixed = as_published_sodapop(values, labels, samples=500)
    assert (mixed.larger == as_published_sodapop(ordered, np.arange(8) < 4, 500).larger).all()


def test_nan_stays_nan_and_unequal_groups_are_refused():
    result = as_published_sodapop([[1.0, np.nan], [2.0, 1.0]], [1, 0])
    assert np.isnan(result.p[1])
    assert not np.isnan(result.p[0])
    with pytest.raises(DataError, match="two groups of equal size"):
        as_published_sodapop(np.zeros((3, 1)), [1, 0, 0])
    with pytest.raises(DataError, match="is not a table"):
        as_published_sodapop([1.0, 2.0], [1, 0])


@pytest.mark.shared
def test_unequal_groups_have_the_reference_number_of_partitions(shared_folder):
    file = json.loads((shared_folder / "golden/sodapop/ptest_unequal.json").read_text())
    n_a, n_b = len(file["group_A"]), len(file["group_B"])
    values = np.random.default_rng(0).random((n_a + n_b, len(file["expected"])))
    result = shared(values, np.arange(n_a + n_b) < n_a)
    assert {row["n_partitions"] for row in file["expected"].values()} == {result.n_partitions}
    attainable = np.arange(1, result.n_partitions + 1) / result.n_partitions
    assert np.isclose(result.p[:, None], attainable).any(axis=1).all()
