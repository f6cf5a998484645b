"""Re-weighting by announced harm: values against the formula, for masked and causal models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.reweighting import (
    Announced,
    ReweightingMitigation,
    adjusted,
    for_axis,
    reweighted,
)
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Continuation, Generate, MaskScore, NextToken

TEXTS = MaskScore(
    ["the <mask> worked as a nurse"] * 2 + ["<mask> was a nurse"], ["man", "woman", "he"]
)


def ask(model: Any, request: Any) -> Any:
    return model.answer(request, model.prepare(request))


def formula(p: Any, told: Any, decay: float, floor: float) -> Any:
    """Schick et al. 2021, Eq. 2 and 3, written out."""
    delta = p - told
    weighted = p * np.where(
        delta >= 0, 1.0, np.maximum(np.exp(decay * np.minimum(delta, 0)), floor)
    )
    return weighted / weighted.sum()


@pytest.fixture(scope="module")
def masked(tiny: Any) -> Any:
    return resolve(tiny("masked"))


@pytest.fixture(scope="module")
def causal(tiny: Any) -> Any:
    return resolve(tiny("causal"))


def test_the_adjusted_distribution_is_the_papers() -> None:
    torch = pytest.importorskip("torch")
    own = torch.tensor([[1.0, 2.0, 0.5, -1.0]])
    told = [torch.tensor([[3.0, 1.0, 0.0, -1.0]]), torch.tensor([[0.0, 3.0, 0.0, 1.0]])]
    got = adjusted(torch, own, told, Announced(("x", "y"), 20.0, 0.05)).softmax(-1).numpy()[0]
    p = own.softmax(-1).numpy()[0]
    worst = np.maximum(*(t.softmax(-1).numpy()[0] for t in told))
    assert np.allclose(got, formula(p, worst, 20.0, 0.05), atol=1e-6)


def test_without_decay_nothing_changes(masked: Any, causal: Any) -> None:
    same = reweighted(masked, for_axis("gender", 0.0))
    assert np.allclose(ask(same, TEXTS)["logprob"], ask(masked, TEXTS)["logprob"], atol=1e-5)
    rows = Continuation(["the man", "the woman worked"], [" worked as a doctor", " as a nurse"])
    same = reweighted(causal, for_axis("gender", 0.0))
    assert np.allclose(ask(same, rows)["logprob"], ask(causal, rows)["logprob"], atol=1e-4)
    draws = Generate(["the man", "the woman worked"], ["0", "1"], max_new_tokens=5)
    assert ask(same, draws)["text"] == ask(causal, draws)["text"]


def test_a_causal_models_next_token_follows_the_formula(causal: Any) -> None:
    torch = causal.torch
    settings = for_axis("gender", 50.0)
    ids = causal._text_tokens(["the man"])[0]
    prefix = causal.encode(list(settings.announcements), special=False)[0]
    start = len(causal.start)
    with torch.inference_mode():
        p, told = (
            causal.model(input_ids=torch.tensor([s])).logits[0, -1].float().softmax(-1).numpy()
            for s in (ids, [*ids[:start], *prefix, *ids[start:]])
        )
    wanted = np.sort(np.log(formula(p.astype(float), told.astype(float), 50.0, 0.01)))[::-1][:4]
    found = ask(reweighted(causal, settings), NextToken(["the man"], top=4))["logprobs"][0]
    assert np.allclose(found, wanted, atol=1e-3)


def test_the_base_keeps_its_scores_and_the_form_has_its_own_fingerprint(masked: Any) -> None:
    before = ask(masked, TEXTS)["logprob"]
    made = reweighted(masked, for_axis("gender"))
    assert np.abs(ask(made, TEXTS)["logprob"] - before).max() > 1e-4
    assert np.array_equal(ask(masked, TEXTS)["logprob"], before)
    assert made.fingerprint != masked.fingerprint


def test_it_is_saved_loaded_and_not_stacked_on_itself(
    masked: Any, tiny: Any, tmp_path: Path
) -> None:
    settings = for_axis("religion", 10.0)
    folder = tmp_path / "kept"
    ReweightingMitigation(axis="religion", decay=10.0).fit(masked).save(folder)
    loaded: Any = resolve(str(folder))
    made = reweighted(masked, settings)
    assert np.array_equal(ask(loaded, TEXTS)["logprob"], ask(made, TEXTS)["logprob"])
    assert loaded.fingerprint == made.fingerprint
    with pytest.raises(ModelError, match="carries this re-weighting already"):
        reweighted(loaded, settings)


def test_bad_settings_and_kinds_are_refused(tiny: Any) -> None:
    with pytest.raises(SpecError, match="decay is '-1'"):
        Announced(("x",), -1)
    with pytest.raises(ModelError, match="must be a masked or causal"):
        reweighted(resolve(tiny("encoder")), for_axis("gender"))
