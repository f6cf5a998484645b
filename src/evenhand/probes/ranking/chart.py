"""Rates and ratios by group, beside what chance gives."""

from __future__ import annotations

from evenhand.charts.builders import Listed, Ranked

CHARTS = {
    "selections": Ranked(
        "Who is picked first",
        "picked more (right) or less than chance gives",
        "0: as often as chance gives; −0.5: half as often; 1: twice as often. Bars are 95 % "
        "intervals over names.",
        lambda r: f"{r['group']} ({r['stratum']})",
    ),
    "rates": Listed(
        "Selection rates and impact ratios",
        "Ratio to the best group of a job. A ranker that does not look at groups has a smallest "
        "ratio below the floor in 5 of 100 such audits.",
        ("stratum", "group", "n", "rate", "ratio", "ratio_low", "ratio_high", "floor"),
    ),
    "positions": Listed(
        "Picked by place",
        "Share of runs won by the applicant shown there.",
        ("stratum", "position", "rate"),
    ),
}
