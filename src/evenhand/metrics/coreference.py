"""Coreference scores: MUC, B-cubed, entity CEAF and their mean, as sums over documents.

Every score is a ratio of sums over documents, so a document is kept as twelve numbers (`COUNTS`)
and a corpus score, a bootstrap replicate or a gap is one weighted sum of rows.

    MUC     recall = sum_K (|K| - |p(K)|) / sum_K (|K| - 1)     (Vilain et al. 1995)
    B3      recall = sum_K sum_R |K n R|^2 / |K|, over mentions  (Bagga & Baldwin 1998)
    CEAF-e  recall = max_g sum_K phi(K, g(K)) / number of K,  phi = 2 |K n R| / (|K| + |R|)
            over one-to-one alignments g                          (Luo 2005)

K are key (gold) clusters, R response clusters, p(K) the parts into which the response cuts K;
precision is recall with the two swapped. Mean = arithmetic mean of the three (Pradhan et al. 2012).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
METRICS = ("muc", "b3", "ceafe")
PARTS = ("precision", "recall", "f1")
COUNTS = 12


def document_counts(
    key: Sequence[Iterable[Hashable]],
    response: Sequence[Iterable[Hashable]],
    *,
    singletons: bool = True,
) -> Floats:
    """The twelve sums of one document: per metric recall top and bottom, precision top and bottom.

    A mention repeated in the response keeps its first cluster, as in the reference scorer 8.01.

    Args:
        key: gold clusters; a mention is anything hashable, here spans.
        response: the clusters to judge.
        singletons: whether clusters of one mention count; OntoNotes has none.

    >>> a2 = document_counts(["a", "bc", "def"], ["a", "de"])
    >>> [round(float(x), 3) for x in score(a2)["ceafe"].values()]
    [0.9, 0.6, 0.72]
    """
    keys, responses = _clusters(key, singletons), _clusters(response, singletons)
    sizes = (np.asarray([len(c) for c in keys]), np.asarray([len(c) for c in responses]))
    overlap = _overlap(keys, responses)
    out = np.zeros((3, 4))
    for side, (size, table) in enumerate(((sizes[0], overlap), (sizes[1], overlap.T))):
        if not len(size):
            continue
        parts = (table > 0).sum(1) + size - table.sum(1)
        out[0, 2 * side : 2 * side + 2] = (size - parts).sum(), (size - 1).sum()
        out[1, 2 * side : 2 * side + 2] = ((table**2).sum(1) / size).sum(), size.sum()
        out[2, 2 * side + 1] = len(size)
    out[2, 0] = out[2, 2] = _aligned(overlap, *sizes)
    return out.ravel()


def _clusters(clusters: Sequence[Iterable[Hashable]], singletons: bool) -> list[set[Hashable]]:
    """Clusters as sets without repeated mentions; empty ones are left out."""
    seen: set[Hashable] = set()
    out = []
    for cluster in clusters:
        fresh = set(cluster) - seen
        seen |= fresh
        if len(fresh) > (0 if singletons else 1):
            out.append(fresh)
    return out


def _overlap(keys: list[set[Hashable]], responses: list[set[Hashable]]) -> Floats:
    where = {mention: r for r, cluster in enumerate(responses) for mention in cluster}
    table = np.zeros((len(keys), len(responses)))
    for row, cluster in enumerate(keys):
        for mention in cluster:
            if mention in where:
                table[row, where[mention]] += 1
    return table


def _aligned(overlap: Floats, keys: NDArray[Any], responses: NDArray[Any]) -> float:
    """Largest total similarity of a one-to-one alignment."""
    if not overlap.any():
        return 0.0
    from scipy.optimize import linear_sum_assignment

    similarity = 2 * overlap / (keys[:, None] + responses[None, :])
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return float(similarity[rows, columns].sum())


def rates(counts: ArrayLike) -> Floats:
    """Precision, recall and F1 of MUC, B3, CEAF-e and their mean: [..., 4, 3] of [..., 12] sums.

    A ratio without a bottom is 0 (the reference scorer), except that everything is NaN when
    neither key nor response has a cluster. The mean F1 is the mean of three F1 values.
    """
    sums = np.asarray(counts, np.float64)
    sums = sums.reshape(*sums.shape[:-1], 3, 4)
    bottoms = sums[..., (1, 3)]
    values = np.divide(sums[..., (0, 2)], bottoms, out=np.zeros_like(bottoms), where=bottoms > 0)
    recall, precision = values[..., 0], values[..., 1]
    total = recall + precision
    f1 = np.divide(2 * recall * precision, total, out=np.zeros_like(total), where=total > 0)
    out = np.stack([precision, recall, f1], axis=-1)
    out = np.concatenate([out, out.mean(axis=-2, keepdims=True)], axis=-2)
    empty = (sums[..., 2, 1] == 0) & (sums[..., 2, 3] == 0)
    return np.where(empty[..., None, None], np.nan, out)


def score(counts: ArrayLike) -> dict[str, dict[str, float]]:
    """Named scores of one row of counts, or of the sum of many.

    Returns:
        `{muc, b3, ceafe, mean} -> {precision, recall, f1}`, all in [0, 1], 1 best.
    """
    sums = np.asarray(counts, np.float64)
    values = rates(sums.sum(axis=0) if sums.ndim == 2 else sums)
    return {
        metric: dict(zip(PARTS, map(float, values[row])))
        for row, metric in enumerate((*METRICS, "mean"))
    }


def replicates(counts: ArrayLike, resamples: int, seed: int) -> Floats:
    """Scores [resamples, 4, 3] of documents drawn with replacement (Efron 1979).

    The same seed and number of documents draw the same documents: two systems, or two versions
    of the same documents, are then compared pair by pair.
    """
    table = np.asarray(counts, np.float64)
    n = len(table)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    return rates(weights @ table)
