"""Counting, block by block, how often a null of many tests reaches the observed values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats._draws import TIE, Floats


def tie_width(largest: ArrayLike, raw: Floats) -> Floats:
    """Distance under which two sums are a tie: TIE of the largest sum, plus input rounding."""
    rounding = np.finfo(np.float64).eps * np.abs(raw).max(axis=0)
    return np.asarray(TIE * np.asarray(largest) + rounding, dtype=np.float64)


class Tally:
    """Counts over a null of many tests, with the null of their maximum.

    Args:
        observed: [tests] the observed statistics, in the unit of the null.
        tie: [tests] distance under which a null value equals the observed one.
        unit: [tests] each test is divided by this before the maximum is taken; a test whose
            unit is 0 (a constant column) stays out of the maximum and has adjusted p = 1.
        tails: count the one-sided tails too.
    """

    def __init__(self, observed: Floats, tie: Floats, unit: Floats, *, tails: bool) -> None:
        self.right = np.zeros(len(observed), dtype=np.int64)
        self.left = np.zeros(len(observed), dtype=np.int64)
        self.both = np.zeros(len(observed), dtype=np.int64)
        self._observed, self._tie, self._tails = observed, tie, tails
        self._live = unit > 0
        self._unit = np.where(self._live, unit, 1.0)
        self._maxima: list[Floats] = []

    def add(self, block: Floats) -> None:
        """Count one block [rows, tests] of the null; the block is overwritten."""
        if self._tails:
            self.right += np.count_nonzero(block >= self._observed - self._tie, axis=0)
            self.left += np.count_nonzero(block <= self._observed + self._tie, axis=0)
        size = np.abs(block, out=block)
        self.both += np.count_nonzero(size >= np.abs(self._observed) - self._tie, axis=0)
        if not self._live.any():
            self._maxima.append(np.zeros(len(block)))
            return
        size /= self._unit
        self._maxima.append((size if self._live.all() else size[:, self._live]).max(axis=1))

    def maxima(self) -> Floats:
        """The null of the largest scaled statistic."""
        return np.concatenate(self._maxima)

    def reached(self) -> NDArray[np.int64]:
        """For each test, how many maxima reach its own scaled statistic."""
        least = (np.abs(self._observed) - self._tie) / self._unit
        least = np.where(self._live, least - TIE * np.abs(least), 0.0)
        below = np.searchsorted(np.sort(self.maxima()), least, side="left")
        return (sum(len(part) for part in self._maxima) - below).astype(np.int64)
