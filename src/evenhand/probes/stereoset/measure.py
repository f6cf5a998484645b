"""StereoSet from files: the benchmark's own gold and prediction formats, scored by its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.metrics.stereoset import Outcomes, intervals, per_target, scores
from evenhand.probes.stereoset.files import (
    LABELS,
    SPLITS,
    Example,
    read_gold,
    read_predictions,
)
from evenhand.probes.stereoset.match import check_match
from evenhand.stats.clustered_means import with_q
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_mean
from evenhand.strict import plain


def score(
    examples: Sequence[Example],
    predictions: Mapping[str, float],
    *,
    resamples: int = 2_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One row per split and domain (and overall): lms, ss, icat, n, intervals, what is missing.

    An example without all three finite scores is left out and counted in `n_missing`. p tests SS
    against 50 by flipping the signs of whole target terms; q is corrected over the rows.
    """
    rows = []
    for split in (*SPLITS, "overall"):
        inside = [e for e in examples if split in (e.split, "overall")]
        domains = sorted({e.domain for e in inside})
        for domain in (*domains, "overall") if inside else ():
            chosen = [e for e in inside if domain in (e.domain, "overall")]
            rows.append(
                {"split": split, "domain": domain, **_row(chosen, predictions, resamples, seed)}
            )
    with_q(rows)
    return rows


def _row(
    examples: Sequence[Example], predictions: Mapping[str, float], resamples: int, seed: int
) -> dict[str, Any]:
    values = np.asarray(
        [[predictions.get(e.ids[k], np.nan) for k in LABELS] for e in examples], np.float64
    ).reshape(-1, 3)
    known = np.asarray(np.isfinite(values).all(axis=1), bool)
    targets = [e.target for e, k in zip(examples, known) if k]
    outcomes = Outcomes.of(*values[known].T)
    row: dict[str, Any] = {**scores(outcomes, targets), "n": int(known.sum())}
    row |= {"n_missing": int((~known).sum()), "n_targets": len(set(targets))}
    row |= {"p": np.nan, "detectable": np.nan}
    row["reason"] = None if known.any() else "no example has all three scores"
    if not targets:
        return row
    away = per_target(outcomes, targets)[0] - 50.0
    if len(away) > 1:
        row["p"] = float(paired_sign_flip(away, samples=4_999, seed=seed).p_two_sided[0])
        row["detectable"] = detectable_mean(away)
    return row | intervals(outcomes, targets, resamples=resamples, seed=seed)


def measure(
    gold: str | Path, predictions: str | Path, *, resamples: int = 2_000, seed: int = 0
) -> dict[str, Any]:
    """Score a prediction file against the gold file (Nadeem et al. 2021, Sec. 5).

    Predictions for other sentences than the gold file's are refused (`check_match`). Examples that
    are not in the file, or failed there, are left out and counted.

    Returns:
        `scores[split][domain] = {lms, ss, icat, n, n_missing, coverage, ...}`, the same as flat
        `rows`, and over all examples `n_examples`, `n`, `n_missing` (of which `n_failed` are in
        the file, but not with three finite scores) and `coverage` = n / n_examples.
    """
    examples, found = read_gold(gold), read_predictions(predictions)
    check_match(examples, found, gold, predictions)
    rows = score(examples, found, resamples=resamples, seed=seed)
    nested: dict[str, dict[str, Any]] = {}
    for row in rows:
        row["coverage"] = row["n"] / (row["n"] + row["n_missing"])
        nested.setdefault(row["split"], {})[row["domain"]] = {
            k: v for k, v in row.items() if k not in ("split", "domain")
        }
    named = sum(any(i in found for i in e.ids.values()) for e in examples)
    whole = nested["overall"]["overall"]
    result = {"measure": "stereoset", "scores": nested, "rows": rows, "n_examples": len(examples)}
    result |= {k: whole[k] for k in ("n", "n_missing", "coverage")}
    result |= {"n_failed": named - whole["n"], "settings": {"resamples": resamples, "seed": seed}}
    return dict(plain(result))
