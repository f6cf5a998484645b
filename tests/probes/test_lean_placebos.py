"""Placebos of leans are judged by the very test of the findings, also where it is done at once."""

from __future__ import annotations

import numpy as np

from evenhand.probes.underspecified.leans import PairTable, _disjoint_halves, halves
from evenhand.stats.mixed import Design, Factor

PAIRS, SPLITS = 14, 30


def table(seed: int) -> PairTable:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(PAIRS, 5)) + rng.normal(size=(PAIRS, 1))
    return PairTable(values, np.arange(PAIRS), 100 + np.arange(PAIRS), np.zeros((PAIRS, 5), int))


def test_disjoint_pairs_give_the_alarms_of_the_crossed_design() -> None:
    made = table(0)
    tests, alarms = _disjoint_halves(made.contrasts, np.random.default_rng(3), SPLITS)
    sides = np.random.default_rng(3).permuted(
        np.tile(np.arange(PAIRS) < PAIRS // 2, (SPLITS, 1)), axis=1
    )
    factors = [Factor(made.one), Factor(made.two)]
    p = [
        e.p
        for side in sides
        for e in Design(factors, np.eye(2)[side.astype(int)], [1.0, -1.0]).estimates(made.contrasts)
    ]
    assert tests == len(p)
    assert alarms == sum(value <= 0.05 for value in p) > 0


def test_the_rate_of_placebos_is_steady() -> None:
    rates = [halves(table(seed), "halves", seed) for seed in range(20)]
    assert 0.03 <= np.mean([p.alarms / p.tests for p in rates]) <= 0.06
    assert max(p.alarms / p.tests for p in rates) <= 0.07


def test_pairs_that_do_not_vary_raise_no_alarm() -> None:
    made = table(0)
    same = PairTable(np.tile(made.leans[:1], (PAIRS, 1)), made.one, made.two, made.cells)
    assert halves(same, "halves", 0).alarms == 0
