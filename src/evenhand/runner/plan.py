"""Cut a request list into deterministic shards.

A list held in memory is stripped of duplicates, ordered by length (so that rows of a batch need
little padding) with rows of one forward pass side by side, and cut at such groups. A lazy list
is cut at fixed positions and each piece is stripped of duplicates on its own; models order the
rows of a shard by length themselves. Equal requests give equal shards on every machine, which is
what makes resuming and distributing exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenhand.requests import LazyRequests, Requests

ORDER_VERSION = "order-2"


@dataclass(frozen=True)
class Shard:
    """Distinct rows to score, and where their answers go.

    Attributes:
        requests: the distinct rows, in scoring order.
        rows: positions in the whole request list that this shard answers.
        source: for each of those positions, which of the distinct rows answers it.
    """

    requests: Requests
    rows: np.ndarray
    source: np.ndarray


class ShardPlan(Protocol):
    """Shards that can be made one at a time, in any order."""

    size: int
    count: int
    distinct: int
    type: type[Requests]

    def shard(self, index: int) -> Shard: ...


class EagerPlan:
    """Shards of a request list held in memory. Cost: O(n log n) once."""

    def __init__(self, requests: Requests, shard_rows: int) -> None:
        self.type = type(requests)
        self.size = len(requests)
        self._requests = requests
        rows = requests.rows()
        first, inverse = distinct_rows(rows)
        order = scoring_order(requests, rows, first)
        rank = np.empty(len(first), dtype=np.int64)
        rank[order] = np.arange(len(first))
        self._picked = first[order]
        self._bounds = self._cut(rows, shard_rows)
        self.distinct = len(first)
        self.count = len(self._bounds) - 1
        position = rank[inverse]
        self._by_position = np.argsort(position, kind="stable")
        self._sorted = position[self._by_position]

    def _cut(self, rows: list[tuple[str, ...]], shard_rows: int) -> list[int]:
        """Shard limits: at most about `shard_rows` rows, never inside a shared group."""
        shared = [self.type.columns.index(c) for c in self.type.shared]
        bounds, start = [0], 0
        group_start, previous = 0, None
        for i, row in enumerate(self._picked):
            group = tuple(rows[row][c] for c in shared) if shared else (i,)
            if group != previous:
                group_start, previous = i, group
            if i - start >= shard_rows and group_start > start:
                bounds.append(group_start)
                start = group_start
        bounds.append(len(self._picked))
        return bounds if len(self._picked) else [0]

    def shard(self, index: int) -> Shard:
        low, high = self._bounds[index], self._bounds[index + 1]
        left, right = np.searchsorted(self._sorted, [low, high])
        return Shard(
            self._requests.take(self._picked[low:high]),
            self._by_position[left:right],
            self._sorted[left:right] - low,
        )


class LazyPlan:
    """Shards of a request list that is made piece by piece. Memory: one shard."""

    def __init__(self, requests: LazyRequests, shard_rows: int) -> None:
        self.type = requests.type
        self.size = self.distinct = len(requests)
        self._requests = requests
        self._step = max(requests.group, shard_rows - shard_rows % requests.group)
        self.count = -(-self.size // self._step)

    def shard(self, index: int) -> Shard:
        start = index * self._step
        stop = min(start + self._step, self.size)
        requests = self._requests.make(start, stop)
        rows = np.arange(start, stop)
        if self._requests.distinct:
            return Shard(requests, rows, rows - start)
        first, inverse = distinct_rows(requests.rows())
        return Shard(requests.take(first), rows, inverse)


def make_plan(requests: Requests | LazyRequests, shard_rows: int) -> EagerPlan | LazyPlan:
    """The shards of a request list."""
    if isinstance(requests, LazyRequests):
        return LazyPlan(requests, shard_rows)
    return EagerPlan(requests, shard_rows)


def distinct_rows(rows: list[tuple[str, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the first of each distinct row, and each row's place among them.

    >>> first, inverse = distinct_rows([("a",), ("b",), ("a",)])
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0])
    """
    seen = {row: place for place, row in enumerate(dict.fromkeys(rows))}
    inverse = np.fromiter(map(seen.__getitem__, rows), np.int64, len(rows))
    first = np.empty(len(seen), np.int64)
    first[inverse[::-1]] = np.arange(len(rows))[::-1]  # the first of equal rows is written last
    return first, inverse


def scoring_order(requests: Requests, rows: list[tuple[str, ...]], first: np.ndarray) -> np.ndarray:
    """Longest first (memory trouble shows at once), rows of one forward pass side by side."""
    shared = [requests.columns.index(c) for c in requests.shared]

    def key(place: int) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        row = rows[first[place]]
        group = tuple(row[c] for c in shared) if shared else row
        return -sum(map(len, group)), group, row

    return np.asarray(sorted(range(len(first)), key=key), dtype=np.int64)


def shards(plan: ShardPlan) -> Iterator[Shard]:
    """All shards, in order."""
    for index in range(plan.count):
        yield plan.shard(index)
