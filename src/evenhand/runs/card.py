"""Metric cards: what a number is called, how to read it, whom it harms and what size matters.

A probe declares the cards of its metrics; report, viewer, terminal, exports and gate read them
and know no metric by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan


@dataclass(frozen=True)
class MetricCard:
    """A metric as people read it.

    Attributes:
        metric: its name in findings, e.g. `gamma`.
        name: what it is called in a table.
        reads: how to read a value: range, ideal, what the ends mean.
        unit: what one unit is ("" for a pure number).
        ideal: the value of a model without a preference.
        low, high: the range a value can have.
        higher_is_better: None where distance from the ideal counts.
        harm: who is worse off, and in which way, when the value is positive (of `groups[0]`,
            `groups[1]`, written {first} and {second}); "" for a difference without direction.
        margin: the distance from the ideal that matters (NaN: none is set).
        margin_why: where that size comes from.
    """

    metric: str
    name: str
    reads: str = ""
    unit: str = ""
    ideal: float = 0.0
    low: float = -inf
    high: float = inf
    higher_is_better: bool | None = None
    harm: str = ""
    margin: float = nan
    margin_why: str = ""


def plain_card(metric: str) -> MetricCard:
    """The card of a metric that nobody described.

    >>> plain_card("log_odds").name
    'log odds'
    """
    return MetricCard(metric, metric.replace("_", " "))
