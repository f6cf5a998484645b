"""Keyed running sums: totals of every key, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.compare.sums import Sums


@pytest.mark.parametrize("block", [1, 7, 200])
def test_totals_are_those_of_all_rows_at_once(block: int) -> None:
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 9, 200) * 1_000_003, rng.normal(size=(200, 2))
    sums = Sums(3)
    for start in range(0, 200, block):
        rows = slice(start, start + block)
        ones = np.ones((len(keys[rows]), 1))
        sums.add(keys[rows], np.hstack([values[rows], ones]))
    known, totals = sums.joined()
    assert known.tolist() == sorted(set(keys.tolist()))
    for key, total in zip(known, totals):
        mine = values[keys == key]
        assert total == pytest.approx([*mine.sum(axis=0), len(mine)])


def test_equal_blocks_have_equal_sums_to_the_last_digit() -> None:
    values = np.random.default_rng(1).normal(size=(1_000, 1)) * 1e8
    keys = np.arange(1_000) % 3
    joined = []
    for _ in range(2):
        sums = Sums(1)
        for start in range(0, 1_000, 64):
            sums.add(keys[start : start + 64], values[start : start + 64])
        joined.append(sums.joined()[1].tobytes())
    assert joined[0] == joined[1]


def test_nothing_added_is_no_key() -> None:
    known, totals = Sums(4).joined()
    assert (known.shape, totals.shape) == ((0,), (0, 4))
