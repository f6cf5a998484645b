"""A causal model fills masks: proposals from the left, judged with what comes after."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.requests import Continuation, FillMask
from evenhand.runner.ask import Ask

pytest.importorskip("torch", reason="needs the hf extra")


@pytest.fixture(scope="module")
def model(tiny):
    from evenhand.models.loading.resolver import resolve

    return resolve(tiny("causal"))


def test_a_fill_is_scored_with_everything_after_it(model):
    text = "the man worked as a <mask> in the same city"
    scores = Ask(model)(FillMask([text], top=3))
    fills, logprobs = scores["fills"][0], scores["logprobs"][0]
    assert len(fills) == 3
    assert logprobs == sorted(logprobs, reverse=True)
    rows = Continuation(["the man worked as a"] * 3, [f" {f} in the same city" for f in fills])
    assert np.allclose(Ask(model)(rows)["logprob"], logprobs, atol=1e-4)


def test_fills_are_whole_words(model):
    fills = Ask(model)(FillMask(["she was a <mask>"], top=5))["fills"][0]
    assert all(f.strip() == f and any(c.isalpha() for c in f) for f in fills)


def test_a_text_without_a_mask_is_refused(model):
    with pytest.raises(EvenhandError, match="has 0 masks"):
        Ask(model)(FillMask(["no mask here"], top=2))


@pytest.mark.model
def test_a_trained_model_prefers_what_fits_both_sides(smollm2):
    fills = Ask(smollm2)(FillMask(["The nurse put the <mask> on the wound."], top=5))["fills"][0]
    assert {"bandage", "bandages", "gauze", "dressing", "needle", "medicine"} & set(fills)
