"""Running sums by key: what can be summed while scores arrive, in blocks, and joined at the end.

    sums = Sums(2)
    sums.add([7, 3, 7], [[0.5, 1], [0.25, 1], [0.5, 1]])    # block after block
    keys, totals = sums.joined()                            # [3, 7], [[0.25, 1], [1.0, 2]]

The rows of a key are added in their order, so that runs with equal blocks have equal sums, whether
their scores were in memory at once or not. A column of ones counts rows.
"""

from __future__ import annotations

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
        keys, totals = zip(*self._blocks)
        return _joined(np.concatenate(keys), np.concatenate(totals))


def _joined(keys: Integers, values: Floats) -> tuple[Integers, Floats]:
    known, code = np.unique(keys, return_inverse=True)
    totals = [np.bincount(code, column, len(known)) for column in values.T]
    return known, np.stack(totals, axis=1).astype(np.float64)
