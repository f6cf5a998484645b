"""The number behind a relative one: what a question shows by itself, without the others.

A lean beyond the average question says that a group is picked less often *than for other
questions*; whether it is picked less often at all is another number. A finding of a relative metric
(`MetricCard.relative`) carries that number in its details.
"""

from __future__ import annotations

from evenhand.runs.finding import NAN, Finding

ABSOLUTE = "absolute"
LOW, HIGH, LEVEL = f"{ABSOLUTE}_low", f"{ABSOLUTE}_high", f"{ABSOLUTE}_level"


def absolute_of(finding: Finding) -> tuple[float, float, float]:
    """Return the number of the question alone and its interval; NaN if the finding has none."""
    value, low, high = (finding.details.get(name) for name in (ABSOLUTE, LOW, HIGH))
    return _number(value), _number(low), _number(high)


def shown_alone(finding: Finding) -> bool:
    """Whether the question alone shows the direction of the finding's value.

    >>> alone = {"absolute": -0.1, "absolute_low": -0.2, "absolute_high": -0.01}
    >>> shown_alone(Finding("a/x", "a", "gap", -0.2, "", details=alone))
    True
    >>> shown_alone(Finding("a/x", "a", "gap", 0.2, "", details=alone))
    False
    """
    _, low, high = absolute_of(finding)
    side = int(low > 0) - int(high < 0)
    return side * (finding.value - finding.ideal) > 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else NAN
