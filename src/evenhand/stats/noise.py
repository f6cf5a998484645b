"""Noise floors: how large a maximum or an absolute value comes out when nothing is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats._draws import TIE, Floats, Method, codes_of, plan, rows_per_block, sign_blocks
from evenhand.stats._resample import Value, plain

__all__ = ["NoiseFloor", "noise_floor"]


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """A statistic beside what it gives under random signs.

    `mean` and `p95` are the floor: an observed value near them says nothing. p is the chance
    of at least the observed value. `reason` says why they are NaN, else it is empty.
    """

    observed: Value
    mean: Value
    p95: Value
    p: Value
    method: Method = "exact"
    n_flips: int = 0
    reason: str = ""


def noise_floor(
    values: ArrayLike,
    reducer: Callable[[Floats], Any],
    *,
    codes: ArrayLike | None = None,
    samples: int = 999,
    seed: int = 0,
    max_exact: int = 1_024,
    max_bytes: int = 64 * 2**20,
) -> NoiseFloor:
    """Distribution of a maximum or absolute statistic when signs are random.

    Under "no association" a signed cell is as likely as its negative (Fisher 1935).
    null_b = reducer(s_b * values), s_b random signs; p = P(null >= observed), exact or
    (b + 1)/(samples + 1). The statistic must grow with the effect, like mean |gamma| or max |d|.

    Args:
        values: signed values, any shape; NaN is passed on to the reducer.
        reducer: takes [resamples, *values.shape] and gives [resamples] or [resamples, k].
        codes: which entries of the first axis flip together; None: each for itself.
        samples, seed: random sign patterns.
        max_exact: list all 2**n patterns when there are at most this many.
        max_bytes: memory of one block.

    Returns:
        The observed statistic, the floor (mean and 95 % point) and p.

    >>> floor = noise_floor([1.0, -2.0, 3.0], lambda v: np.abs(v.mean(axis=1)))
    >>> round(floor.observed, 4), round(floor.mean, 4), floor.p
    (0.6667, 1.0, 0.75)
    """
    data = np.asarray(values, dtype=np.float64)
    flip, m = codes_of(np.arange(len(data)) if codes is None else codes)
    if not np.isfinite(data).any():
        nan = float("nan")
        return NoiseFloor(nan, nan, nan, nan, reason="no finite values")
    observed = np.asarray(reducer(data[None]), dtype=np.float64)[0]
    made = plan(2 ** min(m, 62), samples, max_exact)
    rows = rows_per_block(made.total, 24 * data.size, max_bytes)
    parts = (
        reducer(signs[:, flip].reshape(len(signs), -1, *[1] * (data.ndim - 1)) * data)
        for signs in sign_blocks(m, made, seed=seed, rows=rows)
    )
    null = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    tie = TIE * np.maximum(np.abs(observed), np.abs(null).max(axis=0))
    undefined = np.isnan(observed) | np.isnan(null).any(axis=0)
    p = np.where(undefined, np.nan, made.p(np.count_nonzero(null >= observed - tie, axis=0)))
    reason = "the reducer gave NaN" if undefined.any() else ""
    numbers = (observed, null.mean(axis=0), np.quantile(null, 0.95, axis=0), p)
    seen, mean, p95, p = map(plain, numbers)
    return NoiseFloor(seen, mean, p95, p, made.method, made.total, reason)
