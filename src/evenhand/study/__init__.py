"""Do intrinsic metrics of word vectors predict how systems built on them treat groups?

from evenhand.study import load_recipe, run_study
run = run_study(load_recipe("kato"), out="runs/kato", data="path/to/data")
"""

from __future__ import annotations

from evenhand.study.recipe import Recipe, load_recipe
from evenhand.study.running import run_study

__all__ = ["Recipe", "load_recipe", "run_study"]
