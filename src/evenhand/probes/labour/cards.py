"""How to read calibration lines."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

GAP = "{size} of the labour market's gap"
CARDS = (
    MetricCard(
        "labour_slope",
        "follows the labour market",
        "0: occupations are alike; 1: they differ as in the labour market; above 1: they differ "
        "more",
        harm="those who are rare in an occupation: the model does not think of them in it",
        margin=0.2,
        margin_why="a fifth of the labour market's gap",
        told=" ({about}): " + GAP,
        scale=GAP,
    ),
    MetricCard(
        "labour_height",
        "“he” where both work equally often",
        "log odds; 0: “he” as likely as “she” for an occupation that men and women hold equally "
        "often",
        "log odds",
        margin=0.2,
        margin_why="the odds of “he” against “she” change by a fifth",
        harm="{second}: taken for {first} in occupations that both hold equally often",
        told=", at {size} times the odds",
        scale="{size} times the odds",
        odds=True,
    ),
    MetricCard(
        "amplification",
        "beside the labour market",
        "1: differences as large as there; above 1: amplified",
        ideal=1,
    ),
)
