"""CEAT: random effects against a worked example, and words without a context."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.metrics.meta import effect_variance, random_effects
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes import ceat
from evenhand.probes.ceat import Ceat
from evenhand.runner.ask import Ask


def test_random_effects_agree_with_a_worked_example_and_ignore_noise() -> None:
    # Borenstein et al. 2009, chapter 14: six studies, effects g and variances V.
    g = [0.095, 0.277, 0.367, 0.664, 0.462, 0.185]
    v = [0.033, 0.031, 0.050, 0.011, 0.043, 0.023]
    found = random_effects(g, v)
    assert found.effect == pytest.approx(0.358, abs=0.001)
    assert found.tau2 == pytest.approx(0.037, abs=0.001)
    assert found.error == pytest.approx(0.105, abs=0.001)
    assert random_effects([0.2, 0.2], [0.1, 0.1]).tau2 == 0.0
    assert math.isnan(random_effects([], []).effect)
    assert effect_variance(1.0, 10, 10) == pytest.approx(0.2 + 1 / 40)
    with pytest.raises(DataError, match="variance above 0"):
        random_effects([0.1], [0.0])


def test_ceat_combines_contexts_and_names_words_without_any(tmp_path: Path) -> None:
    corpus = tmp_path / "text.txt"
    goes = dict.fromkeys(("Ann", "Eve", "Kim"), "art") | dict.fromkeys(
        ("Bob", "Tom", "Jim"), "math"
    )
    lines = [f"{w} went {k} times to see the {x} again" for k in range(6) for w, x in goes.items()]
    corpus.write_text("\n".join(lines))
    sets = tmp_path / "sets.json"
    sides = {"a": ["art", "see"], "b": ["math", "times"]}
    made = {"t": {"x": ["Ann", "Eve", "Kim"], "y": ["Bob", "Tom", "Jim"], **sides}}
    made["lost"] = {"x": ["Zoe", "Amy"], "y": ["Bob", "Tom"], **sides}
    sets.write_text(json.dumps(made))

    def vector(text: str) -> list[float]:
        return [1.0 if "art" in text else 0.2, 1.0 if "math" in text else 0.1, len(text) / 99]

    probe = Ceat(data=str(corpus), tests=(str(sets),), draws=40, window=9)
    found = probe.run(Ask(ScriptedModel({"embed": vector})), 0)
    first, second = found.findings
    assert first.value > 0.5
    assert first.details["p_words"] == pytest.approx(0.1)
    assert (first.p <= 0.05) == (first.low > 0)
    assert first.low < first.value < first.high
    assert first.generalises_over == ("target words", "attribute words")
    assert math.isnan(second.value)
    assert "set x: 2 of 2 words occur in no context" in second.reason
    assert found.summary["words_without_context"] == ["Amy", "Zoe"]
    many = [ceat.score_test(probe.word_sets()[0], {w: [np.asarray(vector(t)) for t in row]
            for w, row in probe.contexts_of(probe.word_sets()).items()}, draws=d, as_published=True)
            for d in (20, 400)]  # fmt: skip
    assert many[1].high - many[1].low < many[0].high - many[0].low
