"""Crossed variance: equal to textbook tests where there is one, calibrated where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import DataError
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg


def test_disjoint_pairs_are_the_one_sample_t_test() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.3, 1.0, 17)
    found = Design([Factor(np.arange(17)), Factor(np.arange(17))]).estimate(values)
    oracle = stats.ttest_1samp(values, 0.0)
    low, high = oracle.confidence_interval(0.95)
    assert found.value == pytest.approx(values.mean(), abs=1e-12)
    assert (found.p, found.low, found.high) == pytest.approx((oracle.pvalue, low, high), rel=1e-9)
    assert found.freedom == pytest.approx(16)


def test_two_groups_of_names_are_the_pooled_t_test() -> None:
    rng = np.random.default_rng(4)
    one, two = rng.normal(0.5, 1, 12), rng.normal(0, 1, 9)
    group = np.repeat([0, 1], [12, 9])
    fixed = np.eye(2)[group]
    found = Design([Factor(np.arange(21))], fixed, [1.0, -1.0]).estimate(np.r_[one, two])
    oracle = stats.ttest_ind(one, two)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-9)


def test_a_complete_table_is_the_two_way_analysis_of_variance() -> None:
    rng = np.random.default_rng(5)
    rows, columns = 7, 5
    table = rng.normal(size=(rows, 1)) + rng.normal(size=(1, columns))
    table = table + rng.normal(0, 0.5, (rows, columns))
    codes = np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)
    found = Design([Factor(c) for c in codes]).estimate(table.ravel())
    mean = table.mean()
    by_row, by_column = table.mean(1), table.mean(0)
    ms_a = columns * ((by_row - mean) ** 2).sum() / (rows - 1)
    ms_b = rows * ((by_column - mean) ** 2).sum() / (columns - 1)
    rest = table - by_row[:, None] - by_column[None] + mean
    ms_e = (rest**2).sum() / ((rows - 1) * (columns - 1))
    assert found.error**2 == pytest.approx((ms_a + ms_b - ms_e) / (rows * columns), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("full", (1, 1, 1)), ("full", (1, 0, 1)), ("sparse", (1, 1, 1)), ("drawn", (1, 1, 1))],
)
def test_fair_models_with_name_effects_are_called_different_in_five_of_a_hundred(
    kind: str, scale: tuple[float, float, float]
) -> None:
    rng = np.random.default_rng(11)
    i = j = 12
    if kind == "full":
        a, b = np.repeat(np.arange(i), j), np.tile(np.arange(j), i)
    elif kind == "sparse":
        a = np.repeat(np.arange(i), 3)
        b = (a + np.tile(np.arange(3), i)) % j
    else:
        a, b = np.divmod(rng.choice(i * j, 40, replace=False), j)
    design = Design([Factor(a), Factor(b)])
    draws = 2_000
    values = scale[0] * rng.normal(size=(i, draws))[a] + scale[1] * rng.normal(size=(j, draws))[b]
    values += scale[2] * rng.normal(size=(len(a), draws))
    found = design.estimates(values)
    alarms = np.mean([e.p <= 0.05 for e in found])
    covered = np.mean([e.low <= 0 <= e.high for e in found])
    assert alarms <= 0.065
    assert 0.935 <= covered <= 0.99
    # What the design calls detectable is detected in about 80 of 100 runs.
    size = float(np.median([e.detectable for e in found]))
    power = np.mean([e.p <= 0.05 for e in design.estimates(values + size)])
    assert 0.7 <= power <= 0.9


def test_signed_factors_share_a_situation_between_two_groups() -> None:
    rng = np.random.default_rng(12)
    names, situations, draws = 20, 6, 1_500
    name = np.repeat(np.arange(2 * names), situations)
    situation = np.tile(np.arange(situations), 2 * names)
    sign = np.where(name < names, 0.5, -0.5)
    fixed = np.eye(2)[(name >= names).astype(int)]
    design = Design([Factor(name), Factor(situation), Factor(situation, sign)], fixed, [1.0, -1.0])
    lean = rng.normal(size=(situations, draws))
    values = (
        rng.normal(size=(2 * names, draws))[name] + rng.normal(size=(situations, draws))[situation]
    )
    values += sign[:, None] * lean[situation] + rng.normal(size=(len(name), draws))
    found = design.estimates(values)
    assert np.mean([e.p <= 0.05 for e in found]) <= 0.065


def test_no_factor_is_refused() -> None:
    with pytest.raises(DataError, match="factors"):
        Design([])


def test_tails_are_fine_enough_for_a_family_of_thousands() -> None:
    """Two leans of 0.30 among 2,400 tests over 40 pairs are found, and with a q far below 0.05."""
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.02, (40, 2_400))
    values[:, :2] += 0.3
    pairs = Design([Factor(np.arange(40)), Factor(np.arange(40))])
    q = benjamini_hochberg([e.p for e in pairs.estimates(values)])
    assert (q[:2] < 1e-20).all()
    assert (q[2:] > 0.05).all()


@pytest.mark.parametrize(("levels", "each"), [(8, 4), (5, 1), (12, 10)])
def test_one_factor_of_equal_levels_is_the_t_test_over_their_means(levels: int, each: int) -> None:
    """Also where levels differ less than chance lets them, when their component is negative."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(levels), each)
    design = Design([Factor(codes)])
    for _ in range(20):
        y = rng.normal(0.3, 1, len(codes))
        found = design.estimate(y)
        means = y.reshape(levels, each).mean(axis=1)
        assert found.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
        assert found.freedom == pytest.approx(levels - 1)


def test_one_factor_of_equal_levels_in_two_groups_is_the_t_test_of_two_samples() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(24), 10)
    sides = np.stack([codes < 12, codes >= 12], axis=1).astype(float)
    y = rng.normal(size=240)
    found = Design([Factor(codes)], sides, [1.0, -1.0]).estimate(y)
    means = y.reshape(24, 10).mean(axis=1)
    assert found.p == pytest.approx(stats.ttest_ind(means[:12], means[12:]).pvalue)


def test_levels_of_unlike_size_keep_their_components_from_being_negative() -> None:
    codes = np.repeat(np.arange(8), [2, 2, 2, 2, 2, 2, 2, 40])
    design = Design([Factor(codes)])
    rng = np.random.default_rng(2)
    assert np.mean([design.estimate(rng.normal(size=54)).p <= 0.05 for _ in range(300)]) <= 0.06


def test_few_names_among_many_hold_the_degrees_of_freedom() -> None:
    rng = np.random.default_rng(9)
    one, two = np.divmod(np.arange(4 * 20), 20)
    y = rng.normal(size=(4, 600))[one] + rng.normal(size=(20, 600))[two]
    y += rng.normal(0, 0.5, (80, 600))
    sampled = [Factor(one), Factor(two)]
    loose, held = Design(sampled), Design(sampled, held=True)
    p = [np.asarray([e.p for e in d.estimates(y)]) for d in (loose, held)]
    assert max(e.freedom for e in held.estimates(y)) <= 4.5
    assert (p[1] >= p[0]).all()
    assert (p[1] <= 0.005).mean() < 0.01 < (p[0] <= 0.005).mean()
    many = [Factor(two), Factor(two[::-1])]
    assert Design(many, held=True).fewest is None
