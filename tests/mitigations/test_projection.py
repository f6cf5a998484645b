"""Projection of word vectors: the axis goes, the rest stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import DataError, SpecError
from evenhand.metrics.association import associations
from evenhand.mitigations.vectors.fit import mean_axis, project
from evenhand.models.vectors.files import VectorTable

WORDS = ("he", "she", "man", "woman", "nurse", "engineer", "tree", "house")


def made(seed: int = 0) -> VectorTable:
    rows = np.random.default_rng(seed).normal(size=(len(WORDS), 6)) * 2
    return VectorTable(pa.array(list(WORDS)), rows.astype(np.float32), "made")


@given(st.integers(0, 200), st.floats(-1, 1))
@settings(max_examples=20, deadline=None)
def test_the_part_along_the_axis_shrinks_by_the_amount(seed: int, amount: float) -> None:
    table = made(seed)
    axis = mean_axis(table, ["he", "man"], ["she", "woman"])
    moved = project(table, axis, words=["nurse", "engineer"], amount=amount, keep_norms=False)
    before, after = (t.matrix[4:6].astype(float) @ axis[0] for t in (table, moved))
    np.testing.assert_allclose(after, (1 - amount) * before, atol=1e-5)
    across = np.eye(6) - axis.T @ axis
    np.testing.assert_allclose(moved.matrix[4:6] @ across, table.matrix[4:6] @ across, atol=1e-5)
    np.testing.assert_array_equal(
        moved.matrix[[0, 1, 2, 3, 6, 7]], table.matrix[[0, 1, 2, 3, 6, 7]]
    )


def test_the_hard_form_leaves_no_association_and_keeps_lengths() -> None:
    table = made()
    a, b = ["he", "man"], ["she", "woman"]
    moved = project(table, mean_axis(table, a, b), words=["nurse", "engineer"])
    s = associations(moved.find(["nurse", "engineer"]).rows, table.find(a).rows, table.find(b).rows)
    np.testing.assert_allclose(s, 0, atol=1e-6)
    lengths = [np.linalg.norm(t.matrix, axis=1) for t in (moved, table)]
    np.testing.assert_allclose(*lengths, rtol=1e-6)


def test_all_words_but_those_that_define_the_axis() -> None:
    table = made()
    axis = mean_axis(table, ["he"], ["she"])
    moved = project(table, axis, without=["he", "she"])
    np.testing.assert_array_equal(moved.matrix[:2], table.matrix[:2])
    np.testing.assert_allclose(moved.matrix[2:] @ axis[0], 0, atol=1e-5)


def test_a_vector_on_the_axis_stays() -> None:
    table = VectorTable(pa.array(["on", "off"]), np.array([[2, 0], [1, 1]], np.float32))
    np.testing.assert_allclose(
        project(table, [[1.0, 0.0]]).matrix, [[2, 0], [0, np.sqrt(2)]], atol=1e-6
    )


def test_wrong_input() -> None:
    table = made()
    with pytest.raises(DataError, match="set b: none of its 1 words has a vector"):
        mean_axis(table, ["he"], ["gone"])
    with pytest.raises(DataError, match="same mean vector"):
        mean_axis(table, ["he"], ["he"])
    with pytest.raises(DataError, match="5 numbers where the vectors have 6"):
        project(table, np.ones(5))
    with pytest.raises(DataError, match="zero or lies in the span"):
        project(table, [np.ones(6), np.ones(6)])
    with pytest.raises(SpecError, match="amount: '1.5' is more than the whole"):
        project(table, np.ones(6), amount=1.5)
    with pytest.raises(DataError, match="none of the 1 words has a vector"):
        project(table, np.ones(6), words=["gone"])
