"""Metric cards: what a number is called, how to read it, whom it harms and what size matters.

A probe declares the cards of its metrics; report, viewer, terminal, exports and gate read them
and know no metric by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, nan, tanh


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
        harm: who is worse off, and in which way, when the value is positive ("{first}: ...", of
            `groups[0]` and `groups[1]`, written {first} and {second}); "" for a difference without
            direction.
        difference: what a detected difference says where nobody is shown to be worse off, with
            {first} and {second} as in `harm`.
        relative: the value compares a question with others (the average question, the negated
            one), so that the harm is said only where the question alone shows it: where the
            interval of `details["absolute"]` lies on the side of the value (`runs.absolute`).
        margin: the distance from the ideal that matters (NaN: none is set).
        margin_why: where that size comes from.
        told: how the size of a harm is told to a reader without statistics, right after the harm:
            {size} on the scale that can be pictured, {about} what the findings are about.
        told_absolute: of a relative metric, how both sizes of a harm are told: {absolute} and
            {absolute_interval} are those of the question alone.
        scale: a size alone on that scale, e.g. "{size} of 100".
        per: what one unit of the value is on that scale.
        odds: the value is a difference of log-odds, and the scale a factor of the odds.
        even: the value is a difference of log-odds, and the scale how many of 100 cases that could
            go either way.
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
    difference: str = ""
    relative: bool = False
    margin: float = nan
    margin_why: str = ""
    told: str = " ({about}): {size}"
    told_absolute: str = ""
    scale: str = "{size}"
    per: float = 1.0
    odds: bool = False
    even: bool = False

    def on_scale(self, distance: float) -> float:
        """A distance from the ideal on the scale that can be pictured; odds of even are 1."""
        if self.even:
            return 50 * tanh(distance / 2)
        return exp(min(distance, 700.0)) if self.odds else self.per * distance

    def pictured(self, distance: float) -> str:
        """The same as text.

        >>> MetricCard("gap", "gap", per=50).pictured(0.029)
        '1.5'
        >>> MetricCard("tilt", "tilt", odds=True).pictured(1.889), plain_card("g").pictured(-0.02)
        ('6.6', '−0.02')
        >>> MetricCard("tilt", "tilt", odds=True).pictured(0.03)
        '1.03'
        >>> MetricCard("gap", "gap", even=True).pictured(0.2)
        '5.0'
        """
        size = self.on_scale(distance)
        far = abs(size)
        if self.odds and 0.8 < far < 1.195:  # near even, where one decimal says nothing
            return f"{far:.2f}"
        text = f"{far:,.0f}" if far >= 9.95 else f"{far:.1f}" if far >= 0.095 else f"{far:.1g}"
        return f"−{text}" if size < 0 and text.strip("0.") else text


def plain_card(metric: str) -> MetricCard:
    """The card of a metric that nobody described.

    >>> plain_card("log_odds").name
    'log odds'
    """
    return MetricCard(metric, metric.replace("_", " "))
