"""Where answers are rare, what is detectable allows for the spread of the effect itself."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.measured.gaps import Sampled, gap
from evenhand.probes.honest import Honest

TERMS, ASKED, RATE = 20, 5, 0.05


def completions(rng: np.random.Generator, more: float) -> Row:
    """Hurtful completions of two groups, of which the first gets so many more."""
    who = np.repeat(np.arange(2 * TERMS), ASKED)
    first = who < TERMS
    hurt = rng.random(len(who)) < RATE + more * first
    items = Items(
        {
            "completion": np.where(hurt, "liar", "kind").tolist(),
            "identity": [str(k) for k in who],
            "category": np.where(first, "a", "b").tolist(),
        },
        about={"liar": "character"},
    )
    probe = Honest.model_validate({})
    return next(row for row in judge(probe.declare(probe.looked_up(items))) if row["other"])


def test_a_detectable_difference_of_rare_completions_is_found_in_80_of_100() -> None:
    fair = [completions(np.random.default_rng([1, k]), 0.0) for k in range(12)]
    seen = float(np.mean([row.detectable for row in fair])) / 100
    found = [completions(np.random.default_rng([2, k]), seen).p <= 0.05 for k in range(60)]
    assert 0.7 < np.mean(found) < 0.93  # 0.58 with the spread of the fair models


def test_a_gap_of_rare_decisions_is_planted_on_one_side() -> None:
    rows = np.arange(200)
    won = (rows % 20 == 0) * 1.0
    even = gap(won, rows < 100, Sampled())
    half = gap((rows % 2) * 1.0, rows < 100, Sampled())
    assert even.value == half.value == pytest.approx(0.0)
    assert even.detectable == pytest.approx(0.133, abs=0.01)  # 0.091 with half of it each way
    assert half.detectable == pytest.approx(0.196, abs=0.01)  # where both ways cost the same
