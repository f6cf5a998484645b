"""Whom sentences are taken from, by stereotype."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "scores": Ranked(
        "GEST by stereotype",
        "log odds of “he” beyond the average stereotype",
        "Right of the dashed line, sentences of this stereotype are taken for a man's more than "
        "the average one; left of it, for a woman's. Bars are 95 % intervals over sentences "
        "(overall: over stereotypes).",
        lambda r: f"{r['stereotype']} ({r['usual']})" if r["usual"] else str(r["stereotype"]),
    ),
}
