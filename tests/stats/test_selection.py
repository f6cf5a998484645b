"""One error rate over a suite; intervals of what was picked."""

from __future__ import annotations

import numpy as np

from evenhand.stats.estimate import estimate
from evenhand.stats.selection import hierarchical, picked_level


def test_an_even_suite_is_called_even_in_95_of_100() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(1_000):
        suite = [rng.uniform(size=12), rng.uniform(size=30), rng.uniform(size=5)]
        alarms += any((f.q <= 0.05).any() for f in hierarchical(suite))
    assert alarms / 1_000 <= 0.065


def test_q_and_the_interval_of_picked_findings_agree() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = rng.normal(rng.choice([0.0, 2.5], 20), 1.0)
        found = [estimate(v, 1.0, 30) for v in values]
        (family,) = hierarchical([[e.p for e in found]])
        picked = family.q <= 0.05
        level = picked_level(int(picked.sum()), len(found))
        for e, one in zip(found, picked):
            if one:
                shown = e.at(level)
                assert not shown.low <= 0 <= shown.high


def test_undefined_tests_do_not_count() -> None:
    one, two = hierarchical([[0.001, np.nan], [np.nan]])
    assert one.q[0] <= 0.05
    assert np.isnan(one.q[1])
    assert not two.kept
