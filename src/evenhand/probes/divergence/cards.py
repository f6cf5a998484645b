"""How to read distances between next-word distributions; none has a direction."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "hellinger2", "shift of the next word",
        "squared Hellinger distance; 0: same predictions; 1: no overlap", low=0, high=1,
    ),
    MetricCard(
        "hellinger2_ratio", "times a neutral swap",
        "1: no further than a neutral change of words; 2: twice as far", ideal=1, low=0,
    ),
    MetricCard(
        "hellinger", "hellinger", "Hellinger distance; 0: same predictions; 1: no overlap", low=0,
        high=1,
    ),
)  # fmt: skip
