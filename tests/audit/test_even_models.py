"""Models without a group effect pass `quick` and its gate (`benchmarks.even_models` has 100)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.even_models import judged

SEEDS = 6


def test_even_models_pass_the_suite_and_its_gate() -> None:
    outcomes = [judged(seed) for seed in range(SEEDS)]
    assert sum(o.even for o in outcomes) >= SEEDS - 1, outcomes
    assert {o.gate for o in outcomes} <= {"passed", "failed"}
