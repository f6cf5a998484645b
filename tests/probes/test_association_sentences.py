"""Association tests through a model: words, and words in sentences (SEAT)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.metrics import association as metrics
from evenhand.probes.association.probe import BLEACHED, Association
from evenhand.probes.association.score import associate, pool, table_of
from evenhand.requests import Embed, Scores
from evenhand.words.lexicons import WordSets, weat

TEST = weat("weat7")


class Made:
    """A model whose vector of a text is a fixed random one, leaning by the words in it."""

    answers = frozenset({Embed.kind})

    def __init__(self, lean: float = 1.0, unknown: tuple[str, ...] = ()) -> None:
        self.lean, self.unknown = lean, unknown
        self.asked: list[str] = []

    def __call__(self, requests: Any, label: str = "") -> Scores:
        self.asked = list(requests.text)
        return Scores({"vector": np.stack([self.vector(text) for text in self.asked])})

    def describe(self) -> dict[str, Any]:
        return {}

    def helper(self, name: str) -> Any:
        raise NotImplementedError

    def vector(self, text: str) -> np.ndarray:
        rng = np.random.default_rng(list(text.encode()))
        row = rng.normal(size=16)
        tokens = set(text.strip(".").split())
        if tokens & set(self.unknown):
            return np.full(16, np.nan)
        for key, side in (("x", 1.0), ("y", -1.0), ("a", 2.0), ("b", -2.0)):
            if tokens & set(getattr(TEST, key)):
                row[0] += side * self.lean
        return row


def by_hand(model: Made, texts: Any) -> list[np.ndarray]:
    return [
        np.stack([metrics.unit_rows([model.vector(t) for t in texts(word)]).mean(axis=0)
                  for word in getattr(TEST, key)])
        for key in "xyab"
    ]  # fmt: skip


def test_words_alone_are_asked_as_they_are() -> None:
    model = Made()
    found = Association(tests=("weat7",)).run(model, 0).findings[0]
    assert model.asked[0] == TEST.x[0]
    parts = by_hand(model, lambda w: [w])
    assert found.value == pytest.approx(metrics.weat(*parts).effect_size, abs=1e-6)
    assert found.id == "association/weat7"


def test_a_words_vector_is_the_mean_of_its_sentences() -> None:
    model = Made()
    probe = Association(tests=("weat7",), templates=("bleached",))
    measured = probe.run(model, 0)
    found = measured.findings[0]
    assert model.asked[:4] == [text.replace("{}", TEST.x[0]) for text in BLEACHED]
    parts = by_hand(model, lambda w: [t.replace("{}", w) for t in BLEACHED])
    assert found.value == pytest.approx(metrics.weat(*parts).effect_size, abs=1e-6)
    assert found.id == "association/sentences/weat7"
    assert found.method == (
        "t with the two-way variance of target words and attribute words (4 sentences each)"
    )
    assert found.details["p_words"] < 0.05
    assert measured.summary["sentences"] == 32 * 4


def test_published_rules_count_every_sentence() -> None:
    model = Made(lean=0.2)
    options = {"tests": ("weat7",), "templates": ("This is {}.", "That is {}.")}
    found = Association(**options, as_published=True).run(model, 0).findings[0]
    rows = [
        [model.vector(t.replace("{}", w)) for w in getattr(TEST, key) for t in options["templates"]]
        for key in "xyab"
    ]
    assert found.value == pytest.approx(metrics.weat(*rows).effect_size, abs=1e-6)
    assert found.n == 64
    assert "sentences (2 sentences a word), two-sided: for these words" in found.method
    assert np.isnan([found.low, found.high]).all()
    assert len(model.asked) == 64


def test_counting_sentences_as_words_makes_p_too_small() -> None:
    """Sentences of one word are nearly one vector: four of them are no more evidence than one."""
    for shift in range(6):
        model = Made(lean=0.0)
        same = model.vector

        def fixed(text: str, same: Any = same, shift: int = shift) -> np.ndarray:
            word = text.strip(".").split()[-1]
            return np.asarray(same(f"{word}{shift}") + 0.05 * same(text))

        model.vector = fixed  # type: ignore[method-assign]
        words, sentences = (
            Association(tests=("weat7",), templates=("bleached",), as_published=published)
            .run(model, 0)
            .findings[0]
            for published in (False, True)
        )
        assert sentences.value == pytest.approx(words.value, abs=0.05)
        assert sentences.p < words.p
        assert sentences.p < 0.6 * words.p or words.p > 0.5


def test_missing_words_and_ways_to_treat_them() -> None:
    model = Made(unknown=("math", "algebra"))
    found = Association(tests=("weat7",), templates=("bleached",)).run(model, 0).findings[0]
    assert np.isnan(found.value)
    assert found.reason.startswith("set x: 2 of 8 words have no vector")
    probe = Association(
        tests=("weat7",), templates=("bleached",), missing="balanced", max_missing=0.5
    )
    found = probe.run(model, 0).findings[0]
    assert found.n == 6 + 6 + 8 + 8


def test_wrong_settings() -> None:
    with pytest.raises(SpecError, match="needs {} once"):
        Association(templates=("This is it.",))
    with pytest.raises(SpecError, match="'threshold', 'keep' or 'balanced'"):
        Association(missing="some")


def test_preview_counts_sentences_with_those_of_random_attribute_words() -> None:
    asked = {}
    for published in (True, False):
        probe = Association(tests=("weat7",), templates=("bleached",), as_published=published)
        asked[published] = len(probe.preview(frozenset({Embed.kind}), 0).requests)
    assert asked[True] == 32 * 4
    assert 100 * 4 < asked[False] < 200 * 4
    whole = Association().preview(frozenset({Embed.kind}), 0)
    assert len(whole.requests) == len(pool())  # all of them are asked anyway


def test_a_set_of_one_word_is_told_before_and_gets_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "sets.json"
    lists = {"x": TEST.x, "y": TEST.y, "a": TEST.a[:1], "b": TEST.b}
    path.write_text(json.dumps({"one": {k: list(v) for k, v in lists.items()}}))
    probe = Association(tests=(str(path),))
    notes = probe.preview(frozenset({Embed.kind}), 0).notes
    assert notes == ("one: a set has one word, so there will be no verdict",)
    found = probe.run(Made(), 0).findings[0]
    assert np.isfinite(found.value)
    assert np.isnan([found.p, found.q, found.low, found.high]).all()
    assert found.sentence.startswith("Between words for x and words for y no verdict is possible")
    assert found.reason.startswith("a set has one word")


@pytest.mark.parametrize("lean", [0.0, 0.3, 1.0])
def test_p_and_interval_agree_and_random_attribute_words_stand_beside(lean: float) -> None:
    measured = Association().run(Made(lean=lean), 0)
    for found in measured.findings:
        assert (found.p <= 0.05) == (found.low > 0 or found.high < 0), found.id
        assert found.low < found.value < found.high
        assert 0 < found.detectable < 2
        assert found.generalises_over == ("target words", "attribute words")
        assert "no difference was detected" in found.otherwise
        assert 0 <= found.details["percentile"] <= 100
    (placebo,) = measured.placebos
    assert placebo.tests == 10 * 200
    assert placebo.alarms <= 0.07 * placebo.tests


def test_random_attribute_words_that_lean_by_chance_are_no_finding() -> None:
    """The targets differ, the attributes are random: permuting targets is fooled, words are not."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(32)]
    test = WordSets("t", *(tuple(words[8 * k : 8 * k + 8]) for k in range(4)))
    fooled, alarms = 0, 0
    for _ in range(100):
        rows = rng.normal(size=(32, 20))
        rows[:16, :4] += np.repeat([2.0, -2.0], 8)[:, None]
        (row,) = associate(table_of(words, rows), [test], placebos=0)
        fooled += row["p_two_sided"] <= 0.05
        alarms += row.p <= 0.05
    assert fooled > 25
    assert alarms <= 9


@pytest.mark.shared
@pytest.mark.model
def test_a_real_encoder_leans_as_expected(minilm: dict[str, str], tmp_path: Any) -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    from evenhand.models.loading.resolver import resolve
    from evenhand.runner.ask import Ask

    ask = Ask(resolve(minilm["masked"]), tmp_path)
    probe = Association(tests=("weat1",), templates=("This is {}.",))
    flowers = probe.run(ask, 0).findings[0]
    assert flowers.value > 0.5
    assert flowers.p < 0.05
    assert flowers.coverage == 1.0
