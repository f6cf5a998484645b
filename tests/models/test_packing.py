"""Packed trees hold every sequence, and nodes see exactly their ancestors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenhand.models.batching.packing import by_token_budget, common_prefix, pack, packed_batches

sequences = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=25)


@given(sequences, st.integers(4, 40))
def test_each_path_spells_its_sequence_at_the_right_depths(
    rows: list[list[int]], size: int
) -> None:
    found: dict[int, list[int]] = {}
    for row in pack(rows, size):
        for number, path in row.paths.items():
            found[number] = [row.tokens[node] for node in path]
            assert [row.depths[node] for node in path] == list(range(len(path)))
    assert found == dict(enumerate(rows))


@given(sequences, st.integers(4, 40))
def test_a_node_sees_itself_and_its_ancestors_only(rows: list[list[int]], size: int) -> None:
    for row in pack(rows, size):
        visible = row.visible(len(row) + 2)
        for path in row.paths.values():
            for step, node in enumerate(path):
                assert set(visible[node].nonzero()[0]) == set(path[: step + 1])
        assert visible[-1].sum() == 1


@given(sequences)
def test_shared_beginnings_are_stored_once(rows: list[list[int]]) -> None:
    (row,) = pack(rows, 10_000)
    prefixes = {tuple(r[:k]) for r in rows for k in range(1, len(r) + 1)}
    assert len(row) == len(prefixes)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 100))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = by_token_budget(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_common_prefix_of_empty_is_zero() -> None:
    assert common_prefix([], [1]) == 0


@given(sequences, st.integers(4, 40))
def test_subtree_ends_say_who_sees_whom(rows: list[list[int]], size: int) -> None:
    for row in pack(rows, size):
        node = np.arange(len(row))
        ends = np.asarray(row.ends())
        seen = (node[None] <= node[:, None]) & (node[:, None] < ends[None])
        assert (seen == row.visible(len(row))).all()


@given(sequences, st.integers(4, 40), st.integers(8, 80))
def test_batches_ask_every_position_once(rows: list[list[int]], size: int, budget: int) -> None:
    positions = [range(len(row) // 2, len(row)) for row in rows]
    batches = packed_batches(pack(rows, size), positions, budget, limit=7)
    asked = []
    for batch in batches:
        tokens = batch.tokens[batch.rows, batch.columns][batch.inverse]
        places = list(zip(batch.owners.tolist(), batch.steps.tolist()))
        assert tokens.tolist() == [rows[o][s] for o, s in places]
        asked += places
    assert sorted(asked) == [(i, s) for i, steps in enumerate(positions) for s in steps]
