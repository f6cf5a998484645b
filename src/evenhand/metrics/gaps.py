"""Gaps between groups in the performance of a yes/no classifier.

    precision = TP / (TP + FP)   recall = TP / (TP + FN)   F1 = 2 TP / (2 TP + FP + FN)
    FPR = FP / (FP + TN)         FNR = FN / (TP + FN)      gap = rate(group A) - rate(group B)

(Kato & Miyao 2024, Sec. 3.4 with precision, recall and F1; Dixon et al. 2018 with FPR and FNR.)
Ideal gap 0. Examples of a group are n independent draws of four outcomes, so a bootstrap
replicate is one multinomial draw of four counts, and a permutation of the group labels one
multivariate hypergeometric draw: both cost nothing at any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError
from evenhand.strict import INLINE, SameValues

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RATES = ("precision", "recall", "f1", "fpr", "fnr", "accuracy", "positive_rate")


@dataclass(frozen=True, eq=False)
class Rates(SameValues):
    """Rates of a set of examples; NaN where undefined."""

    precision: float
    recall: float
    f1: float
    fpr: float
    fnr: float
    accuracy: float
    positive_rate: float

    @classmethod
    def of(cls, counts: ArrayLike) -> Rates:
        """From counts of TP, FP, FN, TN."""
        return cls(*map(float, rates(counts)))


@dataclass(frozen=True)
class GroupRates:
    """Rates of one group."""

    n: int
    n_positive: int
    rates: Rates = field(metadata=INLINE)


@dataclass(frozen=True, eq=False)
class Gap(SameValues):
    """rate(first) - rate(second), with a 95 % interval and a two-sided p."""

    metric: str
    gap: float
    low: float
    high: float
    p: float
    reason: str | None


@dataclass(frozen=True)
class GroupGaps:
    """Rates of everything and of two groups, and the gaps between the two."""

    n: int
    all: Rates
    first: str
    second: str
    rates: Mapping[str, GroupRates]
    gaps: Sequence[Gap]


def confusion(truth: ArrayLike, predicted: ArrayLike) -> Ints:
    """Counts TP, FP, FN, TN.

    >>> confusion([1, 1, 0, 0], [1, 0, 1, 0]).tolist()
    [1, 1, 1, 1]
    """
    right, said = np.asarray(truth).astype(bool), np.asarray(predicted).astype(bool)
    if right.shape != said.shape:
        raise DataError(f"gaps: {right.shape} labels but {said.shape} predictions.")
    cells = (right & said, ~right & said, right & ~said, ~right & ~said)
    return np.asarray([cell.sum() for cell in cells], np.int64)


def rates(counts: ArrayLike) -> Floats:
    """The rates of `RATES` from counts [..., 4] (TP, FP, FN, TN); NaN where undefined.

    >>> rates([1, 1, 1, 1]).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    n = tp + fp + fn + tn
    tops = np.stack([tp, tp, 2 * tp, fp, fn, tp + tn, tp + fp], axis=-1)
    bottoms = np.stack([tp + fp, tp + fn, 2 * tp + fp + fn, fp + tn, tp + fn, n, n], axis=-1)
    out = np.full(tops.shape, np.nan)
    np.divide(tops, bottoms, out=out, where=bottoms > 0)
    return out


def group_gaps(
    truth: ArrayLike,
    predicted: ArrayLike,
    groups: Sequence[str],
    first: str,
    second: str,
    *,
    resamples: int = 2_000,
    seed: int = 0,
) -> GroupGaps:
    """Rates of two groups and their gaps with 95 % intervals and permutation p.

    Args:
        truth: 1 for the positive class (hateful), 0 otherwise.
        predicted: the classifier's 0/1.
        groups: the group of each example; others than the two named count in `all` only.
        first: group A of the gap rate(A) - rate(B).

    A rate without a bottom (a group that is absent or has one class only) is NaN with a reason. p
    is (b + 1) / (m + 1); undefined replicates are left out.
    """
    names = np.asarray(groups, dtype=object)
    right, said = np.asarray(truth), np.asarray(predicted)
    if len(names) != len(right):
        raise DataError(f"gaps: {len(right)} labels but {len(names)} group names.")
    counts = np.stack([confusion(right[names == g], said[names == g]) for g in (first, second)])
    values = rates(counts)
    rng = np.random.default_rng(seed)
    drawn = _bootstrap(rng, counts, resamples)
    null = _permuted(rng, counts, resamples)
    gaps = []
    for k, metric in enumerate(RATES):
        gap = float(values[0, k] - values[1, k])
        reason = _reason(counts, values[:, k], (first, second), metric)
        gaps.append(Gap(metric, gap, *_spread(gap, drawn[:, k], null[:, k]), reason))
    described = {
        name: GroupRates(int(c.sum()), int(c[0] + c[2]), Rates.of(c))
        for name, c in zip((first, second), counts)
    }
    whole = Rates.of(confusion(right, said))
    return GroupGaps(len(right), whole, first, second, described, gaps)


def _bootstrap(rng: np.random.Generator, counts: Ints, resamples: int) -> Floats:
    if not (counts.sum(axis=1) > 1).all():
        return np.full((resamples, len(RATES)), np.nan)
    made = [rates(rng.multinomial(c.sum(), c / c.sum(), size=resamples)) for c in counts]
    return np.asarray(made[0] - made[1], np.float64)


def _permuted(rng: np.random.Generator, counts: Ints, resamples: int) -> Floats:
    """Gaps after shuffling which example belongs to which group, outcomes kept."""
    if not (counts.sum(axis=1) > 0).all():
        return np.full((resamples, len(RATES)), np.nan)
    total = counts.sum(axis=0)
    ours = rng.multivariate_hypergeometric(total, int(counts[0].sum()), size=resamples)
    return np.asarray(rates(ours) - rates(total - ours), np.float64)


def _spread(gap: float, drawn: Floats, null: Floats) -> tuple[float, float, float]:
    """Low, high and p of a gap."""
    drawn, null = drawn[np.isfinite(drawn)], null[np.isfinite(null)]
    if not np.isfinite(gap) or len(drawn) < 2 or not len(null):
        return np.nan, np.nan, np.nan
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = (np.abs(null) >= abs(gap) - 1e-12).sum()
    return float(low), float(high), float((beyond + 1) / (len(null) + 1))


def _reason(counts: Ints, values: Floats, names: tuple[str, str], metric: str) -> str | None:
    for count, value, name in zip(counts, values, names):
        if not count.sum():
            return f"no example of group '{name}'"
        if not np.isfinite(value):
            positive, negative = count[0] + count[2], count[1] + count[3]
            lacks = (
                "positive" if not positive else "negative" if not negative else "predicted positive"
            )
            return f"group '{name}' has no {lacks} example, so its {metric} is undefined"
    return None
