"""A few that came out alike are no proof that all would: rare outcomes, groups of unlike size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.measured.gaps import Sampled, gap
from evenhand.stats.clustered_means import Cells
from evenhand.stats.estimate import Estimate

FEW, MANY = 10, 500


def alarms(draw: Callable[[np.random.Generator], Estimate], runs: int = 300) -> float:
    """The share of fair tables in which something is found."""
    found = [draw(np.random.default_rng([7, k])).p for k in range(runs)]
    return float(np.mean([p <= 0.05 for p in found]))


@pytest.mark.parametrize("share", [0.02, 0.05, 0.97])
@pytest.mark.parametrize("few", [FEW, 20])
def test_no_gap_is_found_because_a_rare_outcome_is_missing_from_a_small_group(
    share: float, few: int
) -> None:
    first = np.arange(few + MANY) < few

    def draw(rng: np.random.Generator) -> Estimate:
        return gap((rng.random(len(first)) < share).astype(float), first, Sampled())

    assert alarms(draw) <= 0.08


def test_nor_is_one_of_names_that_were_asked_several_times() -> None:
    names = np.repeat(np.arange(6 + 60), 3)

    def draw(rng: np.random.Generator) -> Estimate:
        kind = rng.normal(0, 0.02, 66)[names]
        answers = rng.random(len(names)) < np.clip(0.03 + kind, 0, 1)
        return gap(answers.astype(float), names < 6, Sampled(names=names))

    assert alarms(draw) <= 0.08


def test_nor_one_of_ratings_that_happen_to_be_the_same() -> None:
    """Five stars in 97 of 100 cases: a small group often has nothing else."""
    first = np.arange(FEW + MANY) < FEW

    def draw(rng: np.random.Generator) -> Estimate:
        return gap(5.0 - rng.integers(1, 4, len(first)) * (rng.random(len(first)) < 0.03), first,
                   Sampled())  # fmt: skip

    assert alarms(draw) <= 0.08


def test_common_outcomes_are_judged_as_before() -> None:
    values = np.tile([0.0, 1.0, 1.0, 0.0, 1.0], 20)
    cells = Cells.of(values, np.arange(100), np.arange(100) < 60)
    way = np.asarray([1.0, -1.0])
    plain, known = cells.estimate(way), cells.estimate(way, bounds=(0.0, 1.0))
    assert known.error == pytest.approx(plain.error, rel=0.005)
    two = [values[60:].var(ddof=1) / 40, values[:60].var(ddof=1) / 60]
    assert plain.error**2 == pytest.approx(sum(two))


def test_a_gap_between_a_small_group_and_a_large_one_is_still_found() -> None:
    first = np.arange(30 + MANY) < 30
    values = np.where(first, np.arange(len(first)) % 2, np.arange(len(first)) % 20 == 0)
    found = gap(values.astype(float), first, Sampled())
    assert found.value == pytest.approx(0.45)
    assert found.p < 1e-3


def test_one_name_a_group_is_no_sample_of_names() -> None:
    names = np.repeat([0, 1], 5)
    found = gap(np.tile([0.0, 1.0], 5), names == 0, Sampled(names=names))
    assert np.isnan(found.p)
    assert "one cluster" in found.reason
