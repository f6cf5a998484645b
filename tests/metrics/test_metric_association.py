"""WEAT and RNSB: definitions, oracles, and published numbers on real vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.errors import DataError
from evenhand.metrics import association
from evenhand.models.vectors.files import VectorTable, open_vectors
from evenhand.words import lexicons

# Effect sizes and signed RNSB of WEAT 1 to 10 on GloVe 6B 50d, with the word lists of WEFE 1.0.1
# (tests 9 and 10 differ from the paper's lists by one word each).
TESTS = [*(f"weat{k}" for k in range(1, 9)), "weat9_wefe", "weat10_wefe"]
EFFECT = [1.0916, 1.5596, 0.9606, 0.9730, 1.0872, 1.7638, 1.5442, 1.5336, 1.1678, 0.7022]
RNSB_RAW = [0.2888, 0.8329, 0.4872, 0.4226, 0.3133, 0.4126, 0.5368, 0.3601, 0.1897, 0.2819]
RNSB_UNIT = [0.136, 0.271, 0.113, 0.101, 0.061, 0.167, 0.055, 0.058, 0.057, 0.038]

vectors = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 6), st.just(5)), elements=st.floats(-3, 3)
).filter(lambda rows: bool((np.linalg.norm(rows, axis=1) > 0.1).all()))


@pytest.fixture(scope="module")
def gnews(shared: Path) -> VectorTable:
    return open_vectors(shared / "data" / "embeddings" / "googlenews_w2v_300d_subset.bin.gz")


def sets(
    seed: int, sizes: tuple[int, int, int, int] = (6, 5, 4, 7), d: int = 12
) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(size=d), 1.5, (n, d)) for n in sizes]


def by_definition(word: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    def cosine(u: np.ndarray, v: np.ndarray) -> float:
        return float(u @ v / np.sqrt((u @ u) * (v @ v)))

    near = np.mean([cosine(word, row) for row in a])
    return float(near - np.mean([cosine(word, row) for row in b]))


@given(vectors, vectors, vectors)
def test_one_product_equals_the_double_loop(
    words: np.ndarray, a: np.ndarray, b: np.ndarray
) -> None:
    wanted = [by_definition(word, a, b) for word in words]
    np.testing.assert_allclose(association.associations(words, a, b), wanted, atol=1e-12)


def test_weat_agrees_with_its_definition() -> None:
    x, y, a, b = sets(0)
    s_x = [by_definition(word, a, b) for word in x]
    s_y = [by_definition(word, a, b) for word in y]
    result = association.weat(x, y, a, b)
    assert result.statistic == pytest.approx(sum(s_x) - sum(s_y), abs=1e-12)
    gap = np.mean(s_x) - np.mean(s_y)
    assert result.effect_size == pytest.approx(gap / np.std(s_x + s_y), abs=1e-12)
    assert result.effect_size_ddof1 == pytest.approx(gap / np.std(s_x + s_y, ddof=1), abs=1e-12)


@given(st.integers(0, 500))
def test_exchanging_targets_or_attributes_flips_the_sign(seed: int) -> None:
    x, y, a, b = sets(seed)
    value = association.weat(x, y, a, b).effect_size
    assert association.weat(y, x, a, b).effect_size == pytest.approx(-value, abs=1e-12)
    assert association.weat(x, y, b, a).effect_size == pytest.approx(-value, abs=1e-12)


@given(st.integers(0, 500), st.floats(0.01, 100))
def test_weat_and_unit_rnsb_do_not_depend_on_length(seed: int, factor: float) -> None:
    x, y, a, b = sets(seed)
    scaled = [rows * factor for rows in (x, y, a, b)]
    assert association.weat(*scaled).effect_size == pytest.approx(
        association.weat(x, y, a, b).effect_size, abs=1e-9
    )
    assert association.rnsb(*scaled).signed == pytest.approx(
        association.rnsb(x, y, a, b).signed, abs=1e-9
    )


def test_raw_rnsb_does_depend_on_length() -> None:
    x, y, a, b = sets(1)
    one = association.rnsb(x, y, a, b, normalise=False).signed
    ten = association.rnsb(*(rows * 10 for rows in (x, y, a, b)), normalise=False).signed
    assert abs(one - ten) > 0.01


def test_equal_sets_reach_the_bound_of_two() -> None:
    x, y = np.tile([1.0, 0.0], (4, 1)), np.tile([0.0, 1.0], (4, 1))
    assert association.weat(x, y, x, y).effect_size == pytest.approx(2.0)


def test_equal_associations_have_no_effect_size() -> None:
    same = np.tile([1.0, 1.0], (3, 1))
    result = association.weat(same, same, [[1.0, 0.0]], [[0.0, 1.0]])
    assert np.isnan(result.effect_size)
    assert np.isnan(association.effect_size([], [1.0]))


def test_rounding_of_float32_vectors_is_not_an_effect() -> None:
    x, y, a, b = sets(0)
    axis = association.unit_rows(a).mean(axis=0) - association.unit_rows(b).mean(axis=0)
    axis /= np.linalg.norm(axis)
    flat = [(rows - np.outer(rows @ axis, axis)).astype(np.float32) for rows in (x, y)]
    found = association.weat(*flat, a, b)
    assert abs(found.statistic) < 1e-6
    assert np.isnan(found.effect_size)


def test_the_effect_size_does_not_see_that_associations_shrink() -> None:
    s_x, s_y = np.array([0.4, 0.1, 0.3]), np.array([-0.2, 0.0, 0.1])
    assert association.effect_size(s_x / 10, s_y / 10) == pytest.approx(
        association.effect_size(s_x, s_y)
    )


def test_a_zero_vector_has_no_direction() -> None:
    assert np.isnan(association.unit_rows([[0.0, 0.0]])).all()


@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_classifier_is_the_liblinear_optimum(seed: int, scale: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    _, _, a, b = sets(seed, d=40)
    rows = np.concatenate([a, b]) * scale
    labels = np.repeat([1, -1], [len(a), len(b)])
    ours = association.fit_logistic(rows, labels)
    model = linear.LogisticRegression(solver="liblinear", C=1.0, max_iter=10_000, tol=1e-8)
    theirs = model.fit(rows, labels)
    np.testing.assert_allclose(ours[:-1], theirs.coef_[0], atol=1e-4)
    assert ours[-1] == pytest.approx(theirs.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_gradient_vanishes_at_the_optimum(scale: float) -> None:
    _, _, a, b = sets(5)
    rows = np.concatenate([a, b]) * scale
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    y = np.repeat([1.0, -1.0], [len(a), len(b)])
    w = association.fit_logistic(rows[:, :-1], y)
    pull = 1 / (1 + np.exp(y * (rows @ w)))
    np.testing.assert_allclose(w, rows.T @ (y * pull), atol=1e-8 * max(1, scale))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_rows_that_outnumber_dimensions_give_the_weights_of_the_dual(scale: float) -> None:
    rng = np.random.default_rng(3)
    y = np.repeat([1.0, -1.0], [150, 90])
    rows = (rng.normal(size=(240, 25)) + 0.3 * y[:, None]) * scale
    ours = association.fit_logistic(rows, y)
    # With as many columns of zeros the same problem is solved row by row instead.
    wide = association.fit_logistic(np.hstack([rows, np.zeros((240, 240))]), y)
    np.testing.assert_allclose(wide[25:-1], 0, atol=1e-14)
    np.testing.assert_allclose(ours, [*wide[:25], wide[-1]], atol=1e-13, rtol=1e-11)


def test_kl_form_is_zero_for_equal_probabilities_and_ignores_the_split() -> None:
    x, y, a, b = sets(2)
    both = np.concatenate([x, y])
    whole = association.rnsb(x, y, a, b).kl
    assert whole > 0
    assert association.rnsb(both[:3], both[3:], a, b).kl == pytest.approx(whole, abs=1e-14)
    same = np.tile(x[:1], (3, 1))
    assert association.rnsb(same, same, a, b).kl == pytest.approx(0, abs=1e-15)
    assert association.rnsb(same, same, a, b).signed == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("metric", [association.weat, association.rnsb])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[:0], "has no vectors"),
        (lambda rows: [], "has no vectors"),
        (lambda rows: ["she"], "is no row of numbers for each of its words"),
        (lambda rows: [[1.0, 2.0], [1.0]], "is no row of numbers for each of its words"),
        (lambda rows: {"she": rows[0]}, "is no row of numbers for each of its words"),
    ],
)
@pytest.mark.parametrize("k", range(4))
def test_a_set_that_is_no_vectors_is_named(metric: Any, change: Any, told: str, k: int) -> None:
    parts = list(sets(0))
    parts[k] = change(parts[k])
    with pytest.raises(DataError, match=f"{metric.__name__}: set {'xyab'[k]} {told}"):
        metric(*parts)


def test_vectors_of_two_models_are_told_apart() -> None:
    *parts, last = sets(0)
    with pytest.raises(DataError, match="weat: vectors of one length are expected, not x "):
        association.weat(*parts, last[:, :-1])


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="3 rows, all of one class"):
        association.fit_logistic(np.eye(3), [1, 1, 1])


# Canonical WEAT 9 and 10 (WEFE's lists differ by a word) on GloVe 6B 50d, and the tests that the
# Google News subset holds: effect size (ddof 0) and signed RNSB on unit and on raw vectors, from
# cosines by scipy and liblinear at its default stopping point.
REFERENCE = [
    ("glove", "weat9"), ("glove", "weat10"), ("gnews", "weat1"), ("gnews", "weat3"),
    ("gnews", "weat6"), ("gnews", "weat7"), ("gnews", "weat8"), ("gnews", "weat9_wefe"),
    ("gnews", "weat10_wefe"),
]  # fmt: skip


@pytest.mark.shared
@pytest.mark.model
@pytest.mark.parametrize(("vectors", "test"), REFERENCE)
def test_real_vectors_against_scipy_and_liblinear(
    glove: VectorTable, gnews: VectorTable, vectors: str, test: str
) -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    linear = pytest.importorskip("sklearn.linear_model")
    words = lexicons.weat(test)
    table = glove if vectors == "glove" else gnews
    rows = [
        table.find(part).rows.astype(np.float64) for part in (words.x, words.y, words.a, words.b)
    ]
    cosine = [1 - distance.cdist(np.concatenate(rows[:2]), part, "cosine") for part in rows[2:]]
    s = cosine[0].mean(axis=1) - cosine[1].mean(axis=1)
    n = len(rows[0])
    found = association.weat(*rows)
    assert found.statistic == pytest.approx(s[:n].sum() - s[n:].sum(), abs=1e-9)
    wanted = (s[:n].mean() - s[n:].mean()) / s.std()
    assert found.effect_size == pytest.approx(wanted, abs=1e-9)
    for normalise in (True, False):
        made = [association.unit_rows(part) for part in rows] if normalise else rows
        labels = np.repeat([1, -1], [len(made[2]), len(made[3])])
        model = linear.LogisticRegression(solver="liblinear", max_iter=10_000)
        model.fit(np.concatenate(made[2:]), labels)
        f = [model.predict_proba(part)[:, 0].mean() for part in made[:2]]
        ours = association.rnsb(*rows, normalise=normalise)
        assert ours.signed == pytest.approx((f[1] - f[0]) / (f[0] + f[1]), abs=1e-4)


@pytest.mark.model
@pytest.mark.parametrize(
    ("test", "effect", "raw", "unit"), list(zip(TESTS, EFFECT, RNSB_RAW, RNSB_UNIT, strict=True))
)
def test_published_numbers_on_glove(
    glove: VectorTable, test: str, effect: float, raw: float, unit: float
) -> None:
    words = lexicons.weat(test)
    rows = [glove.find(part).rows for part in (words.x, words.y, words.a, words.b)]
    assert association.weat(*rows).effect_size == pytest.approx(effect, abs=1e-4)
    # liblinear stops up to 4e-5 away from the optimum that is computed here.
    assert association.rnsb(*rows, normalise=False).signed == pytest.approx(raw, abs=1.5e-4)
    assert association.rnsb(*rows).signed == pytest.approx(unit, abs=6e-4)
