"""Coreference from files: a system's CoNLL output scored against gold, and WinoBias gaps.

Intervals resample documents. A gap is pro-stereotypical minus anti-stereotypical (Zhao et al.
2018; Kato & Miyao 2024, Sec. 3.3), sentence k of one against sentence k of the other: intervals
draw such pairs, and p comes from swapping the two within pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.metrics.coreference import METRICS, PARTS, document_counts, rates, replicates
from evenhand.strict import plain
from evenhand.words.conll import Document, read_conll

Floats = NDArray[np.float64]
NAMES = (*METRICS, "mean")


def aligned(
    gold: Sequence[Document], predicted: Sequence[Document], where: str = "predictions"
) -> list[tuple[Document, Document]]:
    """Gold documents with the prediction of the same name and part; the words must be equal."""
    found = {(d.name, d.part.lstrip("0")): d for d in predicted}
    pairs = []
    for document in gold:
        other = found.get((document.name, document.part.lstrip("0")))
        if other is None:
            raise DataError(
                f"{where}: no document '{document.name}' part {document.part}. Every gold document "
                "needs a prediction of the same name, also one without clusters."
            )
        if len(other.tokens) != len(document.tokens):
            raise DataError(
                f"{where}: document '{document.name}' has {len(other.tokens)} tokens, the gold one "
                f"{len(document.tokens)}. Predict on the gold tokens."
            )
        pairs.append((document, other))
    return pairs


def counts_of(pairs: Sequence[tuple[Document, Document]], *, singletons: bool = False) -> Floats:
    """Score sums [documents, 12] (see metrics.coreference)."""
    rows = [document_counts(g.clusters, p.clusters, singletons=singletons) for g, p in pairs]
    return np.stack(rows)


def linked(pairs: Sequence[tuple[Document, Document]]) -> Floats:
    """1 where every gold cluster lies whole in one predicted cluster, else 0, per document."""
    out = []
    for gold, predicted in pairs:
        sets = [set(c) for c in predicted.clusters]
        out.append(float(all(any(set(c) <= s for s in sets) for c in gold.clusters if len(c) > 1)))
    return np.asarray(out)


def summary(counts: Floats, *, resamples: int = 1_000, seed: int = 0) -> list[dict[str, Any]]:
    """Rows `metric, precision, recall, f1` with intervals `<part>_low`, `<part>_high`."""
    values = rates(counts.sum(axis=0))
    few = len(counts) < 2
    drawn = None if few else replicates(counts, resamples, seed)
    rows = []
    for k, metric in enumerate(NAMES):
        row: dict[str, Any] = {"metric": metric}
        for j, part in enumerate(PARTS):
            row[part] = values[k, j]
            low, high = (np.nan, np.nan) if drawn is None else _quantiles(drawn[:, k, j])
            row |= {f"{part}_low": low, f"{part}_high": high}
        row["reason"] = "one document cannot be resampled" if few else None
        rows.append(row)
    return rows


def gaps(
    pro: Floats, anti: Floats, *, resamples: int = 2_000, seed: int = 0
) -> list[dict[str, Any]]:
    """Gaps pro - anti of every score: rows `metric, part, pro, anti, gap, low, high, p`.

    Args:
        pro: counts [n, 12] of the pro-stereotypical documents.
        anti: counts of the anti-stereotypical ones, in the same order.
        resamples: bootstrap samples of pairs, and random swaps.
        seed: seed of both.
    """
    if pro.shape != anti.shape:
        raise DataError(
            f"gap: {len(pro)} pro- but {len(anti)} anti-stereotypical documents. They are compared "
            "pair by pair, so both files need the same sentences in the same order."
        )
    first, second = rates(pro.sum(axis=0)), rates(anti.sum(axis=0))
    drawn = replicates(pro, resamples, seed) - replicates(anti, resamples, seed)
    swap = np.random.default_rng([seed, 1]).integers(0, 2, (resamples, len(pro))).astype(float)
    null = rates(swap @ pro + (1 - swap) @ anti) - rates(swap @ anti + (1 - swap) @ pro)
    rows = []
    for k, metric in enumerate(NAMES):
        for j, part in enumerate(PARTS):
            gap = first[k, j] - second[k, j]
            low, high = _quantiles(drawn[:, k, j])
            beyond = int((np.abs(null[:, k, j]) >= abs(gap) - 1e-12).sum())
            p = (beyond + 1) / (resamples + 1) if np.isfinite(gap) else np.nan
            rows.append({
                "metric": metric, "part": part, "pro": first[k, j], "anti": second[k, j],
                "gap": gap, "low": low, "high": high, "p": p,
            })  # fmt: skip
    return rows


def accuracy_gap(
    pro: Floats, anti: Floats, *, resamples: int = 2_000, seed: int = 0
) -> dict[str, Any]:
    """Share of sentences with the pronoun linked right, pro minus anti, with the same interval."""
    n = len(pro)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples) / n
    low, high = _quantiles(weights @ (pro - anti))
    signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (resamples, n))
    gap = float((pro - anti).mean())
    beyond = int((np.abs(signs @ (pro - anti) / n) >= abs(gap) - 1e-12).sum())
    return {
        "metric": "accuracy", "part": "accuracy", "pro": float(pro.mean()),
        "anti": float(anti.mean()), "gap": gap, "low": low, "high": high,
        "p": (beyond + 1) / (resamples + 1),
    }  # fmt: skip


def _quantiles(values: Floats) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return np.nan, np.nan
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)


def winobias_gaps(
    gold: Mapping[tuple[str, str], Sequence[Document]],
    predicted: Mapping[tuple[str, str], Sequence[Document]],
    *,
    resamples: int = 2_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Gaps of WinoBias types 1 and 2 for any system.

    Args:
        gold: documents by (type, "pro" or "anti").
        predicted: the system's documents under the same keys, in the same order.
        resamples: of intervals and p.
        seed: of both.

    Returns:
        `{type: {n, scores: {pro, anti}, gaps: [rows of `gaps` and one for accuracy]}}`.
    """
    out: dict[str, Any] = {}
    for kind in sorted({k for k, _ in gold}):
        pairs = {s: list(zip(gold[kind, s], predicted[kind, s])) for s in ("pro", "anti")}
        counts = {side: counts_of(p) for side, p in pairs.items()}
        right = {side: linked(p) for side, p in pairs.items()}
        rows = gaps(counts["pro"], counts["anti"], resamples=resamples, seed=seed)
        rows.append(accuracy_gap(right["pro"], right["anti"], resamples=resamples, seed=seed))
        out[kind] = {"n": len(pairs["pro"]), "gaps": rows}
    return dict(plain(out))


def measure(
    gold: str | Path,
    predictions: str | Path,
    *,
    anti_gold: str | Path | None = None,
    anti_predictions: str | Path | None = None,
    singletons: bool = False,
    resamples: int = 1_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Score a CoNLL prediction file; with a second pair of files also the gap between the two.

    Returns:
        `scores` (MUC, B3, CEAF-e, mean; precision, recall, F1; intervals over documents),
        `n_documents`, and `gaps` with `anti_scores` when `anti_*` are given.
    """
    if (anti_gold is None) != (anti_predictions is None):
        raise DataError("gap: --anti-gold and --anti-predictions belong together; pass both.")
    pairs = aligned(read_conll(gold), read_conll(predictions), str(predictions))
    counts = counts_of(pairs, singletons=singletons)
    result: dict[str, Any] = {
        "measure": "coreference",
        "scores": summary(counts, resamples=resamples, seed=seed),
        "accuracy": float(linked(pairs).mean()),
        "n_documents": len(pairs),
        "n_without_prediction": sum(not p.clusters for _, p in pairs),
    }
    if anti_gold is not None and anti_predictions is not None:
        others = aligned(read_conll(anti_gold), read_conll(anti_predictions), str(anti_predictions))
        anti = counts_of(others, singletons=singletons)
        rows = gaps(counts, anti, resamples=resamples, seed=seed)
        rows.append(accuracy_gap(linked(pairs), linked(others), resamples=resamples, seed=seed))
        result |= {"anti_scores": summary(anti, resamples=resamples, seed=seed), "gaps": rows}
    settings = {"singletons": singletons, "resamples": resamples, "seed": seed}
    return dict(plain(result | {"settings": settings}))
