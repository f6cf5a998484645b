"""LEACE, INLP and SentenceDebias are scikit-learn transformers, not things that look like them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from evenhand.errors import DataError, SpecError
from evenhand.mitigations.erasing import INLP, LEACE, SentenceDebias, inlp, leace, pair_components

ERASERS = pytest.mark.parametrize("eraser", [LEACE, INLP, SentenceDebias])
SETTINGS = [
    (LEACE, {"ridge": 0.1, "shrinkage": True}),
    (INLP, {"rounds": 3, "classifier": "svc", "ridge": 0.5, "stop": None}),
    (SentenceDebias, {"components": 2, "keep_mean": False}),
]
ALL_SETTINGS = pytest.mark.parametrize(
    ("eraser", "settings"), SETTINGS, ids=lambda v: getattr(v, "__name__", "")
)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Three label means in ten dimensions."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    return rng.normal(size=(240, 10)) + rng.normal(size=(3, 10))[y] * 1.5, y


@ERASERS
def test_it_passes_the_checks_of_scikit_learn(eraser: Any) -> None:
    assert issubclass(eraser, TransformerMixin)
    assert issubclass(eraser, BaseEstimator)
    results = check_estimator(eraser(), on_skip=None)
    passed = [r for r in results if r["status"] == "passed"]
    assert len(passed) >= 45
    assert {r["check_name"] for r in results if r not in passed} <= {"check_array_api_input"}


@ALL_SETTINGS
def test_a_clone_has_the_settings_and_nothing_fitted(
    eraser: Any, settings: dict[str, Any], rows: tuple[np.ndarray, np.ndarray]
) -> None:
    fitted = eraser(**settings).fit(*rows)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params() == settings
    with pytest.raises(NotFittedError, match=r"not fitted yet. Call fit\(X, y\) first"):
        fresh.transform(rows[0])
    with pytest.raises(DataError):
        fresh.projection_  # noqa: B018 (the error is the point)
    np.testing.assert_array_equal(fresh.fit(*rows).projection_, fitted.projection_)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(rows[0]), fitted.transform(rows[0]))


def test_it_gives_the_numbers_of_the_functions(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    one, two, three = LEACE().fit(X, y), INLP(rounds=2).fit(X, y), SentenceDebias(2).fit(X, y)
    np.testing.assert_array_equal(one.transform(X), leace(X, y)(X))
    removal = inlp(X, y, rounds=2)
    np.testing.assert_array_equal(two.transform(X), removal(X))
    assert (two.rank_, two.rounds_, two.reason_) == (removal.rank, 2, "")
    basis, share = pair_components(X, y, 2)
    np.testing.assert_allclose(three.projection_, np.eye(10) - basis @ basis.T, atol=1e-12)
    np.testing.assert_array_equal(three.explained_, share)
    np.testing.assert_allclose(three.transform(X).mean(0), X.mean(0), atol=1e-12)


@pytest.mark.parametrize("eraser", [LEACE, INLP])
def test_a_classifier_behind_it_in_a_pipeline_reads_nothing(
    eraser: Any, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = rows
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    erased = make_pipeline(StandardScaler(), eraser(), LogisticRegression()).fit(X, y)
    assert plain.score(X, y) > 0.8
    assert erased.score(X, y) < 0.45  # the largest class has a third


def test_matched_rows_are_equal_behind_sentence_debias_in_a_pipeline() -> None:
    sets = np.repeat(np.arange(120), 2)
    X = np.random.default_rng(1).normal(size=(120, 10))[sets]
    X[:, 0] += np.tile([1.5, -1.5], 120)
    erased = make_pipeline(StandardScaler(), SentenceDebias()).fit_transform(X, sets)
    np.testing.assert_allclose(erased[::2], erased[1::2], atol=1e-9)


@pytest.mark.parametrize(
    ("eraser", "grid"),
    [
        (LEACE(), {"eraser__shrinkage": [False, True], "eraser__ridge": [0.0, 0.1]}),
        (INLP(), {"eraser__rounds": [1, 3], "eraser__classifier": ["lsq", "svc"]}),
        (SentenceDebias(), {"eraser__components": [1, 2]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_grid_search_sets_every_setting(
    eraser: Any, grid: dict[str, list[Any]], rows: tuple[np.ndarray, np.ndarray]
) -> None:
    steps = Pipeline([("eraser", eraser), ("classifier", LogisticRegression())])
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(*rows)
    tried = search.cv_results_["params"]
    assert len(tried) == int(np.prod([len(values) for values in grid.values()]))
    best = search.best_estimator_.named_steps["eraser"]
    assert {f"eraser__{k}": v for k, v in best.get_params().items()} | search.best_params_ == {
        f"eraser__{k}": v for k, v in best.get_params().items()
    }
    assert best.rank_ >= 1


@ERASERS
def test_names_of_columns_are_kept_and_checked(
    eraser: Any, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    pandas = pytest.importorskip("pandas", reason="set_output gives data frames of pandas")
    X, y = rows
    frame = pandas.DataFrame(X, columns=[f"d{k}" for k in range(10)])
    fitted = eraser().set_output(transform="pandas").fit(frame, y)
    out = fitted.transform(frame)
    assert list(out.columns) == list(frame.columns) == list(fitted.get_feature_names_out())
    np.testing.assert_allclose(out.to_numpy(), eraser().fit(X, y).transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame.rename(columns={"d0": "first"}))
    with pytest.raises(ValueError, match="X has 3 features, but"):
        eraser().fit(X, y).transform(X[:, :3])


@ERASERS
def test_bad_rows_and_labels_are_value_errors(
    eraser: Any, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = rows
    for wrong, message in (
        ((X, None), "requires y to be passed"),
        ((X[:-1], y), "inconsistent numbers of samples"),
        ((np.where(X > 2, np.nan, X), y), "contains NaN"),
        ((X[:1], y[:1]), "minimum of 2 is required"),
    ):
        with pytest.raises(ValueError, match=message):
            eraser().fit(*wrong)


def test_settings_are_checked_when_they_are_used(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(SpecError, match="rounds is 0"):
        INLP(rounds=0).fit(*rows)
    with pytest.raises(SpecError, match="unknown classifier 'svm'. Did you mean 'svc'"):
        INLP(classifier="svm").fit(*rows)
    with pytest.raises(SpecError, match="expected 1 to 10"):
        SentenceDebias(components=11).fit(*rows)
    with pytest.raises(DataError, match="y holds only"):
        LEACE().fit(rows[0], np.zeros(240))


def test_parts_have_names_too_and_a_refused_part_changes_nothing(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = rows
    parts = LEACE().update(X[:100], y[:100])
    with pytest.raises(DataError, match="X has 3 columns, earlier parts had 10"):
        parts.update(X[:, :3], y)
    assert parts.n_features_in_ == 10
    parts.update(X[100:], y[100:])
    np.testing.assert_allclose(parts.transform(X), LEACE().fit_transform(X, y), atol=1e-9)


def test_scikit_learn_is_loaded_by_the_transformers_alone() -> None:
    code = """
import sys
import evenhand.mitigations.erasing as erasing
assert "sklearn" not in sys.modules
from evenhand.mitigations.erasing import INLP
assert "sklearn" in sys.modules and INLP.__module__.startswith("evenhand.mitigations")
try:
    erasing.LACE
except AttributeError as error:
    assert "no attribute 'LACE'" in str(error)
else:
    raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
