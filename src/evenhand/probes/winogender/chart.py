"""Pronouns and shares of women, by whom the pronoun stands for."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "scores": Ranked(
        "Winogender",
        "rank correlation of “she” with the share of women",
        "Right of the dashed line, “she” is likelier where more women work. Bars are 95 % "
        "intervals over occupations.",
        lambda r: f"pronoun for: {r['refers']}",
    ),
}
