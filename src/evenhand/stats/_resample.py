"""Bootstrap weights, and quantiles of what they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats._draws import Floats, rows_per_block

Value: TypeAlias = Any  # a float, or a float64 array with one entry per test


def plain(value: ArrayLike) -> Value:
    """A float for a single number, else a float64 array."""
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def weight_blocks(rng: np.random.Generator, n: int, total: int, rows: int) -> Iterator[Floats]:
    """Yield [rows, n] multinomial weights: how often each unit was drawn. Rows sum to n."""
    for start in range(0, total, rows):
        count = min(rows, total - start)
        drawn = rng.integers(0, n, size=(count, n))
        drawn += np.arange(count)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def quantiles(replicates: Floats, shares: list[float]) -> Floats:
    """Quantiles over the first axis without NaN, [shares, ...]; NaN where fewer than two are."""
    flat = replicates.reshape(len(replicates), -1)
    out = np.full((len(shares), flat.shape[1]), np.nan)
    complete = np.isfinite(flat).all(axis=0)
    if complete.any():
        out[:, complete] = np.quantile(flat[:, complete], shares, axis=0)
    for j in np.flatnonzero(~complete):
        column = flat[np.isfinite(flat[:, j]), j]
        if len(column) > 1:
            out[:, j] = np.quantile(column, shares)
    return out.reshape(len(shares), *replicates.shape[1:])


def ratio_replicates(
    sums: Floats, counts: Floats, resamples: int, seed: int, max_bytes: int
) -> Floats:
    """Replicates of sum(sums) / sum(counts) over drawn units."""
    flat = sums.reshape(len(sums), -1)
    center = flat.sum(axis=0) / counts.sum()
    flat = flat - counts[:, None] * center
    rows = rows_per_block(resamples, 32 * len(sums) + 8 * flat.shape[1], max_bytes)
    rng = np.random.default_rng(seed)
    parts = [
        (w @ flat) / (w @ counts)[:, None] + center
        for w in weight_blocks(rng, len(sums), resamples, rows)
    ]
    return np.concatenate(parts).reshape(resamples, *sums.shape[1:])
