"""What a question shows by itself, for findings whose value compares it with other questions.

The interval holds for all questions together (Bonferroni): whichever of them are picked for a
statement about their direction, a statement is wrong in at most 5 of 100 runs.
"""

from __future__ import annotations

from evenhand.runs.absolute import ABSOLUTE, HIGH, LEVEL, LOW
from evenhand.stats.estimate import Estimate, stated


def simultaneous(found: Estimate, questions: int, rate: float = 0.05) -> Estimate:
    """Widen an interval so that those of all questions hold together in all but `rate` of runs.

    >>> from evenhand.stats.estimate import estimate
    >>> e = simultaneous(estimate(0.1, 0.04, 39, units=40), 12)
    >>> round(e.level, 4), e.low < 0 < e.high
    (0.9958, True)
    """
    return found.at(1 - rate / max(1, questions))


def absolute_details(found: Estimate) -> dict[str, float]:
    """Return a number and its interval under the names that findings have for them."""
    return {
        ABSOLUTE: stated(found.value),
        LOW: stated(found.low),
        HIGH: stated(found.high),
        LEVEL: stated(found.level),
    }
