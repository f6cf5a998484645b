"""Two groups of names compared word by word: SR, RD, p, q, intervals, clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.metrics import sodapop
from evenhand.metrics.sodapop import Floats
from evenhand.probes.base import FDR
from evenhand.probes.discovery.counts import WordCounts
from evenhand.stats import bootstrap, clustering, permutation
from evenhand.stats.multiple import benjamini_hochberg

RELEASED_RESTARTS = 10
BLOCK_BYTES = 96 * 2**20


@dataclass(frozen=True)
class Settings:
    """How to test and resample."""

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
) -> dict[str, Any]:
    """One pair of groups: a row per word, the clusters, and how p was obtained.

    Rows hold word, n, sr_a, sr_b, d, m, rd, log_odds, p, p_max_t, q, low, high (of rd), d_low
    and d_high, sorted by rd downwards: positive leans to group A.
    """
    labels = np.asarray(counts.groups)
    used = np.flatnonzero((labels == group_a) | (labels == group_b))
    used = np.concatenate([used[labels[used] == group_a], used[labels[used] == group_b]])
    in_a = labels[used] == group_a
    values = rates(counts)[used]
    if settings.as_published:
        values = np.nan_to_num(values)
    found = sodapop.contrast(values, in_a, as_published=settings.as_published)
    test = _test(values, in_a, settings)
    won, shown = counts.of_names()
    drawn = replicates if replicates is not None else group_replicates(counts, settings)
    columns: dict[str, Any] = {
        "word": list(counts.words),
        "n": shown[used].sum(axis=0).astype(np.int64).tolist(),
        "sr_a": found.sr_a, "sr_b": found.sr_b, "d": found.d, "m": found.m, "rd": found.rd,
        "log_odds": sodapop.log_odds(won[used], shown[used], in_a),
        "p": test["p"], "p_max_t": test["p_max_t"], "q": benjamini_hochberg(test["p"]),
    }  # fmt: skip
    columns |= _ends(drawn[group_a], drawn[group_b], int(in_a.sum()), settings.as_published)
    order = np.argsort(-np.where(np.isnan(found.rd), -np.inf, found.rd), kind="stable")
    rows = [{key: column[i] for key, column in columns.items()} for i in order]
    return {
        "words": rows,
        "clustering": _clusters(values, in_a, settings),
        "p_method": test["method"],
        "n_partitions": test["n"],
        "reason": _reason(counts, used, in_a),
    }


def _ends(a: Floats, b: Floats, n_a: int, as_published: bool) -> dict[str, Floats]:
    """Intervals of the printed RD and of d."""
    d = a - b
    rd = sodapop.success_rate(d, (a + b) / 2) * (n_a if as_published else 1)
    unknown = np.full(d.shape[1], np.nan)
    of_rd, of_d = (bootstrap.from_replicates(unknown, drawn) for drawn in (rd, d))
    return {"low": of_rd.low, "high": of_rd.high, "d_low": of_d.low, "d_high": of_d.high}


def _test(values: Floats, in_a: np.ndarray, settings: Settings) -> dict[str, Any]:
    nothing = np.full(values.shape[1], np.nan)
    if not values.shape[1]:
        return {"p": nothing, "p_max_t": nothing, "method": "no words", "n": 0}
    if settings.as_published:
        made = permutation.as_published_sodapop(values, in_a, settings.samples)
        return {"p": made.p, "p_max_t": nothing, "method": "as published", "n": made.samples}
    samples = settings.samples or SAMPLES
    result = permutation.shared(values, in_a, samples=samples, seed=settings.seed)
    return {
        "p": result.p, "p_max_t": result.p_max_t, "method": result.method,
        "n": result.n_partitions,
    }  # fmt: skip


def _clusters(values: Floats, in_a: np.ndarray, settings: Settings) -> dict[str, Any]:
    """K-means accuracy with its exact permuted-label null, and linear separability."""
    usable = values[:, ~np.isnan(values).any(axis=0)]
    if not usable.shape[1]:
        usable = np.full((len(values), 1), np.nan)
    restarts = RELEASED_RESTARTS if settings.as_published else settings.restarts
    seed = 0 if settings.as_published else settings.seed
    made = clustering.kmeans_separation(usable, in_a, restarts=restarts, seed=seed)
    out: dict[str, Any] = {
        "kmeans_accuracy": made.kmeans_accuracy,
        "null_mean": made.null_mean,
        "null_p95": made.null_p95,
        "p": made.p,
        "restarts": restarts,
        "reason": made.reason,
    }
    if not settings.as_published:
        line = clustering.linear_separability(usable, in_a, seed=settings.seed)
        out["linear_accuracy"], out["linear_p"] = line.accuracy, line.p
        out["linear_null_p95"] = line.null_p95
    return out


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
