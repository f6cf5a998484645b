"""Shared prefixes computed once: token sequences merged into trees, trees packed into rows.

Sequences that begin alike share the nodes of their common beginning. A row holds the nodes of
one or more such trees; a node may attend to itself and its ancestors only, and its position is
its depth, so a causal model computes for each node exactly what it would compute for the
sequence alone.

    "The nurse said Ann", "The nurse said Bob"   ->   The nurse said -+- Ann
                                                                      +- Bob      (5 nodes, not 8)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass
class PackedRow:
    """Nodes of one row, in an order where parents come before children.

    Attributes:
        tokens: token id per node.
        depths: position of the node within its sequence.
        parents: node index of the parent, -1 for the first token of a sequence.
        paths: sequence number -> node index of each of its tokens.
    """

    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    paths: dict[int, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, number: int, sequence: Sequence[int], shared: int, like: list[int]) -> list[int]:
        """Add a sequence whose first `shared` tokens are those of the path `like`."""
        path = list(like[:shared])
        for depth in range(shared, len(sequence)):
            self.tokens.append(sequence[depth])
            self.depths.append(depth)
            self.parents.append(path[-1] if path else -1)
            path.append(len(self.tokens) - 1)
        self.paths[number] = path
        return path

    def ends(self) -> list[int]:
        """For each node, the index after its last descendant.

        Nodes of a subtree stand side by side, so node i may attend to j when j <= i < ends[j].

        >>> pack([[1, 2, 3], [1, 2, 4], [9]], row_nodes=16)[0].ends()
        [4, 4, 3, 4, 5]
        """
        out = list(range(1, len(self.tokens) + 1))
        for node in range(len(out) - 1, -1, -1):
            parent = self.parents[node]
            if parent >= 0 and out[node] > out[parent]:
                out[parent] = out[node]
        return out

    def visible(self, width: int) -> np.ndarray:
        """Boolean [width, width]: which nodes each node may attend to. Padding sees itself."""
        mask = np.eye(width, dtype=bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                mask[node, : parent + 1] = mask[parent, : parent + 1]
        return mask


def pack(sequences: Sequence[Sequence[int]], row_nodes: int) -> list[PackedRow]:
    """Merge sequences into trees and fill rows of about `row_nodes` nodes.

    Sorting the sequences puts equal beginnings side by side; a row is closed when the next
    sequence would not fit. Cost: O(total tokens), plus the sort.

    >>> rows = pack([[1, 2, 3], [1, 2, 4], [9]], row_nodes=16)
    >>> [len(row) for row in rows], rows[0].paths[1]
    ([5], [0, 1, 3])
    """
    keys = [struct.pack(f">{len(s)}I", *s) for s in sequences]  # ordered like the lists, quicker
    order = sorted(range(len(sequences)), key=keys.__getitem__)
    rows: list[PackedRow] = []
    row = PackedRow()
    previous: Sequence[int] = ()
    path: list[int] = []
    for number in order:
        sequence = sequences[number]
        shared = common_prefix(previous, sequence)
        if row.tokens and len(row) + len(sequence) - shared > row_nodes:
            rows.append(row)
            row, shared, path = PackedRow(), 0, []
        path = row.add(number, sequence, shared, path)
        previous = sequence
    if row.tokens:
        rows.append(row)
    return rows


@dataclass(frozen=True)
class PackedBatch:
    """Rows as arrays [rows, width], and where the asked positions stand.

    Attributes:
        tokens, depths, ends: of each node; padding sees itself only.
        rows, columns: the distinct nodes asked for.
        inverse, owners, steps: for each asked position its place among those nodes, its sequence
            and its step there.
    """

    tokens: Ints
    depths: Ints
    ends: Ints
    rows: Ints
    columns: Ints
    inverse: Ints
    owners: Ints
    steps: Ints


def packed_batches(
    rows: list[PackedRow], positions: Sequence[range], budget: int, limit: int
) -> list[PackedBatch]:
    """Rows of similar size together, within the token budget and the head's memory limit."""
    batches: list[list[PackedRow]] = []
    width = asked = 0
    for row in sorted(rows, key=len, reverse=True):
        here = len({path[step] for n, path in row.paths.items() for step in positions[n]})
        fits = batches and (len(batches[-1]) + 1) * width <= budget and asked + here <= limit
        if fits:
            batches[-1].append(row)
            asked += here
        else:
            batches.append([row])
            width, asked = len(row), here
    return [_as_arrays(batch, positions) for batch in batches]


def _as_arrays(batch: Sequence[PackedRow], positions: Sequence[range]) -> PackedBatch:
    width = max(map(len, batch))
    tokens, depths = (np.zeros((len(batch), width), np.int64) for _ in range(2))
    ends = np.tile(np.arange(1, width + 1), (len(batch), 1))
    nodes: list[int] = []
    owners: list[int] = []
    steps: list[int] = []
    for i, row in enumerate(batch):
        tokens[i, : len(row)] = row.tokens
        depths[i, : len(row)] = row.depths
        ends[i, : len(row)] = row.ends()
        for number, path in row.paths.items():
            asked = positions[number]
            nodes += [i * width + path[step] for step in asked]
            owners += [number] * len(asked)
            steps += asked
    distinct, inverse = np.unique(np.asarray(nodes, np.int64), return_inverse=True)
    at = np.divmod(distinct, width)
    return PackedBatch(
        tokens, depths, ends, *at, inverse.ravel(), np.asarray(owners, int), np.asarray(steps, int)
    )


def plain_rows(sequences: Sequence[Sequence[int]]) -> list[PackedRow]:
    """One row per sequence: for architectures that take no explicit positions."""
    rows = []
    for number in sorted(range(len(sequences)), key=lambda i: (-len(sequences[i]), i)):
        row = PackedRow()
        row.add(number, sequences[number], 0, [])
        rows.append(row)
    return rows


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    limit = min(len(a), len(b))
    if a[:limit] == b[:limit]:
        return limit
    for i in range(limit):
        if a[i] != b[i]:
            return i
    return limit


def by_token_budget(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Batches of positions, longest first, whose padded size stays within the token budget.

    >>> by_token_budget([3, 9, 4], budget=10)
    [[1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    width = 0
    for i in order:
        if batches and (len(batches[-1]) + 1) * width <= budget:
            batches[-1].append(i)
        else:
            batches.append([i])
            width = max(1, lengths[i])
    return batches
