"""A mean with everything needed to believe it: interval, p, what it could have seen.

Benchmarks come down to means of per-item outcomes (was the stereotype preferred, was the
completion hurtful) whose items share a writer, a template or an occupation. That shared thing is
the unit that is resampled and flipped here, so one template with a hundred fillings counts once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.stats.bootstrap import Interval, from_replicates
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_effect

Floats = npt.NDArray[np.float64]
BLOCK = 250
DATA_FOLDER = "EVENHAND_DATA"
"""Environment variable: where relative paths of benchmark files are looked for too."""


def find_data(path: str | Path, what: str) -> Path:
    """The benchmark file or folder meant: as given, or below the folder in EVENHAND_DATA.

    Args:
        path: absolute, relative to here, or relative to EVENHAND_DATA.
        what: what the file is, for the message when it is not there.
    """
    if not str(path):
        raise DataError(
            f"{what}: no file is given, and the benchmark is not part of this package. Name your "
            f"copy, for example: --data FILE (or --set data=FILE)"
        )
    given = Path(path).expanduser()
    folder = os.environ.get(DATA_FOLDER)
    for place in (given, *([Path(folder).expanduser() / given] if folder else [])):
        if place.exists():
            return place
    also = f", nor below {folder}" if folder else f"; {DATA_FOLDER} is not set"
    raise DataError(
        f"{what}: {str(path)!r} is not here{also}. The benchmark is not part of this package: name "
        f"your copy with --data, or set {DATA_FOLDER} to the folder that holds it."
    )


def mean_row(
    values: npt.ArrayLike,
    clusters: Sequence[Any] | npt.NDArray[Any],
    *,
    strata: Sequence[Any] | npt.NDArray[Any] | None = None,
    ideal: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    resamples: int = 2_000,
    samples: int = 9_999,
    seed: int = 0,
) -> dict[str, Any]:
    """The mean of values with its 95 % interval, p against the ideal and detectable difference.

    Interval: clusters resampled, widened for few of them (Hesterberg 2015). p: signs of whole
    clusters' distances from the ideal are flipped (Fisher 1935). When all values are equal (in
    each stratum) nothing varies, and the interval is the exact one of as many equal results as
    there are clusters: 1 - 0.025 ** (1 / clusters) of the range to each side.

    Args:
        values: one per item; NaN is left out.
        clusters: what each item shares with others (a writer, a template).
        strata: when given, the mean of the strata's means: each stratum weighs the same.
        ideal: the value of a model without a preference.
        bounds: the smallest and largest possible value.

    Returns:
        value, low, high, p, n, n_clusters, detectable, reason; NaN with a reason without values.

    >>> row = mean_row([1.0, 1.0, 0.0, 1.0], "abcd", ideal=0.5, bounds=(0.0, 1.0))
    >>> row["value"], row["n_clusters"], row["p"]
    (0.75, 4, 0.625)
    >>> mean_row([1.0, 1.0, 1.0, 0.0], "abcd", strata="xxxy")["value"]
    0.5
    """
    data = np.asarray(values, np.float64)
    known = np.isfinite(data)
    groups = np.asarray(["all"] * len(data) if strata is None else list(strata))[known]
    labels, data = np.asarray(list(clusters))[known], data[known]
    names, codes = np.unique(labels, return_inverse=True)
    m = len(names)
    row: dict[str, Any] = dict.fromkeys(("value", "low", "high", "p", "detectable"), np.nan)
    row |= {"n": len(data), "n_clusters": m, "reason": None}
    if not len(data):
        return row | {"reason": "no item could be scored"}
    kinds, parts = np.unique(groups, return_inverse=True)
    sums, counts = np.zeros((2, m, len(kinds)))
    np.add.at(sums, (codes, parts), data - ideal)
    np.add.at(counts, (codes, parts), 1.0)
    distance = float((sums.sum(axis=0) / counts.sum(axis=0)).mean())
    row["value"] = ideal + distance
    if m < 2:
        return row | {"reason": "one cluster of items: no interval and no test"}
    share = (sums / counts.sum(axis=0)).sum(axis=1) / len(kinds)
    flips = paired_sign_flip(share, samples=samples, seed=seed)
    row["p"] = float(flips.p_two_sided[0])
    if all(np.ptp(data[parts == k]) == 0 for k in range(len(kinds))):
        room = (bounds[1] - bounds[0]) * (1 - 0.025 ** (1 / m))
        low, high, error = row["value"] - room, row["value"] + room, room / 1.96
    else:
        found = _interval(sums, counts, ideal + distance, ideal, resamples, seed)
        low, high, error = float(found.low), float(found.high), float(found.standard_error)
    row |= {"low": float(max(bounds[0], low)), "high": float(min(bounds[1], high))}
    row["detectable"] = detectable_effect(error) if np.isfinite(error) else np.nan
    return row


def _interval(
    sums: Floats, counts: Floats, estimate: float, ideal: float, resamples: int, seed: int
) -> Interval:
    """Percentile interval over resampled clusters, at the level that corrects for few of them."""
    from scipy.special import ndtr, stdtrit

    m = len(sums)
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, resamples, BLOCK):
        size = (min(BLOCK, resamples - start),)
        weights = rng.multinomial(m, np.full(m, 1 / m), size).astype(np.float64)
        total = weights @ counts
        means = np.full(total.shape, np.nan)
        np.divide(weights @ sums, total, out=means, where=total > 0)
        parts.append(ideal + means.mean(axis=1))
    tail = max(1e-6, float(ndtr(np.sqrt(m / (m - 1)) * stdtrit(m - 1, 0.025))))
    return from_replicates(estimate, np.concatenate(parts), level=1 - 2 * tail, units=(m,))


def with_q(rows: Sequence[dict[str, Any]], family: Sequence[bool] | None = None) -> None:
    """Put q (Benjamini-Hochberg) beside the p of the rows of one family; the others get NaN."""
    inside = [True] * len(rows) if family is None else list(family)
    p = [row["p"] if use else np.nan for row, use in zip(rows, inside)]
    for row, q in zip(rows, benjamini_hochberg(p)):
        row["q"] = float(q)
