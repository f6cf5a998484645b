"""The nearest words of many words at once, over a vocabulary of any size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.models.vectors.files import VectorTable

_ROWS = 8192


def nearest(
    table: VectorTable, queries: npt.NDArray[np.float32], k: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Rows and cosines [queries, k] of the k nearest vectors, best first, ties by row.

    One matrix product per block of the vocabulary; a block's cosines are compared with the k-th
    best so far, so that nearly nothing is sorted. Vectors of zeros are never near.
    """
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    k = min(k, len(table))
    best = np.full((len(queries), k), -np.inf, np.float32)
    rows = np.full((len(queries), k), len(table), np.intp)
    for low in range(0, len(table), _ROWS):
        block = np.asarray(table.matrix[low : low + _ROWS], np.float32)
        length = np.linalg.norm(block, axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = unit @ np.where(length > 0, block / length, np.nan).T
        _merge(best, rows, cosine, low)
    return rows, best


def _merge(
    best: npt.NDArray[np.float32],
    rows: npt.NDArray[np.intp],
    cosine: npt.NDArray[np.float32],
    low: int,
) -> None:
    """Put a block's improvements into the k best, in place."""
    k = best.shape[1]
    query, place = np.nonzero(cosine > best[:, -1:])
    bounds = np.searchsorted(query, np.arange(len(best) + 1))
    for q in np.unique(query):
        found = place[bounds[q] : bounds[q + 1]]
        values = np.concatenate([best[q], cosine[q, found]])
        names = np.concatenate([rows[q], found + low])
        if len(values) > 4 * k:
            few = np.argpartition(-values, k)[: k + 1]
            few = np.flatnonzero(values >= values[few].min())
            values, names = values[few], names[few]
        order = np.lexsort((names, -values))[:k]
        best[q], rows[q] = values[order], names[order]
