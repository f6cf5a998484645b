"""Items: the filled cases of a probe as coded columns, never as millions of objects.

An axis is a named list of values (terms, templates, attributes); an item is one integer per
axis. 1.4 million items take about 13 MB; texts are made from the codes when a shard needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import SpecError


@dataclass(frozen=True)
class Items:
    """Named axes with their values, and one code per item and axis.

    >>> items = Items.product(term=("Ann", "Bob"), attribute=("nurse", "hunter", "chef"))
    >>> len(items), items.values("term")[3], items.values("attribute")[3]
    (6, 'Bob', 'nurse')
    """

    axes: Mapping[str, tuple[Any, ...]]
    codes: Mapping[str, np.ndarray]

    @classmethod
    def product(cls, **axes: Sequence[Any]) -> Items:
        """Every combination, the last axis moving fastest."""
        sizes = [len(values) for values in axes.values()]
        if 0 in sizes:
            empty = [name for name, values in axes.items() if not values]
            raise SpecError(f"items: axis {empty[0]!r} has no values, so there is nothing to ask.")
        total = int(np.prod(sizes, dtype=np.int64))
        index = np.arange(total, dtype=np.int64)
        codes: dict[str, np.ndarray] = {}
        block = total
        for name, size in zip(axes, sizes):
            block //= size
            codes[name] = ((index // block) % size).astype(_smallest(size))
        return cls({k: tuple(v) for k, v in axes.items()}, codes)

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))

    def where(self, keep: np.ndarray) -> Items:
        """The items where the boolean mask holds, or those at the given positions."""
        return Items(self.axes, {name: code[keep] for name, code in self.codes.items()})

    def values(self, axis: str) -> list[Any]:
        """The value of every item on one axis."""
        values = self.axes[axis]
        return [values[i] for i in self.codes[axis]]

    def chunks(self, size: int) -> Iterator[Items]:
        """The same items in consecutive pieces of at most `size`."""
        for start in range(0, len(self), size):
            yield self.where(np.arange(start, min(start + size, len(self))))

    def mean_by(self, scores: np.ndarray, *axes: str) -> np.ndarray:
        """Mean score per combination of the given axes; NaN where there is no item.

        One pass of bincount: O(items).
        """
        shape = tuple(len(self.axes[a]) for a in axes)
        flat = np.ravel_multi_index(tuple(self.codes[a].astype(np.int64) for a in axes), shape)
        size = int(np.prod(shape))
        good = ~np.isnan(scores)
        sums = np.bincount(flat[good], weights=scores[good], minlength=size)
        counts = np.bincount(flat[good], minlength=size)
        with np.errstate(invalid="ignore"):
            means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means.reshape(shape)


def _smallest(size: int) -> type[np.signedinteger[Any]]:
    """The smallest signed integer type that can count to `size`."""
    if size <= np.iinfo(np.int8).max:
        return np.int8
    return np.int16 if size <= np.iinfo(np.int16).max else np.int32
