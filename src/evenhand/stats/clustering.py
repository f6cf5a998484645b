"""Do two groups separate in feature space: k-means accuracy and linear separability, with nulls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import SpecError
from evenhand.stats._checks import not_finite, table, two_groups
from evenhand.stats._draws import TIE, Floats, Ints
from evenhand.strict import SameValues

__all__ = ["Separation", "kmeans_separation", "linear_separability"]

NAN = float("nan")


@dataclass(frozen=True, eq=False, slots=True)
class Separation(SameValues):
    """How well two groups are told apart, with what permuted labels give.

    `accuracy` of k-means clusters, or the balanced one of a linear classifier that did not see the
    units; `inertia` of the clusters; `reason` says why the numbers are NaN, else it is empty.
    """

    accuracy: float = NAN
    null_mean: float = NAN
    null_p95: float = NAN
    p: float = NAN
    inertia: float = NAN
    reason: str = ""


def kmeans_separation(
    values: ArrayLike, labels: ArrayLike, *, restarts: int = 200, seed: int = 0
) -> Separation:
    """Accuracy with which two k-means clusters recover two groups (An et al. 2023, Sec. 4).

    accuracy = max(a, 1 - a), a the share of units whose cluster equals their label. It lies in
    [0.5, 1] and is above 0.5 by chance (0.558 for 25 v 25), so its null is given: clusters do
    not see the labels, so under permuted labels the overlap is hypergeometric and null_mean,
    null_p95 and p = P(null >= accuracy) are exact, without sampling.

    Args:
        values: [n_units, n_features], used without scaling as published.
        restarts: k-means starts; the best inertia wins. The released code had 10 or 1,
            depending on the installed version, and both miss the best clusters at times.

    Returns:
        Accuracy, null and p; NaN with a reason for non-finite or constant features or an
        empty group. 50 units x 443 features x 200 restarts take about 0.1 s.

    >>> kmeans_separation([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1]).accuracy
    1.0
    """
    data = table(values)
    chosen = two_groups(labels, len(data))
    reason = _problem(data, chosen)
    if reason:
        return Separation(reason=reason)
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Tiny problems: worker threads cost far more than they save on a busy machine.
    with threadpool_limits(1):
        fit = KMeans(n_clusters=2, n_init=restarts, random_state=seed).fit(data)
    assigned = fit.labels_.astype(np.intp)
    agree = int((assigned == chosen).sum())
    accuracy = max(agree, len(data) - agree) / len(data)
    support, mass = _overlap_null(len(data), int(chosen.sum()), int(assigned.sum()))
    total = np.cumsum(mass)
    return Separation(
        accuracy,
        float(support @ mass),
        float(support[np.searchsorted(total, 0.95 - TIE)]),
        min(1.0, float(mass[support >= accuracy - TIE].sum())),
        float(fit.inertia_),
    )


def linear_separability(
    values: ArrayLike, labels: ArrayLike, *, folds: int = 5, permutations: int = 999, seed: int = 0
) -> Separation:
    """Balanced accuracy of a held-out linear classifier for two groups, with a permuted null.

    A ridge discriminant with permuted labels (Ojala & Garriga 2010): features are centred and
    scaled on the training folds, targets are +1/n_a and -1/n_b, penalty = mean
    eigenvalue of the kernel. Balanced accuracy is the mean of the two groups' recalls: 0.5 by
    chance, 1 when a hyperplane separates them. Predictions are linear in the targets, so all
    permuted labellings are one product per fold; labels are permuted inside folds, which keeps
    the folds balanced. p = (b + 1)/(permutations + 1).

    Args:
        folds: parts of the cross-validation, at most the size of the smaller group.

    Returns:
        Accuracy, null and p; NaN with a reason as in `kmeans_separation`.

    >>> linear_separability([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1], folds=2).accuracy
    1.0
    """
    data = table(values)
    chosen = two_groups(labels, len(data))
    smaller = int(min(chosen.sum(), (~chosen).sum()))
    reason = _problem(data, chosen) or ("a group has one unit" if smaller < 2 else "")
    if reason:
        return Separation(reason=reason)
    if folds < 2:
        raise SpecError(f"folds: {folds!r}. Accepted: 2 or more.")
    folds = min(folds, smaller)
    rng = np.random.default_rng(seed)
    fold = _stratified(chosen, folds, rng)
    marks = np.tile(chosen, (permutations + 1, 1))
    for f in range(folds):
        inside = fold == f
        marks[1:, inside] = rng.permuted(marks[1:, inside], axis=1)
    scores = np.empty(marks.shape)
    for f in range(folds):
        test = fold == f
        signed = np.where(marks[:, ~test], 1 / chosen[~test].sum(), -1 / (~chosen[~test]).sum())
        scores[:, test] = signed @ _ridge_map(data[~test], data[test])
    right = (scores > 0) == marks
    recalls = [(right & (marks == side)).sum(axis=1) / (chosen == side).sum() for side in (1, 0)]
    accuracy = (recalls[0] + recalls[1]) / 2
    null = accuracy[1:]
    reached = np.count_nonzero(null >= accuracy[0] - TIE)
    return Separation(
        float(accuracy[0]),
        float(null.mean()) if permutations else NAN,
        float(np.quantile(null, 0.95)) if permutations else NAN,
        (reached + 1) / (permutations + 1),
    )


def _problem(data: Floats, chosen: NDArray[np.bool]) -> str:
    reason = not_finite(data)
    if reason:
        return reason
    if chosen.all() or not chosen.any():
        return "a group is empty"
    return "" if np.ptp(data, axis=0).max() > 0 else "all units are equal"


def _overlap_null(n: int, in_group: int, in_cluster: int) -> tuple[Floats, Floats]:
    """Accuracies and their probabilities when labels are permuted against fixed clusters."""
    from scipy.stats import hypergeom

    overlap = np.arange(max(0, in_group + in_cluster - n), min(in_group, in_cluster) + 1)
    agree = n - in_group - in_cluster + 2 * overlap
    best, at = np.unique(np.maximum(agree, n - agree), return_inverse=True)
    mass = np.zeros(len(best))
    np.add.at(mass, at, hypergeom.pmf(overlap, n, in_group, in_cluster))
    return np.asarray(best / n, dtype=np.float64), mass


def _stratified(chosen: NDArray[np.bool], folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each unit, both groups spread evenly."""
    fold = np.empty(len(chosen), dtype=np.intp)
    for side in (True, False):
        members = rng.permutation(np.flatnonzero(chosen == side))
        fold[members] = np.arange(len(members)) % folds
    return fold


def _ridge_map(train: Floats, test: Floats) -> Floats:
    """Matrix [train, test] that turns training targets into test scores."""
    center, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    fitted, asked = (train - center) / spread, (test - center) / spread
    kernel = fitted @ fitted.T
    penalty = max(float(np.trace(kernel)) / len(train), 1e-12)
    return np.linalg.solve(kernel + penalty * np.eye(len(train)), fitted @ asked.T)
