"""Coreference from files: a system's CoNLL output scored against gold, and WinoBias gaps.

Intervals resample documents. A gap is pro-stereotypical minus anti-stereotypical (Zhao et al.
2018; Kato & Miyao 2024, Sec. 3.3), sentence k of one against sentence k of the other: intervals
draw such pairs, and p comes from swapping the two within pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.metrics.coreference import METRICS, PARTS, document_counts, rates, replicates
from evenhand.probes.reading import Shown, listed
from evenhand.words.conll import Document

Floats = NDArray[np.float64]
NAMES = (*METRICS, "mean")


@dataclass(frozen=True)
class Score:
    """One metric over all documents, with 95 % intervals over documents."""

    metric: str
    precision: float
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float
    f1: float
    f1_low: float
    f1_high: float
    reason: str | None


@dataclass(frozen=True)
class ScoreGap:
    """pro - anti of one part of one metric, with a 95 % interval and a two-sided p."""

    metric: str
    part: str
    pro: float
    anti: float
    gap: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class TypeGaps:
    """Gaps of one type of WinoBias: every score, and the share of pronouns linked right."""

    n: int
    gaps: Sequence[ScoreGap]


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


def summary(counts: Floats, *, resamples: int = 1_000, seed: int = 0) -> list[Score]:
    """Scores of documents together, with intervals."""
    values = rates(counts.sum(axis=0))
    few = len(counts) < 2
    drawn = None if few else replicates(counts, resamples, seed)
    rows = []
    for k, metric in enumerate(NAMES):
        row: dict[str, float] = {}
        for j, part in enumerate(PARTS):
            low, high = (np.nan, np.nan) if drawn is None else _quantiles(drawn[:, k, j])
            row |= {part: float(values[k, j]), f"{part}_low": low, f"{part}_high": high}
        reason = "one document cannot be resampled" if few else None
        rows.append(Score(metric=metric, reason=reason, **row))
    return rows


def gaps(pro: Floats, anti: Floats, *, resamples: int = 2_000, seed: int = 0) -> list[ScoreGap]:
    """Gaps pro - anti of every score.

    Args:
        pro: counts [n, 12] of the pro-stereotypical documents.
        anti: counts of the anti-stereotypical ones, in the same order.
        resamples: bootstrap samples of pairs, and random swaps.
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
            sides = float(first[k, j]), float(second[k, j])
            gap = sides[0] - sides[1]
            low, high = _quantiles(drawn[:, k, j])
            beyond = int((np.abs(null[:, k, j]) >= abs(gap) - 1e-12).sum())
            p = (beyond + 1) / (resamples + 1) if np.isfinite(gap) else np.nan
            rows.append(ScoreGap(metric, part, *sides, gap, low, high, p))
    return rows


def accuracy_gap(pro: Floats, anti: Floats, *, resamples: int = 2_000, seed: int = 0) -> ScoreGap:
    """Share of sentences with the pronoun linked right, pro minus anti, with the same interval."""
    n = len(pro)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples) / n
    low, high = _quantiles(weights @ (pro - anti))
    signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (resamples, n))
    gap = float((pro - anti).mean())
    beyond = int((np.abs(signs @ (pro - anti) / n) >= abs(gap) - 1e-12).sum())
    sides = float(pro.mean()), float(anti.mean())
    return ScoreGap("accuracy", "accuracy", *sides, gap, low, high, (beyond + 1) / (resamples + 1))


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
) -> dict[str, TypeGaps]:
    """Gaps of WinoBias types 1 and 2 for any system.

    Args:
        gold: documents by (type, "pro" or "anti").
        predicted: the system's documents under the same keys, in the same order.
    """
    out = {}
    for kind in sorted({k for k, _ in gold}):
        pairs = {s: list(zip(gold[kind, s], predicted[kind, s])) for s in ("pro", "anti")}
        counts = {side: counts_of(p) for side, p in pairs.items()}
        right = {side: linked(p) for side, p in pairs.items()}
        rows = gaps(counts["pro"], counts["anti"], resamples=resamples, seed=seed)
        rows.append(accuracy_gap(right["pro"], right["anti"], resamples=resamples, seed=seed))
        out[kind] = TypeGaps(len(pairs["pro"]), rows)
    return out


def gap_table(kind: str, found: TypeGaps) -> Shown:
    """The gaps of the mean scores and of pronouns, for people."""
    rows = [
        {"score": f"mean {g.part}" if g.metric == "mean" else g.metric, **vars(g)}
        for g in found.gaps
        if g.metric in ("mean", "accuracy")
    ]
    title = f"WinoBias {kind}, pro - anti, {found.n} pairs of sentences"
    return listed(title, rows, ("score", "pro", "anti", "gap", "low", "high", "p"))
