"""Detectable effects against simulated power."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.stats.power import detectable_effect


def test_five_and_eighty_percent_give_the_textbook_factor():
    assert detectable_effect(1.0) == pytest.approx(2.8016, abs=1e-4)
    assert detectable_effect([1.0, 2.0, np.nan])[:2] == pytest.approx([2.8016, 5.6032], abs=1e-4)


def test_more_power_or_a_stricter_level_needs_a_larger_effect():
    assert detectable_effect(1.0, power=0.9) > detectable_effect(1.0, power=0.8)
    assert detectable_effect(1.0, level=0.01) > detectable_effect(1.0, level=0.05)


def test_simulated_power_against_theory():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 4_000, 100))
    effect = detectable_effect(np.sqrt(2 / 100))
    z = (x.mean(axis=1) + effect - y.mean(axis=1)) / np.sqrt(2 / 100)
    assert np.mean(np.abs(z) > 1.96) == pytest.approx(0.8, abs=0.03)


def test_a_percentage_is_refused():
    with pytest.raises(SpecError, match="power: 80 is out of range"):
        detectable_effect(1.0, power=80)
