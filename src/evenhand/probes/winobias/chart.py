"""Shifts of pronouns, by kind of sentence."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "scores": Ranked(
        "WinoBias: pronouns and occupations",
        "shift of the pronoun's log-odds towards the stereotype (nats)",
        "Right of the dashed line, pronouns follow the stereotypes of occupations. Bars are 95 % "
        "intervals over occupations.",
        lambda r: str(r["kind"]),
    ),
}
