"""Sentences and charts speak of a difference at the suite's false-discovery rate, not at 5 %."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.charts.base import About, Chart
from evenhand.compare.items import Items
from evenhand.compare.rows import Reported, Row, Test
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.findings import Kept, measured
from evenhand.probes.discovery.inference import Settings
from evenhand.probes.discovery.probe import word_charts
from evenhand.probes.divergence.probe import Divergence
from evenhand.probes.name_study import NameStudy
from evenhand.runner.ask import Ask

TOLD: dict[str, Any] = {
    "axis": "gender", "accuracy": 0.7, "low": 0.6, "high": 0.8, "p": 0.02, "q": 0.02, "names": 16,
    "by_group": {"a": 0.7, "b": 0.7}, "null_mean": 0.5, "null_p95": 0.6, "folds": 4,
    "permutations": 99, "train_accuracy": 1.0, "error": 0.05, "freedom": 98, "detectable": 0.2,
    "p_permuted": 0.02,
}  # fmt: skip


def test_the_rate_is_no_setting() -> None:
    probe = NameStudy(names=4)
    assert probe.rate == 0.05
    strict = probe.at_rate(0.01)
    assert strict.rate == 0.01
    assert probe.rate == 0.05
    assert strict.model_dump() == probe.model_dump()


def test_a_claim_has_a_sentence_for_either_verdict() -> None:
    numbers = {name: TOLD[name] for name in ("error", "freedom", "low", "high", "p", "detectable")}
    told = Reported(TOLD["accuracy"], **numbers, units=16, ideal=0.5, columns=TOLD)
    row = Row(Test("gender", "accuracy", {"axis": "gender"}, lambda **how: told), told, TOLD["q"])
    (found,) = NameStudy().say(row, Items({}), [row])
    assert "can be told" in found.sentence
    assert "was not detected" in found.otherwise


def test_swaps_are_hedged_when_they_are_not_detected() -> None:
    def distance(a: str, b: str) -> dict[str, float]:
        value = float(np.random.default_rng([*map(ord, a + b)]).uniform(0.01, 0.3))
        return {"kl_ab": value, "kl_ba": value, "hellinger2": value, "js": value}

    ask = Ask(ScriptedModel({"divergence": distance}))
    for rate in (0.0, 0.3, 1.0):
        found = Divergence(axes=("religion",)).at_rate(rate).run(ask, 0).findings
        for claim in found:
            assert claim.sentence.endswith(", which may be chance.") == (claim.q > rate)


def discovered(rate: float) -> tuple[list[str], int]:
    """Sentences about words, and how many were detected, in noise of one group."""
    rng = np.random.default_rng(3)
    rates = 0.3 + rng.normal(0, 0.02, (16, 3, 4))
    counts = WordCounts(
        ("a",) * 8 + ("b",) * 8, tuple(f"n{i}" for i in range(16)), ("c0", "c1", "c2"),
        ("one", "two", "three", "four"), np.full(rates.shape, 40.0), rates * 40, 4,
    )  # fmt: skip
    settings = Settings(999, 100, rate=rate)
    found = measured("discovery", counts, [("a", "b")], settings, Kept([], [], {}))
    claims = [f for f in found.findings if f.metric == "d"]
    return [f.sentence for f in claims], int(found.summary["detected"])


def test_words_are_detected_at_the_suites_rate() -> None:
    sentences, detected = discovered(1.0)
    assert detected == len(sentences) == 4
    assert all("win more often" in s for s in sentences)
    sentences, detected = discovered(0.0)
    assert (detected, len(sentences)) == (0, 1)


def test_the_chart_shows_the_pair_with_most_words_detected_at_that_rate() -> None:
    rows = [
        {"pair": pair, "word": f"w{k}", "rd": 0.1, "d": 0.1, "p": q, "q": q, "sr_a": 0.3,
         "sr_b": 0.2, "low": 0.0, "high": 0.2, "n": 9}
        for pair, values in (("a / b", (0.001, 0.2, 0.2)), ("c / d", (0.04, 0.04, 0.04)))
        for k, q in enumerate(values)
    ]  # fmt: skip
    for rate, pair in ((0.05, "c / d"), (0.01, "a / b")):
        first = word_charts(pa.Table.from_pylist(rows), About("x", "x", "words", rate))[0]
        assert isinstance(first, Chart)
        assert first.title == f"Words of {pair}"
