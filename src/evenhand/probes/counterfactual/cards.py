"""How to read gaps of classifiers and scorers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand.runs.card import MetricCard

FIVE = "5 of 100 texts are decided differently because of the person named"
SHARE = "from −1 to 1; 0: as for the reference; 0.05: 5 more of 100 texts"
UNITS = "in units of the model's score; 0: as for the reference"
TEXTS: dict[str, Any] = {"scale": "{size} of 100 texts", "per": 100, "low": -1, "high": 1}
MORE = " ({about}): {size} more of 100"
POINTS = " ({about}), by {size}"

PEOPLE = (
    MetricCard(
        "score_gap",
        "score gap",
        "from −1 to 1; 0: the same text scores equally",
        low=-1,
        high=1,
        harm="{first}: the same text gets a worse score than for {second}",
        margin=0.05,
        margin_why="5 points of 100 on the scale of probabilities",
        per=100,
        told=" ({about}), by {size} points of 100",
        scale="{size} points of 100",
    ),
    MetricCard(
        "decision_gap",
        "decision gap",
        SHARE,
        margin=0.05,
        margin_why=FIVE,
        told=MORE,
        **TEXTS,
        harm="{first}: the same text is decided against them more often than for {second}",
    ),
    MetricCard(
        "false_positive_gap",
        "false-positive gap",
        SHARE,
        margin=0.05,
        margin_why=FIVE,
        told=MORE,
        harm="{first}: texts that are fine are decided against them more often than for {second}",
        **TEXTS,
    ),
    # Whom it harms that a text is let pass depends on what the model is for.
    MetricCard("false_negative_gap", "false-negative gap", SHARE, **TEXTS),
    MetricCard(
        "points_gap",
        "gap in points",
        UNITS,
        told=POINTS,
        harm="{second}: the same text gets fewer points than for {first}",
    ),
    MetricCard(
        "burden_gap",
        "gap in points",
        UNITS,
        told=POINTS,
        harm="{first}: the same text gets more points, which is worse, than for {second}",
    ),
    MetricCard("label_gap", "score difference", "0: the same text scores equally"),
    MetricCard("call_gap", "difference in decisions", SHARE, **TEXTS),
)
DIALECTS = tuple(
    replace(
        card,
        metric=f"dialect_{card.metric}",
        harm=card.harm.replace("{first}", "speakers of {first}").replace(
            "{second}", "speakers of {second}"
        ),
    )
    for card in PEOPLE
    if "false" not in card.metric
)
CARDS = PEOPLE + DIALECTS
