"""Shared prefixes computed once: token sequences merged into trees, trees packed into rows.

Sequences that begin alike share the nodes of their common beginning. A row holds the nodes of
one or more such trees; a node may attend to itself and its ancestors only, and its position is
its depth, so a causal model computes for each node exactly what it would compute for the
sequence alone.

    "The nurse said Ann", "The nurse said Bob"   ->   The nurse said -+- Ann
                                                                      +- Bob      (5 nodes, not 8)

Everything is done on whole arrays: at a hundred thousand questions a second there are ten
microseconds for each. Sequences are sorted; number i then adds the nodes of its tokens from
`shared[i]` on, where it leaves the one before it:

    sequence  tokens     shared  adds nodes
    0         1 2 3      0       0 1 2
    1         1 2 4      2       3
    2         9          0       4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
FEW = 2
"""Tokens that two sequences may share and still begin otherwise (a begin token, a first word)."""


@dataclass(frozen=True)
class Ragged:
    """Token sequences one after the other: number i is tokens[starts[i] : starts[i] + sizes[i]].

    >>> Ragged.of([[1, 2, 3], [9]]).sizes.tolist()
    [3, 1]
    """

    tokens: Ints
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Ragged:
        sizes = np.fromiter(map(len, sequences), np.int64, len(sequences))
        tokens = np.fromiter(chain.from_iterable(sequences), np.int64, int(sizes.sum()))
        return cls(tokens, np.cumsum(sizes) - sizes, sizes)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ragged, Ints]]) -> Ragged:
        """Sequences made of the given ones of each part, one after the other.

        >>> one, two = Ragged.of([[1], [2, 3]]), Ragged.of([[9]])
        >>> both = Ragged.joined([(one, np.array([1, 0])), (two, np.array([0, 0]))])
        >>> both.tokens.tolist()
        [2, 3, 9, 1, 9]
        """
        pool = np.concatenate([part.tokens for part, _ in parts])
        shifts = np.cumsum([0, *(len(part.tokens) for part, _ in parts)])
        firsts = np.cumsum([0, *(len(part.sizes) for part, _ in parts)])
        every = cls(
            pool,
            np.concatenate([part.starts + shift for (part, _), shift in zip(parts, shifts)]),
            np.concatenate([part.sizes for part, _ in parts]),
        )
        which = np.stack([w + first for (_, w), first in zip(parts, firsts)], axis=1)
        return every.grouped(which.ravel(), np.full(len(which), len(parts)))

    def grouped(self, which: Ints, counts: Ints) -> Ragged:
        """Sequences made of this many of the given ones each, one after the other.

        >>> Ragged.of([[1], [2, 3]]).grouped(np.array([1, 0, 0]), np.array([2, 1])).lists()
        [[2, 3, 1], [1]]
        """
        sizes = self.sizes[which]
        ends = np.cumsum(sizes)
        at = np.arange(int(sizes.sum())) + np.repeat(self.starts[which] - ends + sizes, sizes)
        total = np.diff(np.append(0, ends[np.cumsum(counts) - 1]))
        return Ragged(self.tokens[at], np.cumsum(total) - total, total)

    def lists(self) -> list[list[int]]:
        """The sequences as lists."""
        flat = self.tokens.tolist()
        spans = zip(self.starts.tolist(), (self.starts + self.sizes).tolist())
        return [flat[a:b] for a, b in spans]

    def cut(self, first: int, stops: Ints) -> Ragged:
        """Tokens `first` to `stops[i]` of each sequence."""
        return Ragged(self.tokens, self.starts + first, stops - first)

    def ordered(self) -> Ints:
        """Sequence numbers in the order of their tokens, equal ones as they came."""
        raw = self.tokens.astype(">u4").tobytes()  # bytes that compare as the numbers do
        spans = zip((4 * self.starts).tolist(), (4 * (self.starts + self.sizes)).tolist())
        keys = [raw[a:b] for a, b in spans]
        return np.asarray(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


@dataclass(frozen=True)
class Trees:
    """Sequences merged into the trees of packed rows.

    Attributes:
        order: sequence numbers as they stand in the trees.
        sizes, shared: of each in that order: its tokens, and how many of them it has from others.
        first: the first node that it adds.
        rows: the first node of each row, and the number of nodes at the end.
        tokens, depths, ends: of each node; `ends` is the node after its last descendant, so that
            node i sees node j when j <= i < ends[j].
        before: the nearest earlier sequence that shares less with its own predecessor.
    """

    order: Ints
    sizes: Ints
    shared: Ints
    first: Ints
    rows: Ints
    tokens: Ints
    depths: Ints
    ends: Ints
    before: Ints

    def nodes(self, places: Ints, depths: Ints) -> Ints:
        """The node of each token: of the sequence at that place in `order`, so deep."""
        owner = places.copy()
        others = np.flatnonzero(self.shared[owner] > depths)
        while len(others):
            owner[others] = self.before[owner[others]]
            others = others[self.shared[owner[others]] > depths[others]]
        return self.first[owner] + depths - self.shared[owner]

    def row_of(self, nodes: Ints) -> Ints:
        """The row that each node stands in."""
        return np.searchsorted(self.rows, nodes, side="right") - 1


def pack(sequences: Ragged, row_nodes: int, *, share: bool = True, small: int = 0) -> Trees:
    """Merge sequences into trees and fill rows of about `row_nodes` nodes.

    Sorting puts equal beginnings side by side; a row is closed when the next sequence would not
    fit. With `small`, rows have about this many nodes where that keeps sequences together that
    begin alike: every node is compared with all of its row, so short rows are cheaper. Without
    `share` each sequence is a row of its own, the longest first: for architectures that take no
    explicit positions.

    >>> trees = pack(Ragged.of([[1, 2, 3], [1, 2, 4], [9]]), row_nodes=16)
    >>> trees.rows.tolist(), trees.tokens.tolist(), trees.ends.tolist()
    ([0, 5], [1, 2, 3, 4, 9], [4, 4, 3, 4, 5])
    """
    order = sequences.ordered() if share else np.argsort(-sequences.sizes, kind="stable")
    starts, sizes = sequences.starts[order], sequences.sizes[order]
    shared = common_prefixes(sequences.tokens, starts, sizes) if share else np.zeros_like(sizes)
    begins = _row_starts(sizes, shared, row_nodes, small) if share else np.arange(len(sizes))
    shared[begins] = 0
    added = sizes - shared
    first = np.cumsum(added) - added
    n_nodes = int(added.sum())
    maker = np.repeat(np.arange(len(sizes)), added)
    depths = np.arange(n_nodes) - np.repeat(first - shared, added)
    before, after = _nearest_less(shared)
    return Trees(
        order,
        sizes,
        shared,
        first,
        np.append(first[begins], n_nodes),
        sequences.tokens[starts[maker] + depths],
        depths,
        _ends(maker, depths, np.append(shared, 0), np.append(first, n_nodes), after),
        before,
    )


def common_prefixes(tokens: Ints, starts: Ints, sizes: Ints) -> Ints:
    """How many first tokens each sequence has in common with the one before it (0 for the first).

    >>> common_prefixes(np.array([1, 2, 1, 3]), np.array([0, 2]), np.array([2, 2])).tolist()
    [0, 1]
    """
    shared = np.zeros(len(sizes), np.int64)
    both = np.minimum(sizes[1:], sizes[:-1])
    some = np.flatnonzero(both)
    if not len(some):
        return shared
    width = both[some]
    begin = np.cumsum(width) - width
    step = np.arange(int(width.sum())) - np.repeat(begin, width)
    equal = (
        tokens[np.repeat(starts[:-1][some], width) + step]
        == tokens[np.repeat(starts[1:][some], width) + step]
    )
    apart = np.where(equal, np.repeat(width, width), step)
    shared[1:][some] = np.minimum.reduceat(apart, begin)
    return shared


def _row_starts(sizes: Ints, shared: Ints, row_nodes: int, small: int = 0) -> Ints:
    """The first sequence of each row: rows take what fits, one sequence at the least.

    >>> sizes, shared = np.array([9, 9, 9, 9, 9]), np.array([0, 8, 0, 8, 0])
    >>> [_row_starts(sizes, shared, 100, small).tolist() for small in (0, 5, 20)]
    [[0], [0, 2, 4], [0, 4]]
    """
    total = np.cumsum(sizes - shared)
    apart = np.append(np.flatnonzero(shared <= FEW), len(sizes)) if small else np.zeros(0, np.int64)
    begins, at = [], 0
    while at < len(sizes):
        begins.append(at)
        before = int(total[at]) - int(sizes[at])
        end = max(at + 1, int(np.searchsorted(total, before + row_nodes, side="right")))
        if small:
            fits = np.searchsorted(total, before + small, side="right")
            last = int(apart[np.searchsorted(apart, fits, side="right") - 1])
            end = min(end, last if last > at else int(apart[np.searchsorted(apart, at + 1)]))
        at = end
    return np.asarray(begins, np.int64)


def _nearest_less(values: Ints) -> tuple[Ints, Ints]:
    """The nearest place before, and after, each one that holds less (after: or the end).

    >>> [found.tolist() for found in _nearest_less(np.array([0, 2, 1]))]
    [[0, 0, 0], [3, 2, 3]]
    """
    size = len(values)
    known = np.concatenate([[-1], values, [-1]])
    before, after = np.arange(size + 2) - 1, np.arange(size + 2) + 1
    for found in (before, after):
        # What lies between a place and what it points to is no less than the place holds, so a
        # pointer to something no less may be followed on.
        left = np.arange(1, size + 1)
        while len(left := left[known[found[left]] >= known[left]]):
            found[left] = found[found[left]]
    return np.maximum(before[1:-1] - 1, 0), after[1:-1] - 1


def _ends(maker: Ints, depths: Ints, shared: Ints, first: Ints, after: Ints) -> Ints:
    """The node after the last descendant of each: where a later sequence leaves above it."""
    leaving = maker + 1
    below = np.flatnonzero(shared[leaving] > depths)
    while len(below):
        leaving[below] = after[leaving[below]]
        below = below[shared[leaving[below]] > depths[below]]
    return first[leaving]


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


@dataclass(frozen=True)
class _Asked:
    """Positions asked for, those of a row side by side: bounds[r] : bounds[r + 1] of row r."""

    nodes: Ints
    owners: Ints
    steps: Ints
    bounds: Ints


def packed_batches(
    trees: Trees, starts: Ints, stops: Ints, budget: int, limit: int, grain: int = 1
) -> list[PackedBatch]:
    """Rows of similar size together, within the token budget and the head's memory limit.

    Args:
        starts, stops: of each sequence, as given, the positions asked for.
        grain: rows are filled up to a multiple of this many nodes.
    """
    asked = _asked(trees, starts, stops)
    widths = np.diff(trees.rows)
    distinct = trees.row_of(np.unique(asked.nodes))
    here = np.bincount(distinct, minlength=len(widths)).tolist()
    batches: list[list[int]] = []
    width = count = 0
    for row in np.argsort(-widths, kind="stable").tolist():
        fits = batches and (len(batches[-1]) + 1) * width <= budget and count + here[row] <= limit
        if fits:
            batches[-1].append(row)
            count += here[row]
        else:
            batches.append([row])
            width, count = int(widths[row]), here[row]
    return [_as_arrays(trees, np.asarray(batch), asked, grain) for batch in batches]


def _asked(trees: Trees, starts: Ints, stops: Ints) -> _Asked:
    sizes = np.maximum(0, stops - starts)[trees.order]
    places = np.repeat(np.arange(len(sizes)), sizes)
    begin = np.repeat(np.cumsum(sizes) - sizes, sizes)
    steps = np.arange(len(places)) - begin + starts[trees.order][places]
    nodes = trees.nodes(places, steps)
    bounds = np.searchsorted(trees.row_of(nodes), np.arange(len(trees.rows)))
    return _Asked(nodes, trees.order[places], steps, bounds)


def _as_arrays(trees: Trees, batch: Ints, asked: _Asked, grain: int) -> PackedBatch:
    begins, widths = trees.rows[batch], np.diff(trees.rows)[batch]
    width = int(widths.max())
    width += -width % grain
    column = np.arange(width)
    real = column < widths[:, None]
    node = np.where(real, begins[:, None] + column, 0)
    tokens, depths = (np.where(real, of[node], 0) for of in (trees.tokens, trees.depths))
    ends = np.where(real, trees.ends[node] - begins[:, None], column + 1)
    spans = [np.arange(asked.bounds[r], asked.bounds[r + 1]) for r in batch.tolist()]
    picked = np.concatenate(spans)
    line = np.repeat(np.arange(len(batch)), [len(s) for s in spans])
    at = line * width + asked.nodes[picked] - begins[line]
    distinct, inverse = np.unique(at, return_inverse=True)
    where = np.divmod(distinct, width)
    return PackedBatch(
        tokens, depths, ends, *where, inverse.ravel(), asked.owners[picked], asked.steps[picked]
    )


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
