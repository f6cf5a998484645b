"""Winogender: pronouns against the share of women in an occupation."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.winogender import Winogender, read_shares, read_winogender
from evenhand.runner.ask import Ask


@pytest.mark.shared
def test_winogender_follows_a_model_that_knows_the_share_of_women(shared: Path) -> None:
    folder = shared / "data" / "winogender"
    shares = read_shares(folder)

    def knows(text: str, word: str) -> dict[str, float]:
        job = next(o for o in sorted(shares, key=len, reverse=True) if f" {o} " in f" {text} ")
        lean = shares[job] / 100
        return {"logprob": math.log(lean if word in ("she", "her") else 1.01 - lean), "n_pieces": 1}

    found = {f.id: f for f in Winogender(data=str(folder)).run(
        Ask(ScriptedModel({"mask-score": knows})), 0).findings}  # fmt: skip
    row = found["winogender/occupation"]
    assert row.n == 60
    assert row.value > 0.9
    assert row.q < 0.01
    assert len(read_winogender(folder)) == 240
