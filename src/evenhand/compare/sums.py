"""Running sums by key: what can be summed while scores arrive, in blocks, and joined at the end.

    sums = Sums(2)
    sums.add([7, 3, 7], [[0.5, 1], [0.25, 1], [0.5, 1]])    # block after block
    keys, totals = sums.joined()                            # [3, 7], [[0.25, 1], [1.0, 2]]

The rows of a key are added in their order, so that runs with equal blocks have equal sums, whether
their scores were in memory at once or not. A column of ones counts rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.compare.items import Floats, Integers


class Sums:
    """Sums of rows with the same key, column by column; memory grows with the keys of the blocks.

    Args:
        columns: how many numbers each row has.
    """

    def __init__(self, columns: int) -> None:
        self._blocks = [(np.empty(0, np.int64), np.empty((0, columns)))]

    def add(self, keys: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Add a block: the key and the numbers of each row, [rows] and [rows, columns]."""
        self._blocks.append(_joined(np.asarray(keys, np.int64), np.asarray(values, np.float64)))

    def joined(self) -> tuple[Integers, Floats]:
        """Return the keys in order, and the total of each, [keys, columns].

        >>> sums = Sums(1)
        >>> sums.add([7, 3], [[1.0], [2.0]])
        >>> sums.add([7], [[0.5]])
        >>> [part.tolist() for part in sums.joined()]
        [[3, 7], [[2.0], [1.5]]]
        """
        parts = [list(part) for part in zip(*self._blocks)]
        self._blocks = []  # so that blocks are freed once they are joined
        totals, keys = np.concatenate(parts.pop()), np.concatenate(parts.pop())
        self._blocks = [_joined(keys, totals)]
        return self._blocks[0]


class DenseSums:
    """Sums of several values for every combination of some codes, in memory that does not grow.

    Values are added one after another in the order of their rows, whatever the blocks. For
    combinations that come back in every block.

    Args:
        values: how many numbers each row has.
        sizes: how many codes of each kind there are.

    >>> sums = DenseSums(2, 3)
    >>> sums.add((np.array([0, 2, 0]),), [0.5, 1.0, 0.25], 1.0)
    >>> sums.totals.tolist()
    [[0.75, 0.0, 1.0], [2.0, 0.0, 1.0]]
    """

    def __init__(self, values: int, *sizes: int) -> None:
        self.totals = np.zeros((values, *sizes))

    def add(self, at: tuple[npt.NDArray[np.integer[Any]], ...], *values: npt.ArrayLike) -> None:
        """Add one value or one per row to each of the sums."""
        place = np.ravel_multi_index(at, self.totals.shape[1:])
        for total, value in zip(self.totals, values, strict=True):
            np.add.at(total.reshape(-1), place, np.asarray(value, np.float64))


def _joined(keys: Integers, values: Floats) -> tuple[Integers, Floats]:
    known, code = np.unique(keys, return_inverse=True)
    totals = np.empty((len(known), values.shape[1]))
    for number, column in enumerate(values.T):
        totals[:, number] = np.bincount(code, column, len(known))
    return known, totals
