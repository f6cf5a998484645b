"""RND, MAC, ECT and RIPA: definitions, WEFE 1.0.1 where it is right, and where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DataError
from evenhand.metrics import embedding

# What WEFE 1.0.1 gives for these four sets of five words.
_MATRIX = np.random.default_rng(11).normal(size=(20, 8)).astype(np.float32)
X, Y, A, B = (_MATRIX[k : k + 5] for k in (0, 5, 10, 15))


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / np.sqrt((u @ u) * (v @ v)))


def test_numbers_of_wefe() -> None:
    assert embedding.rnd(X, Y, A, normalise=False).value == pytest.approx(-0.0611677, abs=1e-6)
    assert embedding.rnd(X, Y, A).value == pytest.approx(-0.0210816, abs=1e-6)
    assert embedding.mac(X, [A, B]).value == pytest.approx(0.99933013, abs=1e-6)
    assert embedding.ect(X, Y, A, normalise=False) == pytest.approx(0.3, abs=1e-12)
    assert embedding.ect(X, Y, A) == pytest.approx(0.5, abs=1e-12)
    assert embedding.ripa(X, Y, A).value == pytest.approx(0.04371803, abs=1e-6)
    assert embedding.ripa(X, Y, A, normalise=True).value == pytest.approx(0.03153406, abs=1e-6)


def test_cosine_distance_is_a_distance() -> None:
    ours = embedding.rnd(X, Y, A, distance="cos", normalise=False)
    # WEFE 1.0.1 prints +0.1193: it subtracts similarities.
    assert ours.value == pytest.approx(-0.11931557, abs=1e-6)
    centres = [part.mean(axis=0) for part in (X, Y)]
    wanted = [cosine(w, centres[1]) - cosine(w, centres[0]) for w in A]
    np.testing.assert_allclose(ours.by_word, wanted, atol=1e-6)


@given(st.integers(0, 500))
def test_both_distances_agree_on_the_sign_for_unit_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, a = (rng.normal(size=(1, 4)) for _ in range(3))
    norm, cos = (embedding.rnd(x, y, a, distance=d).value for d in ("norm", "cos"))
    assert np.sign(norm) == np.sign(cos)


@given(st.integers(0, 500))
def test_exchanging_the_groups_flips_what_has_a_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, a = (rng.normal(size=(4, 5)) for _ in range(3))
    assert embedding.rnd(y, x, a).value == pytest.approx(-embedding.rnd(x, y, a).value, abs=1e-12)
    assert embedding.ripa(y, x, a).value == pytest.approx(-embedding.ripa(x, y, a).value, abs=1e-12)
    assert embedding.ect(y, x, a) == pytest.approx(embedding.ect(x, y, a), abs=1e-12)


def test_mac_by_its_definition() -> None:
    wanted = [[np.mean([1 - cosine(t, w) for w in part]) for part in (A, B)] for t in X]
    found = embedding.mac(X, [A, B])
    np.testing.assert_allclose(found.by_word, wanted, atol=1e-6)
    assert found.value == pytest.approx(np.mean(wanted), abs=1e-6)


def test_ripa_by_its_definition() -> None:
    x, y = X.astype(float), Y.astype(float)
    scores = [[w @ (p - q) / np.linalg.norm(p - q) for p, q in zip(x, y)] for w in A.astype(float)]
    found = embedding.ripa(X, Y, A)
    np.testing.assert_allclose(found.by_word, np.mean(scores, axis=1), atol=1e-12)
    np.testing.assert_allclose(found.spread, np.std(scores, axis=1), atol=1e-12)


def test_ect_is_a_rank_correlation_with_ties() -> None:
    stats = pytest.importorskip("scipy.stats")
    words = np.concatenate([A, A[:2], B])
    sims = [[cosine(w, part.mean(axis=0)) for w in words] for part in (X, Y)]
    wanted = stats.spearmanr(np.round(sims[0], 6), np.round(sims[1], 6)).statistic
    assert embedding.ect(X, Y, words, normalise=False) == pytest.approx(wanted, abs=1e-12)
    assert np.isnan(embedding.ect(X, Y, A[:1]))


def test_wrong_input() -> None:
    with pytest.raises(DataError, match="5 rows of x and 4 of y are not pairs"):
        embedding.ripa(X, Y[:4], A)
    with pytest.raises(DataError, match="no pair has two different vectors"):
        embedding.ripa(X, X, A)
    with pytest.raises(DataError, match="rnd: set a has no vectors"):
        embedding.rnd(X, Y, A[:0])
    for metric in (embedding.rnd, embedding.ect, embedding.ripa):
        with pytest.raises(DataError, match=r"of one length are expected, not x .8., y .8., a .3."):
            metric(X, X + 1, A[:, :3])
    with pytest.raises(DataError, match=r"not targets .8., attributes.0. .3."):
        embedding.mac(X, [A[:, :3]])
    with pytest.raises(DataError, match="no set is given"):
        embedding.mac(X, [])
    with pytest.raises(DataError, match="distance: 'cosine'"):
        embedding.rnd(X, Y, A, distance="cosine")
