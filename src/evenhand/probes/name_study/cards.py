"""How to read what vectors of names give away; it has no direction."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "accuracy", "accuracy", "0 to 1; what permuted groups give: names tell nothing", ideal=0.5,
        low=0, high=1,
    ),
)  # fmt: skip
