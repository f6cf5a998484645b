"""How to read effect sizes combined over contexts."""

from __future__ import annotations

from evenhand.probes.association.cards import APART, COHEN, NEARER
from evenhand.runs.card import MetricCard

CARDS = (
    MetricCard(
        "combined_effect_size",
        "combined effect size",
        "0: no association",
        difference=NEARER,
        margin=0.5,
        margin_why=COHEN,
        told=APART,
        scale="{size} standard deviations",
    ),
)
