"""Does the model still do what it is asked to do? A gap that it no longer shows may be no gain.

Order, negation, mass on the options, the task: each is a mean over items, before and after on the
same ones. With d the distance of a mean from its ideal,

    worse = d(after) - d(before)

has an interval over whatever was sampled (names, questions, texts), and a margin that is stated.
Of answers that are right or wrong, none of which turned, some may still do so elsewhere: n units
that are alike leave 1 - .025^(1/n) open, so that a margin of .05 takes 72 of them. It stands when
the whole interval lies below the margin; it is broken when it became worse beyond
chance and by more than the margin; anything else is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.audit.comparison.items import Codes, Floats, changes, sampled
from evenhand.errors import DataError
from evenhand.probes.base import Behaviour, Probe
from evenhand.runs.wording import number
from evenhand.stats.estimate import Estimate, alike

PAIRED = "the same items before and after; Satterthwaite t"
STANDS, BROKEN, UNCLEAR = "stands", "broken", "not shown to stand"


@dataclass(frozen=True)
class Standing:
    """One asked behaviour before and after.

    Attributes:
        what: in words.
        before, after: means over the items known both times.
        worse: how much further from its ideal (or, `relative`, which share of it was lost).
        margin: how much is allowed.
        probe: the part of the suite that asked, or empty for a task.
    """

    what: str
    before: float
    after: float
    worse: Estimate
    margin: float
    probe: str = ""
    relative: bool = False
    n: int = 0

    @property
    def verdict(self) -> str:
        if self.worse.value > self.margin and self.worse.low > 0:
            return BROKEN
        return STANDS if self.worse.high <= self.margin else UNCLEAR

    @property
    def sentence(self) -> str:
        size = (lambda x: f"{100 * x:.0f} %") if self.relative else number
        return (
            f"{self.what[0].upper()}{self.what[1:]}: {number(self.before)} before, "
            f"{number(self.after)} after (worse by {size(self.worse.value)}, 95 % interval "
            f"{size(self.worse.low)} to {size(self.worse.high)}; margin {size(self.margin)}): "
            f"{self.verdict}."
        )

    def as_row(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return {
            "what": self.what,
            "probe": self.probe,
            "before": self.before,
            "after": self.after,
            "worse": self.worse.value,
            "low": self.worse.low,
            "high": self.worse.high,
            "p": self.worse.p,
            "margin": self.margin,
            "relative": self.relative,
            "n": self.n,
            "verdict": self.verdict,
        }


def standing(
    before: Behaviour, after: Behaviour, factors: Sequence[Codes] = (), probe: str = ""
) -> Standing:
    """One behaviour, item by item.

    Args:
        before, after: values of the same items.
        factors: which level of each sampled factor an item has; by default items are the sample.
        probe: the part of the suite that asked.

    >>> one, two = (Behaviour("right", np.tile(v, 10), 0.05) for v in ([1, 1, 0], [1, 0, 0]))
    >>> found = standing(one, two)
    >>> round(found.worse.value, 3), found.verdict
    (0.333, 'broken')
    """
    if len(before.values) != len(after.values):
        raise DataError(f"{before.what}: different items after than before.")
    known = np.isfinite(before.values) & np.isfinite(after.values)
    one, two = before.values[known], after.values[known]
    share = np.ones(len(one)) if before.weights is None else before.weights[known]
    share = share / share.mean() if len(share) else share
    was, now = (float((v * share).mean()) if len(v) else float("nan") for v in (one, two))
    worse = (_distances(two, now, before) - _distances(one, was, before)) * share
    worse = worse / abs(was) if before.relative and was else worse
    codes = [codes[known] for codes in factors] or [np.arange(len(worse))]
    found = Estimate(float("nan"), reason="fewer than two items are known")
    if len(worse) > 1:
        found = changes(worse[:, None], codes)[0]
        if not worse.any() and np.isin((one, two), (0.0, 1.0)).all():
            found = _none_turned(found)
    return Standing(before.what, was, now, found, before.margin, probe, before.relative, len(worse))


def standings(label: str, probe: Probe, tables: tuple[pa.Table, pa.Table]) -> Iterator[Standing]:
    """Every behaviour that a probe's items speak of, over what was sampled."""
    shape = probe.item_shape
    factors = sampled(tables[0], shape.clusters if shape else ())
    for one, two in zip(*(probe.behaviours(t) for t in tables)):
        yield standing(one, two, factors, label)


def _none_turned(found: Estimate) -> Estimate:
    """The interval of units of which none turned from right to wrong or back."""
    reach = alike(found.units, 1.0)
    return replace(found, low=found.value - reach, high=found.value + reach)


def _distances(values: Floats, mean: float, asked: Behaviour) -> Floats:
    """What each item adds to the distance of the mean from the ideal."""
    if np.isinf(asked.ideal):
        return -values if asked.ideal > 0 else values
    return (values - asked.ideal) * (1.0 if mean >= asked.ideal else -1.0)
