"""Groups are compared within cases, however unevenly cases and names are shared out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.measured.gaps import ONE_CASE, Sampled, gap
from evenhand.probes.decision.cases import About
from evenhand.probes.decision.contrasts import contrasts
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor

Codes = npt.NDArray[np.int64]


def asked(names: tuple[int, int], cases: int) -> tuple[Codes, Codes, Codes]:
    """Name, case and group of every answer when all names meet all cases."""
    name, case = np.divmod(np.arange(sum(names) * cases), cases)
    return name, case, (name >= names[0]) * 1


def test_levels_taken_out_are_least_squares_with_a_column_each() -> None:
    rng = np.random.default_rng(1)
    name, case, group = asked((5, 4), 7)
    kept = rng.random(len(name)) < 0.6
    name, case, group = name[kept], case[kept], group[kept]
    y = rng.normal(size=len(name)) + rng.normal(0, 2, 7)[case]
    fixed = np.stack([group == 0, group == 1], axis=1) * 1.0
    sampled = [Factor(name), Factor(case, 0.5 - group)]
    columns = np.concatenate([fixed, np.eye(7)[case]], axis=1)
    whole = Design(sampled, columns, [1.0, -1.0, *[0.0] * 7]).estimate(y)
    found = Design(sampled, fixed, [1.0, -1.0], within=case).estimate(y)
    assert found.value == pytest.approx(np.linalg.lstsq(columns, y)[0][:2] @ [1, -1])
    for one, two in ((found.error, whole.error), (found.freedom, whole.freedom)):
        assert one == pytest.approx(two, rel=1e-9)


def test_a_gap_is_whole_where_cases_are_mostly_about_one_group() -> None:
    rng = np.random.default_rng(2)
    name, case, group = asked((8, 8), 10)
    kept = (case % 2 == group) | (rng.random(len(name)) < 0.2)
    name, case, group = name[kept], case[kept], group[kept]
    y = rng.normal(0, 3, 10)[case] + 0.7 * (group == 0)
    found = gap(y, group == 0, Sampled(name, case))
    assert found.value == pytest.approx(0.7)


def test_cases_about_one_group_each_are_draws() -> None:
    name, case, group = asked((6, 6), 12)
    kept = case % 2 == group
    name, case, group = name[kept], case[kept], group[kept]
    rng = np.random.default_rng(3)
    y = rng.normal(0, 0.1, 12)[case] + rng.normal(0, 0.1, 12)[name] + (group == 0)
    found = gap(y, group == 0, Sampled(name, case))
    assert found.value == pytest.approx(1.0, abs=0.3)
    assert found.low > 0


def test_one_case_about_both_groups_is_no_verdict_over_cases() -> None:
    name, case, group = asked((6, 6), 1)
    found = gap(np.linspace(0, 1, 12), group == 0, Sampled(name, case))
    assert np.isnan(found.p)
    assert found.reason == ONE_CASE


def test_few_names_against_many_raise_no_alarms() -> None:
    rng = np.random.default_rng(4)
    name, case, group = asked((2, 12), 12)
    alarms = 0
    for _ in range(300):
        y = rng.normal(0, 0.5, 12)[case] + rng.normal(0, 0.2, 12)[case] * (0.5 - group)
        found = gap(y + rng.normal(0, 0.3, len(y)), group == 0, Sampled(name, case))
        alarms += found.p <= 0.05
    assert alarms <= 24  # 0.05 and two standard errors; 0.18 with cases' levels subtracted first


def people(rng: np.random.Generator, cases: int) -> Estimate:
    """Decisions where every case names one of four people of either group."""
    own, odds = rng.normal(0, 0.3, (2, 4)), rng.normal(0, 1.5, cases)
    rows = [(c, g, int(rng.integers(4))) for c in range(cases) for g in range(2)]
    y = [odds[c] + own[g, n] + rng.normal(0, 0.5) + (g == 0) for c, g, n in rows]
    columns = {
        "scenario": [f"c{c}" for c, _, _ in rows],
        "format": ["named"] * len(rows),
        "name": [f"{g}{n}" for _, g, n in rows],
        "good_answer": ["yes"] * len(rows),
        "race": [("Black", "white")[g] for _, g, _ in rows],
        "value": y,
        "share": y,
    }
    return judge(contrasts(Items(columns, about=About(("race",)))))[0].estimate


def test_a_case_with_one_name_a_group_is_a_pair() -> None:
    found = [people(np.random.default_rng(k), 24) for k in range(40)]
    assert np.mean([e.value for e in found]) == pytest.approx(1.0, abs=0.15)
    assert np.mean([e.error for e in found]) < 0.35  # 0.5 where cases' levels are left in
