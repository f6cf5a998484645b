"""Cut a request list into deterministic shards.

A list held in memory is stripped of duplicates, ordered by length (so that rows of a batch need
little padding) with rows of one forward pass side by side, and cut at such groups. A lazy list
is cut at fixed positions and each piece is stripped of duplicates on its own; models order the
rows of a shard by length themselves. Equal requests give equal shards on every machine, which is
what makes resuming and distributing exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
        group, others = ranks(requests)
        order = np.lexsort([*others[::-1], group])  # the last key comes first, equal rows as given
        new = _changes(order, [group, *others])
        self._picked = order[new]
        self._bounds = self._cut(np.flatnonzero(_changes(self._picked, [group])), shard_rows)
        self.distinct = len(self._picked)
        self.count = len(self._bounds) - 1
        position = np.empty(self.size, np.int64)
        position[order] = np.cumsum(new) - 1
        self._by_position = np.argsort(position, kind="stable")
        self._sorted = position[self._by_position]

    def _cut(self, begins: np.ndarray, shard_rows: int) -> list[int]:
        """Shard limits: at most about `shard_rows` rows, never inside a shared group.

        Args:
            begins: where each group begins.
        """
        size, bounds = len(self._picked), [0]
        while size - bounds[-1] > shard_rows:
            full = bounds[-1] + shard_rows
            at = int(np.searchsorted(begins, full, side="right"))  # the group after the full one's
            if begins[at - 1] > bounds[-1]:
                bounds.append(int(begins[at - 1]))
            elif at < len(begins):
                bounds.append(int(begins[at]))
            else:
                break
        return [*bounds, size] if size else [0]

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


def ranks(requests: Requests) -> tuple[np.ndarray, list[np.ndarray]]:
    """The order of the rows as numbers: by what rows of one pass share, then by the other columns.

    What is shared counts longest first, so that memory trouble shows at once.

    >>> from evenhand.requests import Option
    >>> group, others = ranks(Option(["a", "abc", "a"], ["y", "z", "x"]))
    >>> group.tolist(), others[0].tolist()
    ([1, 0, 1], [1, 2, 0])
    """
    shared = requests.shared or requests.columns
    columns = [getattr(requests, name) for name in shared]
    if len(columns) == 1:
        group = _rank(columns[0], len)
    else:
        group = _rank(list(zip(*columns)), lambda texts: sum(map(len, texts)))
    rest = [getattr(requests, name) for name in requests.columns if name not in shared]
    return group, [_rank(column) for column in rest]


def _rank(values: Sequence[Any], size: Callable[[Any], int] | None = None) -> np.ndarray:
    """The place of each value among the distinct ones in order, the largest first."""
    distinct = sorted(dict.fromkeys(values))
    places = np.arange(len(distinct))
    if size is not None:
        sizes = np.fromiter(map(size, distinct), np.int64, len(distinct))
        places[np.argsort(-sizes, kind="stable")] = np.arange(len(distinct))
    known = dict(zip(distinct, places.tolist()))
    return np.fromiter(map(known.__getitem__, values), np.int64, len(values))


def _changes(order: np.ndarray, keys: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each row in that order differs from the one before it; the first does."""
    new = np.ones(len(order), bool)
    if len(order):
        new[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    return new


def shards(plan: ShardPlan) -> Iterator[Shard]:
    """All shards, in order."""
    for index in range(plan.count):
        yield plan.shard(index)
