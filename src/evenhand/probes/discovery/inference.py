"""Two groups of names compared word by word: SODAPOP's numbers, the tests, the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from evenhand.stats import bootstrap, clustering, permutation
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import INLINE, OPTIONAL

RELEASED_RESTARTS = 10
BLOCK_BYTES = 96 * 2**20


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
    """How to test and resample; without resamples there are no intervals of rd and d."""

    samples: int | None = None
    resamples: int = 1_000
    seed: int = 0
    as_published: bool = False
    restarts: int = 200
    rate: float = FDR
    """q up to which a word is called detected."""


SAMPLES = 99_999


def rates(counts: WordCounts) -> Floats:
    """Success rates [names, words]; NaN where a word was never shown with a name."""
    return sodapop.success_rate(*counts.of_names())


def group_replicates(counts: WordCounts, settings: Settings) -> dict[str, Floats]:
    """Bootstrap replicates of each group's mean SR, [resamples, words] by group.

    Names are drawn within their group and contexts across all groups, each on its own (the
    pigeonhole bootstrap, Owen 2007): SR*(w, n) = sum_c v_c won / sum_c v_c shown, and the group
    mean weighs names by how often they were drawn. One context, or one name in a group, cannot
    be resampled: one context is kept as it is, one name makes the replicates NaN.
    """
    n_names, n_contexts, n_words = counts.shown.shape
    groups = list(dict.fromkeys(counts.groups))
    members = {g: np.flatnonzero(np.asarray(counts.groups) == g) for g in groups}
    out = {g: np.full((settings.resamples, n_words), np.nan) for g in groups}
    both = np.concatenate([counts.won, counts.shown], axis=2).transpose(1, 0, 2)
    flat = both.reshape(n_contexts, -1)
    block = max(1, min(settings.resamples, BLOCK_BYTES // (8 * flat.shape[1] + 1)))
    seeds = np.random.SeedSequence(settings.seed).spawn(1 + len(groups))
    draw = {g: np.random.default_rng(s) for g, s in zip(["", *groups], seeds)}
    for begin in range(0, settings.resamples, block):
        size = min(block, settings.resamples - begin)
        w_c = _weights(draw[""], n_contexts, size)
        drawn = (w_c @ flat).reshape(len(w_c), n_names, -1)
        sr = sodapop.success_rate(drawn[..., :n_words], drawn[..., n_words:])
        known = ~np.isnan(sr)
        sr = np.where(known, sr, 0.0)
        for group, at in members.items():
            if len(at) < 2:
                continue
            weight = _weights(draw[group], len(at), size)[:, None, :]
            top = np.matmul(weight, sr[:, at])[:, 0]
            bottom = np.matmul(weight, known[:, at].astype(np.float64))[:, 0]
            out[group][begin : begin + size] = sodapop.success_rate(top, bottom)
    return out


def _weights(rng: np.random.Generator, n: int, size: int) -> Floats:
    """How often each of n units is drawn, [size, n]; the stream does not depend on `size`."""
    return rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)


def compare(
    counts: WordCounts,
    group_a: str,
    group_b: str,
    settings: Settings,
    replicates: Mapping[str, Floats] | None = None,
) -> Compared:
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
    drawn = replicates if replicates is not None else group_replicates(counts, settings)
    reason = _reason(counts, used, in_a)
    coarse = out_of_reach(1 / max(1, n_partitions), len(p))
    if coarse and not reason and not settings.as_published:
        reason = f"d, by re-labelled names: {coarse}"
    beyond, typical = _verdicts(counts, used, in_a, settings, reason)
    numbers = [
        found.sr_a, found.sr_b, found.d, found.m, found.rd,
        sodapop.log_odds(won[used], shown[used], in_a), p, p_max_t, benjamini_hochberg(p),
        *_ends(drawn[group_a], drawn[group_b], int(in_a.sum()), settings.as_published),
    ]  # fmt: skip
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


def _ends(a: Floats, b: Floats, n_a: int, as_published: bool) -> tuple[Any, ...]:
    """Low and high of the printed RD, then of d; NaN without resamples."""
    d = a - b
    rd = sodapop.success_rate(d, (a + b) / 2) * (n_a if as_published else 1)
    unknown = np.full(d.shape[1], np.nan)
    of_rd, of_d = (bootstrap.from_replicates(unknown, drawn) for drawn in (rd, d))
    return of_rd.low, of_rd.high, of_d.low, of_d.high


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
        return "one context: intervals are over names only"
    return ""


def check_groups(present: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Refuse groups that the table does not have, or a group against itself."""
    from evenhand.errors import unknown

    for name in wanted:
        if name not in present:
            raise DataError(unknown("group", name, set(present), where=where))
    if len(set(wanted)) < len(wanted):
        raise DataError(f"{where}: group {wanted[0]!r} is compared with itself.")
