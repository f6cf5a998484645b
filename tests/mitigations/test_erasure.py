"""INLP and LEACE: known ranks, equality with refitting, the theorem itself, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import orth, solve
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import DataError, SpecError
from evenhand.mitigations.erase_features import (
    Features,
    erase,
    fresh_accuracy,
    majority,
    read_features,
)
from evenhand.mitigations.erasing import LEACE, RIDGE, erase_pairs, inlp, leace, shrunk


def make(
    n: int = 1_000, d: int = 40, classes: int = 3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, d)) * np.linspace(2, 0.3, d)
    return X + rng.normal(size=(classes, d))[y] * 0.8, y


def split(n: int) -> np.ndarray:
    return np.repeat([0, 1, 2], [int(0.6 * n), int(0.2 * n), n - int(0.6 * n) - int(0.2 * n)])


def test_the_closed_form_equals_refitting_every_round() -> None:
    X, y = make()
    found = inlp(X, y, rounds=8)
    targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    ridge = RIDGE * np.trace(X.T @ X) / X.shape[1]
    P = np.eye(X.shape[1])
    for number in range(8):
        left = X @ P
        W = P @ solve(left.T @ left + ridge * np.eye(len(P)), left.T @ targets)
        P = P - orth(W) @ orth(W).T @ P
        basis = found.after(number + 1).left
        assert basis.shape[1] == 3 * (number + 1)
        np.testing.assert_allclose(np.eye(len(P)) - basis @ basis.T, P, atol=1e-8)


def test_the_projection_is_symmetric_and_idempotent() -> None:
    P = inlp(*make(), rounds=5).projection
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    np.testing.assert_allclose(P @ P, P, atol=1e-12)


def test_linear_svc_rounds_equal_the_released_loop() -> None:
    """The released loop: fit on X P, sum the row-space projections, project X anew."""
    from sklearn.svm import LinearSVC

    X, y = make(400, 20)
    found = inlp(X, y, rounds=4, classifier="svc")
    total, P = np.zeros((20, 20)), np.eye(20)
    for number in range(4):
        model = LinearSVC(fit_intercept=False, dual=False, random_state=0).fit(X @ P, y)
        basis = orth(model.coef_.T)
        total += basis @ basis.T
        span = orth(total)
        P = np.eye(20) - span @ span.T
        assert found.after(number + 1).left.shape[1] == span.shape[1] == 3 * (number + 1)
    np.testing.assert_allclose(found.projection, P, atol=1e-4)


def test_two_classes_lose_one_dimension_a_round_and_nothing_left_stops() -> None:
    X, y = make(classes=2, d=6)
    assert inlp(X, y, rounds=3).rounds == (1, 2, 3)
    done = inlp(X, y, rounds=50)
    assert done.rank <= 6
    assert "no direction left" in done.reason


def test_eighty_rounds_of_three_classes_take_240_directions() -> None:
    X, y = make(6_000, 768)
    assert inlp(X[:4_800], y[:4_800], rounds=80).rank == 240


def test_leace_leaves_no_covariance_with_the_label_and_keeps_the_mean() -> None:
    X, y = make()
    found = leace(X, y)
    left = found(X)
    onehot = np.eye(3)[y]
    cross = (left - left.mean(0)).T @ (onehot - onehot.mean(0)) / len(X)
    assert found.rank == 2
    assert np.abs(cross).max() < 1e-12
    np.testing.assert_allclose(left.mean(0), X.mean(0), atol=1e-12)
    np.testing.assert_allclose(found.projection @ found.projection, found.projection, atol=1e-10)
    np.testing.assert_allclose(X @ found.projection.T + found.offset, left, atol=1e-10)


def test_parts_give_the_map_of_the_whole() -> None:
    X, y = make()
    order = np.argsort(y, kind="stable")  # the first part holds one label
    cuts = np.split(order, [100, 101, 700])
    parts = LEACE(shrinkage=True)
    for at in cuts:
        parts.update(X[at], y[at])
    whole = LEACE(shrinkage=True).fit(X, y)
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-9)
    assert parts.rank_ == 2
    parts.update(X, y)  # taken in again: the same means and spreads, solved anew
    np.testing.assert_allclose(parts.transform(X).mean(0), X.mean(0), atol=1e-9)
    with pytest.raises(DataError, match="X has 3 columns, earlier parts had"):
        parts.update(X[:, :3], y)
    with pytest.raises(DataError, match="y holds only"):
        LEACE().fit(X[y == 0], y[y == 0])
    with pytest.raises(DataError, match="not fitted yet"):
        LEACE().transform(X)


def test_shrinkage_erases_as_well_and_is_that_of_the_covariance() -> None:
    X, y = make(60, 40)
    found = leace(X, y, shrinkage=True)
    left, onehot = found(X), np.eye(3)[y]
    assert np.abs((left - left.mean(0)).T @ (onehot - onehot.mean(0))).max() < 1e-10
    S = np.cov(X.T, ddof=0)
    alpha = 1 - np.trace(S) ** 2 / 60 / ((S**2).sum() - np.trace(S) ** 2 / 40)
    mixed = alpha * S + (1 - alpha) * np.trace(S) / 40 * np.eye(40)
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvalsh(mixed)), shrunk(np.linalg.eigvalsh(S), 60), atol=1e-12
    )
    assert 0 < alpha < 1


def test_float32_rows_stay_float32_and_lose_the_label() -> None:
    X, y = make()
    fitted = LEACE().fit(X, y)
    small = fitted.transform(X.astype(np.float32))
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, fitted.transform(X), atol=1e-4)


def test_leace_changes_less_than_erasing_the_same_directions_orthogonally() -> None:
    X, y = make()
    found = leace(X, y)
    centred = X - X.mean(0)
    basis = orth(centred.T @ np.eye(3)[y])
    orthogonal = np.square(centred @ basis).sum(1).mean()
    assert np.square(found(X) - X).sum(1).mean() <= orthogonal * (1 + 1e-9)


def test_a_fresh_classifier_falls_to_the_majority() -> None:
    X, y = make(3_000, 30)
    data = Features(X, y, split(3_000))
    for method in ("leace", "inlp"):
        found = erase(data, method=method, rounds=9)
        assert found.accuracy_before > 0.8
        assert found.accuracy_after <= found.majority + 0.06
    stopped = erase(data, method="inlp", rounds=30, stop_at_majority=True)
    assert stopped.rank_removed < 30
    assert "stopping rule" in (stopped.reason or "")


def test_pair_erasure_removes_the_direction_of_the_differences_at_least_cost() -> None:
    rng = np.random.default_rng(0)
    text = rng.normal(size=(2_000, 10)) * np.array([5.0] + [1.0] * 9)
    direction = np.zeros(10)
    direction[:2] = 1.0
    differences = direction * rng.normal(2, 0.1, size=(50, 1))
    found = erase_pairs(differences, text, 1)
    first = found.after(1)
    left, right, offset = first.left, first.right, first.offset
    assert np.abs(differences - (differences @ right) @ left.T).max() < 0.15
    kept = text - (text @ right) @ left.T + offset
    np.testing.assert_allclose(kept.mean(0), text.mean(0), atol=1e-9)
    plain = np.square((text - text.mean(0)) @ direction / np.sqrt(2)).mean()
    assert np.square(kept - text).sum(1).mean() < plain


def test_the_command_writes_the_contract(tmp_path: Path) -> None:
    X, y = make(600, 12)
    file, out = tmp_path / "f.npz", tmp_path / "P.npz"
    np.savez(file, X=X.astype(np.float32), y=y, split=split(600))
    for method, extra in (("inlp", ["--rounds", "2", "--classifier", "svc"]), ("leace", [])):
        result = CliRunner().invoke(
            app, ["erase", str(file), "--method", method, *extra, "--out", str(out), "--json", "-"]
        )
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert report["rank_removed"] == {"inlp": 6, "leace": 2}[method]
        data = Features(X, y, split(600))
        assert report["majority"] == majority(data)
        assert report["accuracy_before"] == pytest.approx(fresh_accuracy(data), abs=0.01)
        with np.load(out, allow_pickle=False) as saved:
            assert saved["P"].shape == (12, 12)
            assert np.linalg.matrix_rank(saved["P"], tol=1e-8) == 12 - report["rank_removed"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 2))}, "array 'y' is missing"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(2)}, r"X has shape \(3, 2\) and y \(2,\)"),
        ({"X": np.full((3, 2), np.nan), "y": np.arange(3)}, "row 0 holds NaN"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(3)}, r"y holds only \[0.0\]"),
        ({"X": np.zeros((3, 2)), "y": np.arange(3), "split": [0, 0, 5]}, "'split' has shape"),
        ({"X": np.zeros((3, 2)), "y": np.arange(3), "split": [0, 0, 0]}, "no test row"),
    ],
)
def test_wrong_files_are_named(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    file = tmp_path / "f.npz"
    np.savez(file, **arrays)
    with pytest.raises(DataError, match=message):
        read_features(file)


def test_pickles_and_unknown_options_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "f.npz"
    np.savez(file, X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(DataError, match="plain arrays"):
        read_features(file)
    X, y = make(100, 4)
    with pytest.raises(SpecError, match="unknown classifier 'svm'"):
        inlp(X, y, rounds=1, classifier="svm")
    with pytest.raises(SpecError, match="rounds is 0"):
        inlp(X, y, rounds=0)
    with pytest.raises(SpecError, match="unknown method 'lease'"):
        erase(Features(X, y, split(100)), method="lease")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([["a"]] * 4), np.array([0, 1, 0, 1]), "X holds str"),
        (np.ones((4, 1)) * 1j, np.array([0, 1, 0, 1]), "X holds complex"),
        (np.ones((4, 0)), np.array([0, 1, 0, 1]), r"shape \(4, 0\)"),
        (np.ones((4, 1)), np.array([0, 1, np.nan, 1]), "y, row 2 is NaN"),
    ],
)
def test_what_is_no_feature_or_label_is_named(X: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        inlp(X, y, rounds=1)


def test_train_rows_of_one_label_are_named() -> None:
    rows = Features(np.ones((4, 2)), np.array(["a", "a", "a", "b"]), np.array([0, 0, 2, 2]))
    with pytest.raises(DataError, match=r"2 train rows hold only the label \['a'\]"):
        erase(rows)


@pytest.mark.parametrize("classifier", ["lsq", "svc"])
@pytest.mark.parametrize(("value", "rank"), [(0.0, 0), (1.0, 1)])
def test_columns_that_never_change_lose_no_more_than_their_rank(
    classifier: str, value: float, rank: int
) -> None:
    y = np.random.default_rng(0).integers(0, 2, 61)
    found = inlp(np.full((61, 4), value), y, rounds=4, classifier=classifier)
    assert found.rank == rank
    assert "no direction left" in found.reason
