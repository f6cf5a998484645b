"""Counterfactual swaps of gender and religion, by hand tables; doubts are reported."""

from __future__ import annotations

from evenhand.words.swaps.corpus import Mined, pairs_from_texts, swap_religion
from evenhand.words.swaps.gender import Swapped, swap

__all__ = ["Mined", "Swapped", "pairs_from_texts", "swap", "swap_religion"]
