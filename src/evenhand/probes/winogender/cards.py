"""How to read the relation of pronouns with shares of women."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "spearman",
        "rank correlation",
        "from −1 to 1; 0: no relation",
        low=-1,
        high=1,
        harm="those who are rare in their line of work: taken for the other gender",
        margin=0.3,
        margin_why="a medium correlation by Cohen's convention",
        told=": the pronouns follow the shares of women with a rank correlation of {size}",
    ),
)
