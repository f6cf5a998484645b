"""How to read what vectors of names give away: whoever has such a name can be told by it."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "accuracy",
        "accuracy",
        "0 to 1; what permuted groups give: names tell nothing",
        ideal=0.5,
        low=0,
        high=1,
        margin=0.1,
        margin_why="10 more of 100 names than permuted groups give",
        harm="those named: their group can be read from the vector of their name, and whatever is "
        "built on it can treat them by it",
        told=" ({about}): of 100 names, {size} more than by chance",
        scale="{size} of 100",
        per=100,
    ),
)
