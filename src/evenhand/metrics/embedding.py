"""Further associations of word vectors: RND, MAC, ECT and RIPA.

Each takes rows of vectors [words, dimensions] and is computed in float64. Vectors are scaled to
length one unless `normalise` is False: a word's length follows its frequency, not its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.metrics.association import check_sets, unit_rows

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Words:
    """A number, and its parts: one value per attribute word, in their order."""

    value: float
    by_word: Floats


def rnd(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    distance: str = "norm",
    normalise: bool = True,
) -> Words:
    """Relative norm distance (Garg et al. 2018, PNAS 115, E3635, Methods).

    rnd = mean over attribute words w of d(w, mean x) - d(w, mean y), with d the Euclidean distance,
    or 1 - cosine. Ideal 0; negative: a is nearer to x, positive: nearer to y. In [-2, 2] for unit
    vectors.

    Deviates: the paper sums over the words; the mean does not grow with the list. `distance="cos"`
    is a distance here: WEFE 1.0.1 subtracts similarities under that name, which turns the sign
    round.

    >>> rnd([[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]).value
    -1.4142135623730951
    """
    check_sets("rnd", x=x, y=y, a=a)
    rows = [_prepare(v, normalise) for v in (x, y, a)]
    centres = [part.mean(axis=0) for part in rows[:2]]
    if distance == "norm":
        far = [np.linalg.norm(rows[2] - centre, axis=1) for centre in centres]
    elif distance == "cos":
        far = [1 - unit_rows(rows[2]) @ unit_rows(centre)[0] for centre in centres]
    else:
        raise DataError(f"distance: {distance!r}. Accepted: norm, cos.")
    by_word = np.asarray(far[0] - far[1], np.float64)
    return Words(float(by_word.mean()), by_word)


def mac(targets: npt.ArrayLike, attributes: Sequence[npt.ArrayLike]) -> Words:
    """Mean average cosine distance (Manzini et al. 2019, Eq. 3).

    mac = mean over targets t and attribute sets A_j of [mean over a in A_j of 1 - cos(t, a)], in
    [0, 2]. Ideal 1: targets are orthogonal to the attributes on average. `by_word` holds one row
    per target, one column per set. (The paper calls it similarity; the number is a distance.)

    >>> mac([[1.0, 0.0]], [[[0.0, 1.0]], [[1.0, 0.0]]]).value
    0.5
    """
    if not len(attributes):
        raise DataError("attributes: no set is given. Accepted: one set or more.")
    check_sets("mac", targets=targets, **{f"attributes[{k}]": a for k, a in enumerate(attributes)})
    rows, *means = (_prepare(part, True) for part in (targets, *attributes))
    by_word = 1 - rows @ np.stack([part.mean(axis=0) for part in means]).T
    return Words(float(by_word.mean()), np.asarray(by_word, np.float64))


def ect(x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, *, normalise: bool = True) -> float:
    """Embedding coherence test (Dev & Phillips 2019, Sec. 4.1).

    Spearman correlation, over attribute words, of their cosines to the mean of x and to the mean
    of y; average ranks for ties. In [-1, 1], ideal 1: both groups rank the attributes alike. NaN
    with fewer than 2 attribute words or when all cosines of a group are equal.

    >>> round(ect([[1.0, 0.0]], [[1.0, 0.1]], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), 12)
    1.0
    """
    check_sets("ect", x=x, y=y, a=a)
    rows = [_prepare(v, normalise) for v in (x, y, a)]
    centres = unit_rows(np.stack([part.mean(axis=0) for part in rows[:2]]))
    ranks = _ranks(unit_rows(rows[2]) @ centres.T)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    if not (length > 0).all():
        return float("nan")
    return float(np.clip(ranks[:, 0] @ ranks[:, 1] / (length[0] * length[1]), -1, 1))


@dataclass(frozen=True, slots=True)
class Ripa:
    """RIPA: its mean, and by attribute word the mean and spread over the pairs."""

    value: float
    by_word: Floats
    spread: Floats


def ripa(x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, *, normalise: bool = False) -> Ripa:
    """Relational inner product association (Ethayarajh et al. 2019, Def. 2).

    For a pair (x_i, y_i) and a word w: w . b with b = (x_i - y_i) / |x_i - y_i|, averaged over the
    pairs and the attribute words. Ideal 0, positive: nearer to x. Row k of x belongs to row k of
    y. Not scaled by default: the paper's argument is about the vectors as trained. `spread` is the
    population standard deviation over pairs, which is often as large as the number itself.

    >>> ripa([[1.0, 0.0]], [[0.0, 1.0]], [[2.0, 0.0]]).value
    1.414213562373095
    """
    check_sets("ripa", x=x, y=y, a=a)
    first, second, words = (_prepare(v, normalise) for v in (x, y, a))
    if len(first) != len(second):
        raise DataError(
            f"ripa: {len(first)} rows of x and {len(second)} of y are not pairs. Leave out both "
            "words of a pair when one is missing."
        )
    scores = words @ unit_rows(first - second).T  # a pair of equal vectors is NaN
    scores = scores[:, np.isfinite(scores).all(axis=0)]
    if not scores.size:
        raise DataError("ripa: no pair has two different vectors.")
    by_word = scores.mean(axis=1)
    return Ripa(float(by_word.mean()), by_word, np.asarray(scores.std(axis=1), np.float64))


def _prepare(rows: npt.ArrayLike, normalise: bool) -> Floats:
    array = np.asarray(rows, np.float64)
    return unit_rows(array) if normalise else np.atleast_2d(array)


def _ranks(values: Floats) -> Floats:
    """Average ranks of each column; values within 1e-12 of each other are tied."""
    out = np.empty_like(values)
    for j, column in enumerate(values.T):
        order = np.argsort(column, kind="stable")
        group = np.empty(len(column), np.int64)
        group[order] = np.cumsum(np.diff(column[order], prepend=-np.inf) > 1e-12)
        counts = np.bincount(group)
        out[:, j] = (np.cumsum(counts) - (counts - 1) / 2)[group]
    return out
