"""The permutation test of SODAPOP exactly as released, for parity with its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError
from evenhand.stats._draws import TIE, Floats, Ints

RELEASED_SEED = 10
RELEASED_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """The released test's answer per word; `p` may be 0 because nothing is added to the count."""

    difference: Floats
    p: Floats
    larger: NDArray[np.int64]
    samples: int


def as_published_sodapop(
    values: ArrayLike, labels_equal_sizes: ArrayLike, samples: int | None = None
) -> PublishedResult:
    """The p values SODAPOP's released code prints (An et al. 2023), to the last bit.

    p = #{|mean X* - mean Y*| > |mean X - mean Y|} / samples, strictly larger, nothing added, so
    p can be 0. The legacy generator is re-seeded with 10 for every word, so all words see the
    same permutations: they are drawn once and counted by a matrix product. Values that lie
    within 1e-12 of the observed one are recomputed the way the released code does (the mean of
    the re-ordered list), because there the last bit decides.

    Use it to compare with the paper only; `shared` is the sound test. With small groups the
    released rule counts re-orderings of the observed split itself as larger whenever rounding
    says so: a word whose exact p is 0 (strict) may get 0.0067 at 4 v 4. At 25 v 25 this is
    negligible.

    Args:
        values: [n_units, n_words] success rates, units in the released order (X then Y is kept
            within each group).
        labels_equal_sizes: one boolean per unit, True for group X; groups of equal size.
        samples: permutations; None gives min(1,000,000, 100 * C(2n, n)) as released.

    Returns:
        Differences, p and counts. 443 words x 1,000,000 permutations of 25 v 25 take about 10 s.

    >>> as_published_sodapop([[3.0], [4.0], [0.0], [1.0]], [1, 1, 0, 0]).samples
    600
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise DataError(f"values: shape {table.shape!r} is not a table. Accepted: (units, words).")
    chosen = np.asarray(labels_equal_sizes, dtype=bool)
    n = int(chosen.sum())
    if chosen.shape != (len(table),) or 2 * n != len(table) or n == 0:
        raise DataError(
            f"labels: {n} of {len(table)} units are in the first group. Accepted by the released "
            "test: two groups of equal size. Use stats.permutation.shared for other sizes."
        )
    # Words are rows here: a contiguous row is summed in the order in which the list would be.
    words = np.ascontiguousarray(np.concatenate([table[chosen], table[~chosen]]).T)
    draws = _released_samples(n) if samples is None else int(samples)
    difference = words[:, :n].mean(axis=1) - words[:, n:].mean(axis=1)
    larger = _count_larger(words, difference, draws)
    p = np.where(np.isnan(difference), np.nan, larger / draws)
    return PublishedResult(difference, p, larger, draws)


def _released_samples(n: int) -> int:
    from scipy.special import comb

    # Float binomial and truncation, as released.
    return min(RELEASED_MOST, int(comb(2 * n, n) * 100))


def _count_larger(words: Floats, difference: Floats, draws: int) -> NDArray[np.int64]:
    """Count strictly larger permuted differences per word, block by block."""
    n = words.shape[1] // 2
    observed = np.abs(difference)
    centred = (words - words.mean(axis=1, keepdims=True)).T * (2.0 / n)
    near = TIE * np.abs(words).sum(axis=1) / n
    # A constant word gives the same mean in any order: never larger, nothing to recompute.
    varies = np.ptp(words, axis=1) > 0
    larger = np.zeros(len(words), dtype=np.int64)
    rng = np.random.RandomState(RELEASED_SEED)
    rows = max(256, min(16_384, 2**21 // max(1, len(words))))
    for start in range(0, draws, rows):
        order = _released_orders(rng, 2 * n, min(rows, draws - start))
        selection = np.zeros(order.shape)
        np.put_along_axis(selection, order[:, :n], 1.0, axis=1)
        size = np.abs(selection @ centred)
        sure = size > observed + near
        larger += np.count_nonzero(sure, axis=0)
        unsure = (size >= observed - near) & ~sure & varies
        for word in np.flatnonzero(unsure.any(axis=0)):
            lists = words[word][order[unsure[:, word]]]
            again = lists[:, :n].mean(axis=1) - lists[:, n:].mean(axis=1)
            larger[word] += np.count_nonzero(np.abs(again) > observed[word])
    return larger


def _released_orders(rng: np.random.RandomState, n: int, rows: int) -> Ints:
    """The next `rows` permutations of range(n), one legacy shuffle each."""
    orders = np.tile(np.arange(n), (rows, 1))
    for row in orders:
        rng.shuffle(row)
    return orders
