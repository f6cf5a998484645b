"""Floors that know names: a liking for names is no preference between groups."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.metrics import unqover
from evenhand.stats import pair_network
from evenhand.stats.name_floors import DISJOINT, name_floors

METRICS = (unqover.intensity, unqover.consistency)


def network(rng: np.random.Generator, women: int, men: int, *, group: float = 0.0,
            liking: float = 0.1, disjoint: bool = False) -> pair_network.Pairs:  # fmt: skip
    """Names with likings of their own (shared and by attribute), noisy pairs, 3 templates."""
    n_attributes, n_templates = 4, 3
    first, second = (x.ravel() for x in np.indices((women, men)))
    if disjoint:
        first = second = np.arange(women)
    s = rng.normal(0, liking, (women + men, 1)) + rng.normal(0, liking / 2, (women + men, 4))
    s[:women, 0] += group
    c = (s[first] - s[women + second] + rng.normal(0, 0.02, (len(first), 4)))[:, :, None]
    c = c + rng.normal(0, 0.05, (*c.shape[:2], n_templates))
    pair, attribute, template = (x.ravel() for x in np.indices(c.shape))
    return pair_network.Pairs(
        c.ravel(), first[pair], women + second[pair], attribute, template,
        np.zeros((c.size, 3)), women + men, n_attributes, n_templates,
        np.repeat([0, 1], [women, men]),
    )  # fmt: skip


def share(runs: int, *, women: int = 8, men: int = 8, **made: float) -> np.ndarray:
    """In how many runs mu and eta have p <= 0.05."""
    rng = np.random.default_rng(4)
    p = [
        name_floors(network(rng, women, men, **made), METRICS, samples=99, seed=k).p
        for k in range(runs)
    ]
    return np.asarray((np.asarray(p) <= 0.05).mean(axis=0))


@pytest.mark.parametrize(("women", "men"), [(8, 8), (5, 12)])
def test_likings_for_names_are_not_above_the_floor(women: int, men: int) -> None:
    assert (share(200, women=women, men=men) <= 0.09).all()  # 0.05 + 2.6 standard errors


def test_flips_of_pairs_would_take_every_liking_for_a_preference() -> None:
    rng = np.random.default_rng(4)
    p = [
        pair_network.noise_floors(network(rng, 8, 8), METRICS, samples=99, seed=k).p
        for k in range(20)
    ]
    assert (np.asarray(p) <= 0.05).mean() > 0.9


def test_a_preference_between_groups_is_above_the_floor() -> None:
    assert share(40, women=12, men=12, group=0.3)[0] > 0.9


def test_disjoint_pairs_cannot_tell() -> None:
    pairs = network(np.random.default_rng(0), 10, 10, group=0.5, disjoint=True)
    found = name_floors(pairs, METRICS, samples=99, seed=0)
    assert found.reason == DISJOINT
    assert np.isnan([found.mean, found.p95, found.p]).all()


def test_the_floor_is_on_the_scale_of_the_printed_numbers() -> None:
    pairs = network(np.random.default_rng(2), 10, 10)
    found = name_floors(pairs, METRICS, samples=199, seed=1)
    seen = pairs.preferences(by_attribute=True)
    values = unqover.intensity(seen.gamma), unqover.consistency(seen.eta)
    assert (np.abs(found.mean / values - 1) < 0.3).all()
    assert ((found.p <= 0.05) <= (values >= found.p95)).all()
    again = name_floors(pairs, METRICS, samples=199, seed=1)
    assert (again.mean == found.mean).all()


def test_nothing_but_zeros_is_at_its_floor() -> None:
    pairs = network(np.random.default_rng(2), 4, 4)
    blank = pair_network.Pairs(**{**pairs.__dict__, "comparative": np.zeros(len(pairs.first))})
    assert (name_floors(blank, METRICS, samples=19, seed=0).p == 1).all()
