"""Proposition 1 of the paper, and what else must hold for any scores whatever."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.metrics import unqover
from evenhand.probes.underspecified.design import Cells
from evenhand.probes.underspecified.tables import TableSums
from evenhand.stats.ranks import descending_ranks, rank_table

few = settings(max_examples=60, deadline=None)
cells = arrays(
    np.float64, st.tuples(st.integers(1, 6), *[st.just(2)] * 3), elements=st.floats(0, 1)
)


def swapped(scores: np.ndarray) -> np.ndarray:
    """The same answers with the cell's two terms exchanged (their order of naming as well)."""
    return scores[:, ::-1, :, ::-1]


@few
@given(cells)
def test_exchanging_the_terms_turns_the_sign(scores: np.ndarray) -> None:
    assert np.array_equal(unqover.comparative(swapped(scores)), -unqover.comparative(scores))


@few
@given(cells)
def test_the_order_of_the_two_contexts_does_not_matter(scores: np.ndarray) -> None:
    assert np.allclose(
        unqover.comparative(scores[:, ::-1]), unqover.comparative(scores), atol=1e-15
    )


@few
@given(cells)
def test_negating_the_attribute_exchanges_the_terms(scores: np.ndarray) -> None:
    negated = scores[:, :, ::-1]
    assert np.allclose(
        unqover.comparative(negated), unqover.comparative(swapped(scores)), atol=1e-15
    )


@few
@given(cells)
def test_a_preference_never_leaves_its_range(scores: np.ndarray) -> None:
    assert (np.abs(unqover.comparative(scores)) <= 1).all()
    assert (np.abs(unqover.term_bias(scores)) <= 1).all()


@few
@given(st.integers(1, 5), st.floats(0, 1), st.floats(0, 1))
def test_a_model_that_sees_only_positions_has_no_preference(n: int, one: float, two: float) -> None:
    named_first, named_second = np.array([one, two]), np.array([two, one])
    scores = np.broadcast_to(np.stack([named_first, named_second])[:, None], (2, 2, 2))
    c = unqover.comparative(np.broadcast_to(scores, (n, 2, 2, 2)))
    assert np.abs(c).max() < 1e-15


@few
@given(cells)
def test_a_shift_by_position_cancels(scores: np.ndarray) -> None:
    shift = np.zeros((1, 2, 2, 2))
    shift[:, 0, :, 0] = shift[:, 1, :, 1] = 0.25  # whoever is named first
    assert np.allclose(unqover.comparative(scores + shift), unqover.comparative(scores), atol=1e-12)


@few
@given(cells)
def test_a_model_that_ignores_the_question_has_no_preference(scores: np.ndarray) -> None:
    blind = np.repeat(scores[:, :, :1], 2, axis=2)
    assert np.abs(unqover.term_bias(blind)).max() == 0
    assert np.abs(unqover.comparative(blind)).max() == 0


@few
@given(st.integers(0, 2**31), st.integers(3, 6), st.integers(1, 4))
def test_preferences_of_all_terms_sum_to_zero_when_everyone_meets(
    seed: int, terms: int, attributes: int
) -> None:
    first, second = np.triu_indices(terms, k=1)
    n = len(first) * attributes
    attribute = np.tile(np.arange(attributes), len(first))
    c = np.random.default_rng(seed).uniform(-1, 1, n)
    ends = np.repeat(first, attributes), np.repeat(second, attributes)
    table = unqover.preferences(c, *ends, attribute, n_terms=terms, n_attributes=attributes)
    assert np.allclose(table.gamma.sum(axis=0), 0, atol=1e-12)
    names = tuple(map(str, range(terms))), tuple(map(str, range(attributes)))
    scores = np.random.default_rng(seed).uniform(size=(n, 2, 2, 2))
    cells = Cells(scores, *ends, attribute, np.zeros(n, int), *names, ("t",), (), None, 4 * n)
    sums = TableSums(cells)
    sums.add(cells)
    assert np.allclose(sums.win_ratio().mean(axis=0), 0.5)


@few
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8, unique=True), st.integers(1, 4))
def test_ranks_are_a_permutation_and_equal_models_agree(values: list[float], models: int) -> None:
    named = {f"t{i}": v for i, v in enumerate(values)}
    assert sorted(descending_ranks(named).values()) == list(range(1, len(values) + 1))
    table = rank_table([named] * models)
    assert all(row.sd == 0 for row in table)
    assert [row.term for row in table] == list(descending_ranks(named))
