"""How to read effect sizes of association tests."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

NEARER = "words for {first} lie nearer to the first attribute, and words for {second} to the second"
COHEN = "half a standard deviation, a medium effect by Cohen's convention"
APART = ": {size} standard deviations apart (0.8 is called large, 2 is the most)"

EFFECT_SIZE = MetricCard(
    "effect_size",
    "effect size d",
    "from −2 to 2; 0: no association",
    low=-2,
    high=2,
    difference=NEARER,
    margin=0.5,
    margin_why=COHEN,
    told=APART,
    scale="{size} standard deviations",
)
CARDS = (EFFECT_SIZE,)
