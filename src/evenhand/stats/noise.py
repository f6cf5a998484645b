"""Noise floors: how large a maximum or an absolute value comes out when nothing is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats._draws import (
    TIE,
    Floats,
    Method,
    Plan,
    codes_of,
    plan,
    rows_per_block,
    sign_blocks,
)
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
    method: Method
    n_flips: int
    null: Floats
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
        values: signed cell values, any shape; NaN is passed on to the reducer.
        reducer: takes [resamples, *values.shape] and gives [resamples] or [resamples, k].
        codes: which cells flip together: labels of the shape of the first axes of `values`.
            None flips each entry of the first axis as one.
        samples: random sign patterns.
        seed: seed of the signs.
        max_exact: list all 2**units patterns when there are at most this many.
        max_bytes: memory of one block.

    Returns:
        The observed statistic, the floor (mean and 95 % point) and p.

    >>> floor = noise_floor([1.0, -2.0, 3.0], lambda v: np.abs(v.mean(axis=1)))
    >>> round(floor.observed, 4), round(floor.mean, 4), floor.p
    (0.6667, 1.0, 0.75)
    """
    data = np.asarray(values, dtype=np.float64)
    labels = np.arange(len(data)) if codes is None else np.asarray(codes)
    if labels.shape != data.shape[: labels.ndim]:
        raise DataError(
            f"codes: shape {labels.shape!r} does not fit values of shape {data.shape!r}. "
            "Accepted: the shape of the first axes."
        )
    if not np.isfinite(data).any():
        nan = float("nan")
        return NoiseFloor(nan, nan, nan, nan, "exact", 0, np.empty(0), "no finite values")
    flat, m = codes_of(labels.ravel())
    observed = np.asarray(reducer(data[None]), dtype=np.float64)[0]
    made = plan(2 ** min(m, 62), samples, max_exact)
    null = _null(data, flat.reshape(labels.shape), m, reducer, made, seed, max_bytes)
    tie = TIE * np.maximum(np.abs(observed), np.abs(null).max(axis=0))
    undefined = np.isnan(observed) | np.isnan(null).any(axis=0)
    p = np.where(undefined, np.nan, made.p(np.count_nonzero(null >= observed - tie, axis=0)))
    reason = "the reducer gave NaN" if undefined.any() else ""
    return NoiseFloor(
        plain(observed),
        plain(null.mean(axis=0)),
        plain(np.quantile(null, 0.95, axis=0)),
        plain(p),
        made.method,
        made.total,
        null,
        reason,
    )


def _null(
    data: Floats,
    codes: Any,
    m: int,
    reducer: Callable[[Floats], Any],
    made: Plan,
    seed: int,
    max_bytes: int,
) -> Floats:
    """The reducer over sign-flipped copies, block by block."""
    rows = rows_per_block(made.total, 24 * data.size, max_bytes)
    parts = []
    for signs in sign_blocks(m, made, seed=seed, rows=rows):
        flips = signs[:, codes]
        flips = flips.reshape(*flips.shape, *[1] * (data.ndim - codes.ndim))
        parts.append(np.asarray(reducer(flips * data), dtype=np.float64))
    return np.concatenate(parts)
