"""Effect sizes combined over contexts."""

from __future__ import annotations

from evenhand.charts.builders import NEARER, Ranked, sets_of

CHARTS = {
    "tests": Ranked("Word associations over contexts", "combined effect size", NEARER, sets_of),
}
