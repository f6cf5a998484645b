"""Batches of one length: every input once, within the budget, little padding."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenhand.models.batching.parts import MIN_SHARE, numbered, similar_lengths


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 300))
def test_every_input_is_in_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.asarray(lengths)
    batches = similar_lengths(sizes, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * sizes[batch].max() <= budget


def test_many_inputs_of_one_length_are_never_padded() -> None:
    sizes = np.repeat([19, 24, 21], [900, 700, 800])
    batches = similar_lengths(sizes, 4_800)
    assert all(len(set(sizes[batch].tolist())) == 1 for batch in batches)
    full = [len(batch) * sizes[batch[0]] for batch in batches]
    assert min(full) >= MIN_SHARE * 4_800


def test_a_few_long_inputs_join_the_next_shorter_ones() -> None:
    sizes = np.repeat([24, 23], [3, 400])
    batches = similar_lengths(sizes, 4_800)
    mixed = [batch for batch in batches if len(set(sizes[batch].tolist())) > 1]
    assert len(mixed) == 1
    assert len(batches) == 3


def test_numbers_follow_the_order_of_arrival() -> None:
    distinct, codes = numbered([("b", 1), ("a", 2), ("b", 1)])
    assert distinct == [("b", 1), ("a", 2)]
    assert codes.tolist() == [0, 1, 0]
