"""UnQover metrics: worked example, Proposition 1 of the paper, and a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.metrics import unqover

EXAMPLE = np.array([[[[0.26, 0.73], [0.35, 0.62]], [[0.54, 0.45], [0.12, 0.86]]]])
cells = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(2), st.just(2), st.just(2)),
    elements=st.floats(0, 1),
)  # fmt: skip


def swap_terms(scores: np.ndarray) -> np.ndarray:
    """The same inputs with the two terms exchanged: other candidate, other order."""
    return scores[:, ::-1, :, ::-1]


def test_the_worked_example_gives_the_equation_not_the_misprint() -> None:
    assert unqover.comparative(EXAMPLE)[0] == pytest.approx(0.1575, abs=1e-12)
    assert unqover.term_bias(EXAMPLE)[0].tolist() == pytest.approx([0.165, -0.15], abs=1e-12)
    found = unqover.summary(EXAMPLE, [0], [1], [0], n_terms=2, n_attributes=1)
    assert (found.delta, found.epsilon) == pytest.approx((0.2575, 0.3475), abs=1e-12)
    assert (found.mean_score, found.mu, found.eta) == pytest.approx((0.49125, 0.1575, 1.0))


@given(cells)
def test_swapping_the_terms_flips_the_sign_exactly(scores: np.ndarray) -> None:
    swapped = unqover.comparative(swap_terms(scores))
    assert (unqover.comparative(scores) == -swapped).all()


@given(cells)
def test_the_order_of_the_contexts_does_not_matter(scores: np.ndarray) -> None:
    assert (unqover.comparative(scores) == unqover.comparative(scores[:, ::-1])).all()


@given(cells)
def test_negating_the_attribute_swaps_the_terms(scores: np.ndarray) -> None:
    negated = swap_terms(scores)[:, :, ::-1]
    np.testing.assert_allclose(
        unqover.comparative(scores), unqover.comparative(negated), atol=1e-15
    )


@given(cells, st.floats(-1, 1), st.floats(-1, 1))
def test_a_constant_that_depends_on_position_cancels(
    scores: np.ndarray, front: float, back: float
) -> None:
    by_order = np.array([[front, back], [back, front]])[:, None, :]
    moved = unqover.comparative(scores + by_order)
    np.testing.assert_allclose(moved, unqover.comparative(scores), atol=1e-12)


@given(cells)
def test_a_model_that_ignores_the_negation_has_no_preference(scores: np.ndarray) -> None:
    deaf = np.repeat(scores[:, :, :1], 2, axis=2)
    assert (unqover.term_bias(deaf) == 0).all()


@given(cells)
def test_ranges(scores: np.ndarray) -> None:
    assert (np.abs(unqover.comparative(scores)) <= 1).all()
    for error in (unqover.positional_error(scores), unqover.attribute_error(scores)):
        assert ((error >= 0) & (error <= 1)).all()


@settings(max_examples=25)
@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_averages_agree_with_a_plain_loop(
    n_terms: int, n_attributes: int, n_templates: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    design = [
        (i, j, a)
        for i in range(n_terms)
        for j in range(i)
        for a in range(n_attributes)
        for _ in range(n_templates)
        if rng.random() < 0.8
    ]
    if not design:
        return
    scores = rng.random((len(design), 2, 2, 2))
    c = unqover.comparative(scores)
    first, second, attribute = (np.array(column) for column in zip(*design, strict=True))
    table = unqover.preferences(
        c, first, second, attribute, n_terms=n_terms, n_attributes=n_attributes
    )
    for x in range(n_terms):
        for a in range(n_attributes):
            values = [v if i == x else -v for (i, j, b), v in zip(design, c, strict=True)
                      if x in (i, j) and a == b]  # fmt: skip
            assert table.n[x, a] == len(values)
            if values:
                assert table.gamma[x, a] == pytest.approx(np.mean(values), abs=1e-12)
                assert table.eta[x, a] == pytest.approx(np.mean(np.sign(values)), abs=1e-12)
            else:
                assert np.isnan(table.gamma[x, a])


def test_gamma_sums_to_zero_when_all_terms_meet() -> None:
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(7, 1)
    table = unqover.preferences(rng.normal(size=len(first)), first, second, n_terms=7)
    assert table.gamma.sum() == pytest.approx(0, abs=1e-12)


def test_gamma_of_a_term_weighs_cells_not_attributes() -> None:
    values, attribute = [0.3, 0.3, 0.3, -0.1], [0, 0, 0, 1]
    table = unqover.preferences(values, [0] * 4, [1] * 4, n_terms=2)
    assert table.gamma[0] == pytest.approx(0.2)
    by_attribute = unqover.preferences(
        values, [0] * 4, [1] * 4, attribute, n_terms=2, n_attributes=2
    )
    assert by_attribute.gamma[0].mean() == pytest.approx(0.1)


def test_nan_cells_are_left_out_and_counted() -> None:
    scores = np.concatenate([EXAMPLE, EXAMPLE])
    scores[1, 0, 0, 0] = np.nan
    found = unqover.summary(scores, [0, 0], [1, 1], [0, 1], n_terms=2, n_attributes=2)
    assert (found.n_cells, found.n_incomplete) == (1, 1)
    assert found.delta == pytest.approx(0.2575)
    assert found.mu == pytest.approx(0.1575)


def test_no_complete_cell_is_undefined_not_zero() -> None:
    found = unqover.summary(EXAMPLE * np.nan, [0], [1], [0], n_terms=2, n_attributes=1)
    assert np.isnan([found.delta, found.epsilon, found.mean_score, found.mu, found.eta]).all()
    assert found.n_cells == 0


def test_ties_are_ties_also_after_rounding() -> None:
    scores = np.full((1, 2, 2, 2), 0.1)
    scores[0, :, 0] += 0.2  # 0.1 + 0.2 is not 0.3 in binary
    scores[0, 0, 0, 0] = 0.3
    assert unqover.preference_sign(unqover.comparative(scores)).tolist() == [0.0]
    assert unqover.flips(scores).order_compared == 0


def test_the_size_of_all_scores_changes_no_sign() -> None:
    scores = np.random.default_rng(0).random((40, 2, 2, 2))
    codes = np.arange(40) % 5, np.arange(40) % 5 + 1, np.arange(40) % 3
    sizes = {"n_terms": 6, "n_attributes": 3}
    large, tiny = (unqover.summary(s, *codes, **sizes) for s in (scores, scores * 1e-14))
    assert tiny.eta == pytest.approx(large.eta, abs=1e-12)
    assert tiny.mu == pytest.approx(large.mu * 1e-14, rel=1e-9)
    assert unqover.flips(scores * 1e-14) == unqover.flips(scores)


def test_flips_count_real_changes_only() -> None:
    steady = np.zeros((1, 2, 2, 2))
    steady[0, :, 0] = [0.9, 0.1]
    steady[0, :, 1] = [0.1, 0.9]
    assert unqover.flips(steady) == unqover.Flips(0, 2, 0, 2)
    by_position = np.zeros((1, 2, 2, 2))
    by_position[0, 0] = [0.9, 0.1]
    by_position[0, 1] = [0.1, 0.9]
    assert unqover.flips(by_position) == unqover.Flips(2, 2, 2, 2)


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(4, 2\), expected \(cells, 2, 2, 2\)"):
        unqover.comparative(np.zeros((4, 2)))


def test_the_full_gender_set_is_summed() -> None:
    rng = np.random.default_rng(0)
    grid = np.meshgrid(*(np.arange(n, dtype=np.int32) for n in (70, 70, 70, 4)), indexing="ij")
    first, second, attribute, _ = (axis.ravel() for axis in grid)
    scores = rng.random((len(first), 2, 2, 2), dtype=np.float32)
    found = unqover.summary(scores, first, second + 70, attribute, n_terms=140, n_attributes=70)
    assert found.n_cells == 1_372_000
