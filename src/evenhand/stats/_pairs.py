"""Coefficients of many pairs under permutation and under bootstrap weights, without re-ranking."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from evenhand.stats._draws import Floats, Ints, Plan, rows_per_block


def unit_columns(values: Floats) -> Floats:
    """Columns minus their mean, divided by their length: a product of two is their correlation."""
    centred: Floats = values - values.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    out = np.zeros_like(centred)
    np.divide(centred, length, out=out, where=length > 0)
    return out


def pair_signs(values: Floats) -> Floats:
    """sign(v_i - v_j) for each column, [columns, n, n]."""
    return np.sign(values.T[:, :, None] - values.T[:, None, :])


def order_blocks(n: int, made: Plan, *, seed: int, rows: int) -> Iterator[Ints]:
    """Yield permutations of range(n): all n! of them, or a seeded sample."""
    if made.method == "exact":
        orders = itertools.permutations(range(n))
        for start in range(0, made.total, rows):
            count = min(rows, made.total - start)
            flat = itertools.chain.from_iterable(itertools.islice(orders, count))
            yield np.fromiter(flat, dtype=np.intp, count=count * n).reshape(count, n)
        return
    rng = np.random.default_rng(seed)
    for start in range(0, made.total, rows):
        yield rng.permuted(np.tile(np.arange(n), (min(rows, made.total - start), 1)), axis=1)


def scipy_order_blocks(n: int, made: Plan, *, seed: int, rows: int) -> Iterator[Ints]:
    """The permutations scipy.stats.permutation_test draws with a legacy `random_state`."""
    rng = np.random.RandomState(seed)
    for start in range(0, made.total, rows):
        yield np.argsort(rng.random(size=(min(rows, made.total - start), n)), axis=-1)


def linear_null(x: Floats, y: Floats, orders: Iterator[Ints]) -> Iterator[Floats]:
    """Blocks [rows, a, b] of x' permuted times y, for unit columns: one product per block."""
    for order in orders:
        moved = x[order].transpose(0, 2, 1).reshape(-1, len(x))
        yield (moved @ y).reshape(len(order), x.shape[1], y.shape[1])


def kendall_null(x: Floats, y: Floats, orders: Iterator[Ints]) -> Iterator[Floats]:
    """Blocks [rows, a, b] of Kendall's tau-b with x permuted; n^2 work per permutation."""
    first, second = pair_signs(x), pair_signs(y)
    n = x.shape[0]
    scale = np.sqrt(np.multiply.outer((first**2).sum((1, 2)), (second**2).sum((1, 2))))
    flat = second.reshape(len(second), -1).T
    for order in orders:
        index = order[:, :, None] * n + order[:, None, :]
        moved = first.reshape(len(first), -1)[:, index.reshape(len(order), -1)]
        yield np.moveaxis(moved @ flat, 0, 1) / scale


def null_rows(n: int, a: int, b: int, made: Plan, method: str, max_bytes: int) -> int:
    """Permutations per block for a table of a x b pairs."""
    width = n * n * (a + 2) if method == "kendall" else n * (a + 3)
    return rows_per_block(made.total, 8 * (width + 3 * a * b), max_bytes)


def permutation_count(n: int) -> int:
    """n!, or a number beyond any limit for large n."""
    return math.factorial(n) if n <= 20 else 2**62


def weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Average ranks inside each weighted sample, [samples, n, columns].

    In a sample where value i occurs w_i times, its average rank is the weight below it plus
    (weight tied with it + 1) / 2: no sorting per sample.
    """
    out = np.empty((*weights.shape, values.shape[1]))
    for j, column in enumerate(values.T):
        _, group = np.unique(column, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        tied = np.add.reduceat(weights[:, order], starts, axis=1)
        out[:, :, j] = (np.cumsum(tied, axis=1) - tied / 2 + 0.5)[:, group]
    return out


def weighted_linear(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Pearson correlation inside each weighted sample, [samples, a, b]; NaN where constant.

    x and y are [n, columns] of comparable scale, or [samples, n, columns] when ranks differ by
    sample.
    """
    share = (weights / weights.sum(axis=1, keepdims=True))[:, :, None]
    centred = [v - (share * v).sum(axis=1, keepdims=True) for v in (x, y)]
    cross = (centred[0] * share).transpose(0, 2, 1) @ centred[1]
    spread = [np.sqrt((share * c**2).sum(axis=1)) for c in centred]
    scale = spread[0][:, :, None] * spread[1][:, None, :]
    out = np.full(cross.shape, np.nan)
    np.divide(cross, scale, out=out, where=scale > 1e-14 * np.abs(scale).max(initial=0.0))
    return np.clip(out, -1.0, 1.0)


def weighted_kendall(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Kendall's tau-b inside each weighted sample, by quadratic forms w' S w."""
    first, second = pair_signs(x), pair_signs(y)

    def form(signs: Floats) -> Floats:
        return np.asarray(((weights @ signs) * weights).sum(axis=1), dtype=np.float64)

    down = [np.stack([form(s**2) for s in side], axis=1) for side in (first, second)]
    scale = np.sqrt(down[0][:, :, None] * down[1][:, None, :])
    top = np.stack([np.stack([form(s * t) for t in second], axis=1) for s in first], axis=1)
    out = np.full(top.shape, np.nan)
    np.divide(top, scale, out=out, where=scale > 0)
    return out
