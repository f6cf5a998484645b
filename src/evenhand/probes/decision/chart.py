"""Decisions by group."""

from __future__ import annotations

from evenhand.charts.builders import Listed, Ranked

CHARTS = {
    "contrasts": Ranked(
        "Decisions about the same cases",
        "in favour of the group, beyond its reference",
        "Right of the dashed line, decisions go better for the group than for its reference, left "
        "of it worse. Bars are 95 % intervals over cases (and names).",
        lambda r: f"{r['group']} against {r['reference']} ({r['format']})",
    ),
    "groups": Listed(
        "Of 100 decisions, how many go well", "Mean probability of the answer that is good for the "
        "person, over all cases.", ("format", "factor", "group", "good_of_100", "n"),
    ),
}  # fmt: skip
