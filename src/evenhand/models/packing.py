"""Shared prefixes computed once: token sequences merged into trees, trees packed into rows.

Sequences that begin alike share the nodes of their common beginning. A row holds the nodes of
one or more such trees; a node may attend to itself and its ancestors only, and its position is
its depth, so a causal model computes for each node exactly what it would compute for the
sequence alone.

    "The nurse said Ann", "The nurse said Bob"   ->   The nurse said -+- Ann
                                                                      +- Bob      (5 nodes, not 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


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
    order = sorted(range(len(sequences)), key=lambda i: list(sequences[i]))
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


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    limit = min(len(a), len(b))
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
