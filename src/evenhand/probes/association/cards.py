"""How to read effect sizes of association tests."""

from __future__ import annotations

from evenhand.runs.card import MetricCard

NEARER = "{first}: placed nearer to the first attribute than {second}"
COHEN = "half a standard deviation, a medium effect by Cohen's convention"

EFFECT_SIZE = MetricCard(
    "effect_size", "effect size d", "from −2 to 2; 0: no association", low=-2, high=2, harm=NEARER,
    margin=0.5, margin_why=COHEN,
)  # fmt: skip
CARDS = (EFFECT_SIZE,)
