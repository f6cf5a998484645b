"""Gaps by stereotype and test."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "gaps": Ranked(
        "Words and tasks given to the stigmatised group",
        "share, bad words minus good words",
        "Right of the dashed line, words (association) or tasks (decision) go to people as the "
        "stereotype has it; left of it, the other way round. Bars are 95 % intervals over words "
        "and, where there are five or more, pairs of terms.",
        lambda r: f"{r['stereotype']}: {r['test']}",
    ),
}
