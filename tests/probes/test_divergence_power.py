"""The divergence probe: neutral swaps as the yardstick, on models with known answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.divergence.probe import Divergence, Neutral, openings
from evenhand.runner.ask import Ask


def scripted(gender: float, seed: int = 0) -> ScriptedModel:
    """Heavy-tailed distances by prompt; swaps of woman and man are `gender` times as wide."""

    def distance(a: str, b: str) -> dict[str, float]:
        rng = np.random.default_rng([seed, *map(ord, a + b)])
        prompt = np.random.default_rng([seed, *map(ord, a.split(" ", 2)[-1])])
        value = np.exp(prompt.normal(-4, 1.0) + rng.normal(0, 0.4))
        value *= gender if {"woman", "man"} & set(a.split()) else 1.0
        return {"kl_ab": 4 * value, "kl_ba": 4 * value, "hellinger2": min(1.0, value), "js": value}

    return ScriptedModel({"divergence": distance}, version=str(gender))


def claims(gender: float, seed: int = 0) -> dict[str, object]:
    probe = Divergence(axes=("gender",))
    return {f.id: f for f in probe.run(Ask(scripted(gender, seed)), seed=0).findings}


def test_a_planted_effect_is_found_and_its_size_recovered() -> None:
    found = claims(3.0)["divergence/gender/female-male"]
    assert found.q < 0.01  # type: ignore[attr-defined]
    assert found.low < 3.0 < found.high  # type: ignore[attr-defined]


def test_without_an_effect_nothing_is_claimed_in_nearly_all_cases() -> None:
    p = [claims(1.0, seed)["divergence/gender/female-male"].p for seed in range(40)]  # type: ignore[attr-defined]
    assert np.mean(np.asarray(p) < 0.05) <= 0.15


def test_the_ratio_by_hand() -> None:
    neutral = Neutral(("p", "q"), np.log([[0.1, 0.4], [0.2, 0.2]]))
    ratio = neutral.ratio(["p", "q"], np.array([0.4, 0.8]), 200, 0)
    # geometric means: neutral sqrt(.04)=.2 and .2; own .4 and .8 -> sqrt(2 x 4)
    assert ratio.value == pytest.approx(np.sqrt(8.0))
    assert ratio.low <= ratio.value <= ratio.high


def test_own_pairs_keep_the_contract_and_have_no_test(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("context_a,context_b\nThe man was,The woman was\nHe was,She was\n")
    probe = Divergence(file=str(file))
    measured = probe.run(Ask(scripted(1.0)), seed=0)
    rows = probe.rows(measured.items)["pairs"]
    assert set(rows[0]) >= {"context_a", "context_b", "kl_ab", "kl_ba", "hellinger2"}
    assert measured.summary["hellinger2"]["low"] <= measured.summary["hellinger2"]["mean"]
    assert np.isnan(measured.findings[0].p)
    assert "no test" in measured.findings[0].reason


def test_as_published_prints_the_unsquared_distance_on_ten_prompts() -> None:
    probe = Divergence(axes=("gender",), as_published=True)
    measured = probe.run(Ask(scripted(1.0)), seed=0)
    finding = measured.findings[0]
    rows = [r for r in measured.items.to_pylist() if r["group_b"] == "male"]
    assert (finding.metric, finding.n) == ("hellinger", 10)
    right = np.mean([np.sqrt(r["hellinger2"]) for r in rows])
    assert finding.value == pytest.approx(right)


def test_a_budget_takes_prompts_away() -> None:
    assert Divergence().within(0.5).prompts == 12  # type: ignore[attr-defined]
    assert len(set(openings(24))) == 24
