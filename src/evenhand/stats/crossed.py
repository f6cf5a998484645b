"""A contrast of contrasts in complete tables: two sets of sampled rows, two of sampled columns.

    theta = (mean XA - mean XB) - (mean YA - mean YB)

over a table whose rows are draws for X or Y and whose columns are draws for A or B (target words
and attribute words, say). Rows lean by s(row) = mean over A - mean over B, columns by r(column) =
mean over X - mean over Y, and what is left is e. By the analysis of variance

    V = V_rows + V_columns - V_e,    V_rows = s2(s, X) / n_X + s2(s, Y) / n_Y   (columns alike)

with V_e the mean squares of e in the four blocks, each over its number of cells. Sets may differ
in spread (Welch 1947); t has the degrees of freedom of Satterthwaite (1946). It is the model of
`stats.mixed` for complete tables, without a matrix as large as the table has cells.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]
HELD = 1.5


def crossed_contrasts(
    tables: npt.ArrayLike, rows: int, columns: int, **options: Any
) -> list[Estimate]:
    """theta of each table with its two-way variance.

    Args:
        tables: [tables, n, m] numbers.
        rows: this many of the n rows, the first ones, are draws for X.
        columns: this many of the m columns, the first ones, are draws for A.
        options: those of `estimate` (family, rate).

    Returns:
        One estimate per table, its units the draws of the smallest set; undefined with a reason
        when that has fewer than two.

    >>> table = [[2.0, 1.8, 0.1, 0.0], [1.6, 1.9, 0.2, 0.3], [0.5, 0.4, 0.6, 0.3], [0, 0.2, 0, 0.1]]
    >>> found = crossed_contrasts([table], 2, 2)[0]
    >>> round(found.value, 3), round(found.error, 3), round(found.p, 3)
    (1.65, 0.184, 0.003)
    """
    y = np.asarray(tables, np.float64)
    top, left = (slice(0, rows), slice(rows, None)), (slice(0, columns), slice(columns, None))
    lean = y[..., left[0]].mean(axis=2) - y[..., left[1]].mean(axis=2)
    pull = y[:, top[0]].mean(axis=1) - y[:, top[1]].mean(axis=1)
    value = lean[:, top[0]].mean(axis=1) - lean[:, top[1]].mean(axis=1)
    units = min(rows, y.shape[1] - rows, columns, y.shape[2] - columns)
    if units < 2:
        return [Estimate(float(v), units=units, reason="a set has one draw") for v in value]
    by_row, row_noise = _spread(lean, top)
    by_column, column_noise = _spread(pull, left)
    rest, rest_noise = _residual(y, top, left)
    variance, freedom = _combined(
        (by_row, row_noise), (by_column, column_noise), (rest, rest_noise)
    )
    return [
        estimate(float(m), float(np.sqrt(v)), float(d), units=units, **options)
        for m, v, d in zip(value, variance, freedom)
    ]


def paired_contrasts(
    tables: npt.ArrayLike, rows: int, freedom: float | None = None, **options: Any
) -> list[Estimate]:
    """Mean X - mean Y of two sets of sampled rows in the same sampled columns.

    Columns pair up, so that what they do to both sets cancels: V = V_rows + V_columns - V_e with
    V_columns = s2(mean over X - mean over Y) / m, and V_e the mean squares of what rows and columns
    leave, each set by itself. Sets may differ in spread (Welch 1947). A few rows or columns often
    seem to vary less than they do, so the degrees of freedom are held at 1.5 times those of the
    scarcer sample (as in `stats.two_groups`).

    Args:
        tables: [tables, n, m] numbers.
        rows: this many of the n rows, the first ones, are draws for X.
        freedom: degrees of freedom of the columns, where they are fewer than m - 1.
        options: those of `estimate` (family, rate).

    >>> table = [[2.0, 1.8, 0.1, 0.9], [1.6, 1.9, 0.2, 0.3], [0.5, 0.4, 0.6, 0.3], [0, 0.2, 0, 0.1]]
    >>> found = paired_contrasts([table], 2)[0]
    >>> round(found.value, 3), round(found.error, 3), round(found.p, 3)
    (0.838, 0.465, 0.197)
    """
    y = np.asarray(tables, np.float64)
    m, sets = y.shape[2], (slice(0, rows), slice(rows, None))
    apart = y[:, sets[0]].mean(axis=1) - y[:, sets[1]].mean(axis=1)
    value, units = apart.mean(axis=1), min(rows, y.shape[1] - rows, m)
    if units < 2:
        return [Estimate(float(v), units=units, reason="a set has one draw") for v in value]
    by_row, row_noise = _spread(y.mean(axis=2), sets)
    by_column = apart.var(axis=1, ddof=1) / m
    column_noise = by_column**2 / (m - 1 if freedom is None else freedom)
    rest, rest_noise = np.zeros(len(y)), np.zeros(len(y))
    for part in sets:
        block = y[:, part]
        alone = block - block.mean(axis=1, keepdims=True) - block.mean(axis=2, keepdims=True)
        alone += block.mean(axis=(1, 2), keepdims=True)
        n, free = block.shape[1], (block.shape[1] - 1) * (m - 1)
        left = (alone**2).sum(axis=(1, 2)) / (free * n * m)
        rest += left
        rest_noise += left**2 / free
    variance, free_of = _combined(
        (by_row, row_noise), (by_column, column_noise), (rest, rest_noise)
    )
    held = [_freedom(by_row, row_noise), _freedom(by_column, column_noise)]
    free_of = np.minimum(free_of, np.maximum(1.0, HELD * np.fmin(*held)))
    return [
        estimate(float(v), float(np.sqrt(s)), float(d), units=units, **options)
        for v, s, d in zip(value, variance, free_of)
    ]


def _freedom(variance: Floats, noise: Floats) -> Floats:
    """Degrees of freedom of one mean square; none (NaN) where nothing varies."""
    none = np.full(len(variance), np.nan)
    return np.asarray(np.divide(variance**2, noise, out=none, where=noise > 0), np.float64)


def _combined(
    rows: tuple[Floats, Floats], columns: tuple[Floats, Floats], rest: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """V_rows + V_columns - V_e and its degrees of freedom, from each with its own noise."""
    # A component cannot be negative: one that seems to be is none, and adds no uncertainty.
    rows_vary, columns_vary = rows[0] > rest[0], columns[0] > rest[0]
    variance = np.maximum(rows[0], rest[0]) + np.maximum(columns[0], rest[0]) - rest[0]
    noise = rows[1] * rows_vary + columns[1] * columns_vary + rest[1] * (rows_vary == columns_vary)
    with np.errstate(divide="ignore", invalid="ignore"):
        return variance, np.where(noise > 0, np.maximum(1.0, variance**2 / noise), 1.0)


def _spread(values: Floats, sets: tuple[slice, slice]) -> tuple[Floats, Floats]:
    """Variance of the difference of two sets' means, and sum of squares over degrees of freedom."""
    parts = [values[:, part].var(axis=1, ddof=1) / values[:, part].shape[1] for part in sets]
    free = [values[:, part].shape[1] - 1 for part in sets]
    return parts[0] + parts[1], parts[0] ** 2 / free[0] + parts[1] ** 2 / free[1]


def _residual(
    y: Floats, top: tuple[slice, slice], left: tuple[slice, slice]
) -> tuple[Floats, Floats]:
    """The same for what rows and columns leave, over the four blocks."""
    total, noise = np.zeros(len(y)), np.zeros(len(y))
    for high, wide in product(top, left):
        block = y[:, high, wide]
        alone = block - block.mean(axis=1, keepdims=True) - block.mean(axis=2, keepdims=True)
        alone += block.mean(axis=(1, 2), keepdims=True)
        n, m = block.shape[1:]
        part = (alone**2).sum(axis=(1, 2)) / ((n - 1) * (m - 1) * n * m)
        total += part
        noise += part**2 / ((n - 1) * (m - 1))
    return total, noise
