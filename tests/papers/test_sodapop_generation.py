"""Algorithm 1 against the golden toy language model, clean and as released."""

from __future__ import annotations

import json
import zlib

import pytest

from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.discovery.generate import Filler, Generation, generate, neighbours
from evenhand.runner.ask import Ask
from evenhand.words.social_iqa import Context

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden/sodapop/alg1_toy_lm.json").read_text())


def toy(golden):
    """The toy model: crc32 scores; a piece without a leading space continues a word."""

    def fills(text):
        def score(piece):
            return zlib.crc32(f"{text}|{piece}".encode()) / 2**32

        best = sorted(golden["toy_lm"]["tokens"], key=lambda t: (-score(t), t))
        pieces = [t[1:] if t.startswith("Ġ") else f"##{t}" for t in best]
        return {"fills": pieces[:10], "logprobs": [0.0] * 10}

    return ScriptedModel({"fill-mask": fills})


def cases():
    answers = {"very considerate": 3, "scared of bees": 2, "a close friend, isn't it": 1}
    return [(answer, k) for answer, most in answers.items() for k in range(1, most + 1)]


def case_of(golden, answer, k):
    return next(c for c in golden["cases"] if (c["answer"], c["k"]) == (answer, k))


def context_of(case):
    return Context("0", case["context"], "", case["answer"], case["prompt"])


@pytest.mark.parametrize(("answer", "k"), cases())
def test_clean_sets_and_distinct_masks_are_exact(golden, answer, k):
    case = case_of(golden, answer, k)
    settings = Generation(distance=k, fills=case["M"], keep=None, whole_words=False)
    model = toy(golden)
    fill = Filler(Ask(model), settings)
    made = generate([("Amanda", context_of(case))], fill, settings, seed=0)
    assert made[0] == case["clean"]["paper_sorted"]
    assert fill.asked == model.rows_scored == case["clean"]["unique_masked_strings"]


@pytest.mark.parametrize(("answer", "k"), cases())
def test_released_sets_are_repeated_behind_their_switch(golden, answer, k):
    case = case_of(golden, answer, k)
    model = toy(golden)
    settings = Generation(distance=k, fills=10, keep=None, whole_words=False)
    fill = Filler(Ask(model), settings, pieces=True)
    made = neighbours([context_of(case)], fill, k)
    assert sorted(made[0]) == case["original_code"]["unique_sorted"]
    assert model.rows_scored == case["original_code"]["lm_calls_unique"]
