"""How to read who is picked first."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "selection",
        "picked more or less than by chance",
        "0: as often as chance gives; −0.5: half as often; 1: twice as often",
        low=-1,
        harm="{second}: picked first less often than {first} with the same resumes",
        margin=0.2,
        margin_why="the four-fifths rule of U.S. agencies: a selection rate of 4/5",
        told=" ({about}): {size} % from an even share",
        scale="{size} %",
        per=100,
    ),
    MetricCard(
        "smallest_ratio",
        "smallest impact ratio",
        "1: all groups are picked equally often; below 1 for chance alone, so compare with its "
        "floor",
        ideal=1,
        low=0,
        high=1,
        higher_is_better=True,
    ),
    MetricCard(
        "shown_first",
        "picked because shown first",
        "share of answers for the candidate shown first; 1 / candidates: position does not matter",
        low=0,
        high=1,
    ),
)
