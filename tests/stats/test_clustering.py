"""Separation of groups: released numbers, nulls and held-out accuracy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans

from evenhand.errors import SpecError
from evenhand.stats.clustering import kmeans_separation, linear_separability

HALF = np.arange(50) < 25


def test_exact_null_against_shuffled_labels():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 4))
    labels = np.arange(30) < 12
    result = kmeans_separation(values, labels, restarts=10)
    assignment = KMeans(n_clusters=2, n_init=10, random_state=0).fit(values).labels_
    agree = [(assignment == rng.permutation(labels)).mean() for _ in range(4_000)]
    null = np.maximum(agree, 1 - np.array(agree))
    assert result.null_mean == pytest.approx(null.mean(), abs=0.005)
    assert result.null_p95 == pytest.approx(np.quantile(null, 0.95), abs=1 / 30 + 1e-9)
    assert result.p == pytest.approx(np.mean(null >= result.accuracy - 1e-9), abs=0.03)


def test_the_null_of_25_v_25_is_above_a_half():
    values = np.concatenate([np.zeros(25), np.ones(25)])[:, None]
    result = kmeans_separation(values, HALF)
    assert result.accuracy == 1.0
    assert result.null_mean == pytest.approx(0.558, abs=0.001)
    assert result.null_p95 == 0.64
    assert 0 < result.p < 1e-12


def test_swapping_the_labels_changes_nothing():
    values = np.random.default_rng(1).normal(size=(50, 6))
    one, two = kmeans_separation(values, HALF), kmeans_separation(values, ~HALF)
    assert (one.accuracy, one.p) == pytest.approx((two.accuracy, two.p))


def test_kmeans_false_positive_rate_against_theory():
    rng = np.random.default_rng(2)
    ps = [
        kmeans_separation(rng.normal(size=(20, 3)), HALF[15:35], restarts=2).p for _ in range(150)
    ]
    assert np.mean(np.array(ps) <= 0.05) <= 0.09


def test_names_with_clusters_of_their_own_are_not_taken_for_groups():
    """Success rates of names that a model knows or does not know, whatever their group."""
    rng = np.random.default_rng(6)
    above, p = [], []
    for seed in range(150):
        known = rng.random((20, 1)) < 0.4
        rates = 0.3 + 0.3 * known + rng.normal(0, 0.05, (20, 1)) + rng.normal(0, 0.03, (20, 6))
        made = kmeans_separation(rates, HALF[15:35], restarts=3, seed=seed)
        above.append(made.accuracy > made.null_p95)
        p.append(linear_separability(rates, HALF[15:35], permutations=39, seed=seed).p)
    assert np.mean(above) <= 0.09
    assert np.mean(np.asarray(p) <= 0.05) <= 0.1


@pytest.mark.parametrize("measure", [kmeans_separation, linear_separability])
@pytest.mark.parametrize(
    ("values", "labels", "reason"),
    [
        ([[1.0], [np.nan]], [0, 1], "values: 1 of 2 values are not finite"),
        ([[1.0], [2.0]], [1, 1], "a group is empty"),
        ([[1.0], [1.0]], [0, 1], "all units are equal"),
        (np.empty((0, 2)), [], "values: no values"),
    ],
)
def test_undefined_input_gives_nan_with_a_reason(measure, values, labels, reason):
    result = measure(values, labels)
    assert np.isnan([result.null_mean, result.null_p95, result.p]).all()
    assert result.reason == reason


def test_linear_accuracy_of_separated_and_of_random_groups():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(50, 30))
    apart = linear_separability(noise + 2 * HALF[:, None], HALF, permutations=199)
    assert apart.accuracy == 1.0
    assert apart.p == pytest.approx(1 / 200)
    alone = linear_separability(noise, HALF, permutations=199)
    assert alone.null_mean == pytest.approx(0.5, abs=0.03)
    assert alone.accuracy < alone.null_p95 + 0.15


def test_linear_false_positive_rate_against_theory():
    rng = np.random.default_rng(4)
    labels = np.arange(24) < 9
    ps = [
        linear_separability(rng.normal(size=(24, 5)), labels, permutations=99, seed=s).p
        for s in range(250)
    ]
    assert 0.015 <= np.mean(np.array(ps) <= 0.05) <= 0.09


def test_linear_accuracy_is_held_out():
    # More features than units: a fit on the same units would reach 1.
    values = np.random.default_rng(5).normal(size=(50, 400))
    assert linear_separability(values, HALF, permutations=99).accuracy < 0.75


def test_same_seed_same_result_and_small_groups_lower_the_folds():
    values = np.random.default_rng(6).normal(size=(10, 3))
    labels = np.arange(10) < 3
    one, two = linear_separability(values, labels), linear_separability(values, labels)
    assert one == two == linear_separability(values, labels, folds=3)
    assert linear_separability(values, np.arange(10) < 1).reason == "a group has one unit"
    with pytest.raises(SpecError, match="folds: 1"):
        linear_separability(values, labels, folds=1)


@pytest.mark.shared
def test_released_clusters_are_reproduced(shared_folder):
    file = json.loads((shared_folder / "golden/sodapop/kmeans.json").read_text())
    for case in file["cases"]:
        values = np.concatenate([case["X_group1"], case["X_group2"]])
        labels = np.arange(len(values)) < len(case["X_group1"])
        released = case["expected"]["n_init_10"]
        ours = kmeans_separation(values, labels, restarts=10, seed=0)
        assert ours.accuracy == pytest.approx(released["accuracy"])
        assert ours.inertia == pytest.approx(released["inertia"])
        best = case["expected"]["best_of_200_restarts"]
        many = kmeans_separation(values, labels, restarts=200, seed=0)
        assert many.inertia <= best["inertia"] + 1e-9
