"""Two groups of names compared word by word: SODAPOP's numbers, the tests, the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.metrics import sodapop
from evenhand.metrics.sodapop import Floats
from evenhand.probes.base import FDR
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.word_tests import Tested, cell_rates, corrected, pair_rows
from evenhand.probes.shared.reach import out_of_reach
from evenhand.stats import clustering, permutation
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import INLINE, OPTIONAL

RELEASED_RESTARTS = 10


@dataclass(frozen=True)
class WordRow:
    """One word: SODAPOP's numbers for these situations, and what holds beyond them.

    `p` re-labels names, `low` and `high` bound rd, `d_low` and `d_high` bound d. `beyond` is the
    verdict over names and situations, beyond the typical word (`word_tests`); as published there
    is none.
    """

    word: str
    n: int
    sr_a: float
    sr_b: float
    d: float
    m: float
    rd: float
    log_odds: float
    p: float
    p_max_t: float
    q: float
    low: float
    high: float
    d_low: float
    d_high: float
    beyond: Tested | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Linear:
    """How well a straight line tells the groups apart."""

    linear_accuracy: float
    linear_p: float
    linear_null_p95: float


@dataclass(frozen=True)
class Clusters:
    """How well two clusters of names recover the groups, beside permuted labels."""

    kmeans_accuracy: float
    null_mean: float
    null_p95: float
    p: float
    restarts: int
    reason: str
    linear: Linear | None = field(default=None, metadata=INLINE)


@dataclass(frozen=True)
class Compared:
    """A pair of groups: words by rd downwards (positive leans to group A), and the clusters.

    `typical` is the difference of the typical word, where words are compared with it.
    """

    words: Sequence[WordRow]
    clustering: Clusters
    p_method: str
    n_partitions: int
    reason: str
    typical: Tested | None


@dataclass(frozen=True)
class Settings:
    """How to test."""

    samples: int | None = None
    seed: int = 0
    as_published: bool = False
    restarts: int = 200
    rate: float = FDR
    """q up to which a word is called detected."""


SAMPLES = 99_999


def rates(counts: WordCounts) -> Floats:
    """Success rates [names, words]; NaN where a word was never shown with a name."""
    return sodapop.success_rate(*counts.of_names())


def compare(counts: WordCounts, group_a: str, group_b: str, settings: Settings) -> Compared:
    """One pair of groups: a row per word, the clusters, and how p was obtained."""
    labels = np.asarray(counts.groups)
    used = np.flatnonzero((labels == group_a) | (labels == group_b))
    used = np.concatenate([used[labels[used] == group_a], used[labels[used] == group_b]])
    in_a = labels[used] == group_a
    values = rates(counts)[used]
    if settings.as_published:
        values = np.nan_to_num(values)
    found = sodapop.contrast(values, in_a, as_published=settings.as_published)
    p, p_max_t, method, n_partitions = _test(values, in_a, settings)
    won, shown = counts.of_names()
    reason = _reason(counts, used, in_a)
    coarse = out_of_reach(1 / max(1, n_partitions), len(p))
    if coarse and not reason and not settings.as_published:
        reason = f"d, by re-labelled names: {coarse}"
    beyond, typical = _verdicts(counts, used, in_a, settings, reason)
    numbers = [
        found.sr_a,
        found.sr_b,
        found.d,
        found.m,
        found.rd,
        sodapop.log_odds(won[used], shown[used], in_a),
        p,
        p_max_t,
        benjamini_hochberg(p),
        *_ends(values, in_a, float(in_a.sum()) if settings.as_published else 1.0),
    ]
    n = shown[used].sum(axis=0).astype(np.int64)
    order = np.argsort(-np.where(np.isnan(found.rd), -np.inf, found.rd), kind="stable")
    rows = []
    for i in order:
        told: list[Any] = [counts.words[i], int(n[i]), *(float(v[i]) for v in numbers), beyond[i]]
        rows.append(WordRow(*told))
    clusters = _clusters(values, in_a, settings)
    return Compared(rows, clusters, method, n_partitions, reason, typical)


def _verdicts(
    counts: WordCounts, used: np.ndarray, in_a: np.ndarray, settings: Settings, reason: str
) -> tuple[Sequence[Tested | None], Tested | None]:
    """What each word does beyond the typical one, and the typical one itself."""
    if settings.as_published or not counts.words:
        return [None] * len(counts.words), None
    rows = corrected(
        pair_rows(cell_rates(counts)[used], in_a, reason if "name" in reason else ""),
        settings.rate,
    )
    return rows, rows[-1] if len(rows) > len(counts.words) else None


def _ends(values: Floats, in_a: np.ndarray, scale: float) -> tuple[Floats, ...]:
    """Low and high of the printed RD, then of d: names are the sample, as in p.

    With the groups' means a and b, their squared errors and Welch's t, d has a - b -+ t error. RD
    is a function of a / b, whose limits are Fieller's (1954), the ratios r >= 0 with
    (a - r b)^2 <= t^2 (error_a^2 + r^2 error_b^2): they leave out 1 when those of d leave out 0,
    up to the degrees of freedom, and end at RD's own bounds where a mean may be 0.
    """
    from scipy.special import stdtrit

    (a, v_a, n_a), (b, v_b, n_b) = (_mean(values[side]) for side in (in_a, ~in_a))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (v_a + v_b) ** 2 / (v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1))
        t = stdtrit(np.where(v_a + v_b > 0, freedom, 1.0), 0.975)
        reach = t * np.sqrt(v_a + v_b)
        top, bottom = a * a - t * t * v_a, b * b - t * t * v_b
        both = a * b + np.sqrt(np.maximum(a * a * b * b - top * bottom, 0.0))
        low = np.where(top > 0, 2 * (top - both) / (top + both), -2.0)
        high = np.where(bottom > 0, 2 * (both - bottom) / (both + bottom), 2.0)
    known = ~np.isnan(reach)
    low, high = (np.where(known, end * scale, np.nan) for end in (low, high))
    return low, high, a - b - reach, a - b + reach


def _mean(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over the names that have a value, its squared error, and how many there are."""
    n = (~np.isnan(values)).sum(axis=0).astype(float)
    mean = sodapop.success_rate(np.nansum(values, axis=0), n)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.where(n > 1, squares / np.maximum(n * (n - 1), 1), np.nan), n


def _test(values: Floats, in_a: np.ndarray, settings: Settings) -> tuple[Floats, Floats, str, int]:
    """p, the p over all words, how they were obtained, and from how many splits."""
    nothing = np.full(values.shape[1], np.nan)
    if not values.shape[1]:
        return nothing, nothing, "no words", 0
    if settings.as_published:
        made = permutation.as_published_sodapop(values, in_a, settings.samples)
        return made.p, nothing, "as published", made.samples
    samples = settings.samples or SAMPLES
    found = permutation.shared(values, in_a, samples=samples, seed=settings.seed)
    return found.p, found.p_max_t, found.method, found.n_partitions


def _clusters(values: Floats, in_a: np.ndarray, settings: Settings) -> Clusters:
    """K-means accuracy with its exact permuted-label null, and linear separability."""
    usable = values[:, ~np.isnan(values).any(axis=0)]
    if not usable.shape[1]:
        usable = np.full((len(values), 1), np.nan)
    restarts = RELEASED_RESTARTS if settings.as_published else settings.restarts
    seed = 0 if settings.as_published else settings.seed
    made = clustering.kmeans_separation(usable, in_a, restarts=restarts, seed=seed)
    linear = None
    if not settings.as_published:
        line = clustering.linear_separability(usable, in_a, seed=settings.seed)
        linear = Linear(line.accuracy, line.p, line.null_p95)
    return Clusters(
        made.accuracy, made.null_mean, made.null_p95, made.p, restarts, made.reason, linear
    )


def _reason(counts: WordCounts, used: np.ndarray, in_a: np.ndarray) -> str:
    if not counts.words:
        return "no word is left after the filter; lower --min-count or show more distractors"
    small = [int(s) for s in (in_a.sum(), (~in_a).sum()) if s < 2]
    if small:
        return "a group has one name only: it stands for itself, and there is no interval"
    if len(counts.contexts) < 2:
        return "one context: only names are a sample"
    return ""


def check_groups(present: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Refuse groups that the table does not have, or a group against itself."""
    from evenhand.errors import unknown

    for name in wanted:
        if name not in present:
            raise DataError(unknown("group", name, set(present), where=where))
    if len(set(wanted)) < len(wanted):
        raise DataError(f"{where}: group {wanted[0]!r} is compared with itself.")
