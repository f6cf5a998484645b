"""Packed trees hold every sequence, and nodes see exactly their ancestors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenhand.models.batching.packing import (
    Ragged,
    Trees,
    by_token_budget,
    common_prefix,
    pack,
    packed_batches,
)

sequences = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=25)


def paths(trees: Trees) -> dict[int, list[int]]:
    """The nodes of each sequence."""
    found = {}
    for place, number in enumerate(trees.order.tolist()):
        depths = np.arange(trees.sizes[place])
        found[number] = trees.nodes(np.full(len(depths), place), depths).tolist()
    return found


@given(sequences, st.integers(4, 40), st.integers(0, 20))
def test_each_path_spells_its_sequence_at_the_right_depths(
    rows: list[list[int]], size: int, small: int
) -> None:
    trees = pack(Ragged.of(rows), size, small=small)
    found = paths(trees)
    assert {n: trees.tokens[p].tolist() for n, p in found.items()} == dict(enumerate(rows))
    for path in found.values():
        assert trees.depths[path].tolist() == list(range(len(path)))
        assert len(set(trees.row_of(np.asarray(path)).tolist())) == 1


@given(sequences, st.integers(4, 40), st.integers(0, 20))
def test_a_node_sees_itself_and_its_ancestors_only(
    rows: list[list[int]], size: int, small: int
) -> None:
    trees = pack(Ragged.of(rows), size, small=small)
    node = np.arange(len(trees.tokens))
    seen = (node[None] <= node[:, None]) & (node[:, None] < trees.ends[None])
    for path in paths(trees).values():
        for step, at in enumerate(path):
            assert set(seen[at].nonzero()[0]) == set(path[: step + 1])


@given(sequences, st.integers(4, 40))
def test_rows_take_what_fits(rows: list[list[int]], size: int) -> None:
    widths = np.diff(pack(Ragged.of(rows), size).rows)
    assert (widths <= max(size, max(map(len, rows)))).all()


@given(sequences)
def test_shared_beginnings_are_stored_once(rows: list[list[int]]) -> None:
    trees = pack(Ragged.of(rows), 10_000)
    prefixes = {tuple(r[:k]) for r in rows for k in range(1, len(r) + 1)}
    assert len(trees.rows) == 2
    assert len(trees.tokens) == len(prefixes)


@given(sequences)
def test_without_sharing_each_sequence_is_a_row_and_the_longest_come_first(
    rows: list[list[int]],
) -> None:
    trees = pack(Ragged.of(rows), 4, share=False)
    assert np.diff(trees.rows).tolist() == sorted(map(len, rows), reverse=True)
    assert {n: trees.tokens[p].tolist() for n, p in paths(trees).items()} == dict(enumerate(rows))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 100))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = by_token_budget(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_common_prefix_of_empty_is_zero() -> None:
    assert common_prefix([], [1]) == 0


@given(sequences, st.integers(4, 40), st.integers(8, 80))
def test_batches_ask_every_position_once(rows: list[list[int]], size: int, budget: int) -> None:
    positions = [range(len(row) // 2, len(row)) for row in rows]
    trees = pack(Ragged.of(rows), size)
    starts, stops = (np.array([getattr(p, at) for p in positions]) for at in ("start", "stop"))
    batches = packed_batches(trees, starts, stops, budget, limit=7)
    asked = []
    for batch in batches:
        tokens = batch.tokens[batch.rows, batch.columns][batch.inverse]
        places = list(zip(batch.owners.tolist(), batch.steps.tolist()))
        assert tokens.tolist() == [rows[o][s] for o, s in places]
        asked += places
    assert sorted(asked) == [(i, s) for i, steps in enumerate(positions) for s in steps]


def test_small_rows_end_where_sequences_begin_otherwise() -> None:
    """Those that share a context stay together, whatever its length."""
    rows = [[k, 0, 0, 0, 0, 0, 0, 0, answer] for k in range(20) for answer in range(1, 5)]
    trees = pack(Ragged.of(rows), 256, small=24)
    assert len(trees.tokens) == len(pack(Ragged.of(rows), 256).tokens), "nothing is run twice"
    assert np.diff(trees.rows).tolist() == [24] * 10
