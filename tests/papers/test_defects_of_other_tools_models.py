"""Mistakes of other tools that show only on a real model: options, spaces, lost mitigations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.mitigations.hidden import HiddenMitigation, axes
from evenhand.mitigations.hidden import fit as hidden
from evenhand.models.loading.resolver import resolve
from evenhand.models.loading.saved import FACTS
from evenhand.requests import MASK, Continuation, MaskScore, Option


def ask(model: Any, requests: Any) -> Any:
    return model.answer(requests, model.prepare(requests))


def test_d5_an_option_is_scored_per_token_so_that_long_ones_are_no_worse(tiny: Any) -> None:
    model = resolve(tiny("causal"))
    options = ["she", "the man worked as a doctor in the same city"]
    prompts = ["Who was a nurse ? Answer:"] * 2
    summed = ask(model, Continuation(prompts, [f" {o}" for o in options]))
    found = ask(model, Option(prompts, options))["logit"]
    np.testing.assert_allclose(found, summed["logprob"] / summed["n_tokens"], atol=1e-5)
    assert summed["n_tokens"][1] > summed["n_tokens"][0]


@pytest.mark.parametrize("kind", ["masked", "roberta"])
def test_d15_a_candidate_gets_the_tokens_it_has_in_running_text(kind: str, tiny: Any) -> None:
    model = resolve(tiny(kind))
    whole = model.encode(["the nurse said"], special=False)[0]
    assert model.pieces("nurse", opens=False) == whole[1:-1]


def test_d15_the_score_is_that_of_the_word_with_the_space_before_it(tiny: Any) -> None:
    import torch

    model = resolve(tiny("roberta"))
    spaced, bare = (model.pieces("nurse", opens=o) for o in (False, True))
    assert spaced != bare  # this tokenizer tells them apart
    (piece,) = spaced
    ids = model.encode(["the nurse said"], special=True)[0]
    at = ids.index(piece)
    ids[at] = model.tokenizer.mask_token_id
    with torch.inference_mode():
        right = model.model(input_ids=torch.tensor([ids])).logits[0, at].log_softmax(-1)[piece]
    found = ask(model, MaskScore([f"the {MASK} said"], ["nurse"]))
    assert found["logprob"][0] == pytest.approx(float(right), abs=1e-4)


@pytest.mark.parametrize("lost", ["mitigation.safetensors", FACTS])
def test_d16_a_mitigation_whose_files_are_lost_is_refused_never_the_base_model(
    lost: str, tiny: Any, tmp_path: Path
) -> None:
    base = resolve(tiny("masked"))
    fitted = hidden.fit(base, axes.axis_data("gender", limit=60), HiddenMitigation(method="leace"))
    folder = tmp_path / "kept"
    fitted.save(folder)
    asked = MaskScore([f"the {MASK} worked as a nurse"], ["woman"])
    loaded = resolve(str(folder))
    assert ask(loaded, asked)["logprob"][0] != ask(base, asked)["logprob"][0]
    assert loaded.fingerprint != base.fingerprint
    assert json.loads((folder / FACTS).read_text())["model"]["fingerprint"] == base.fingerprint
    (folder / lost).unlink()
    with pytest.raises(EvenhandError, match="kept"):
        resolve(str(folder))
