"""Packed weights, and models that do not fit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import MissingExtra, ModelError, SpecError
from evenhand.models.loading import bits
from evenhand.requests import Continuation

ASKED = Continuation(["the man worked as", "the woman worked as"], [" a doctor", " a nurse"])


@pytest.fixture(scope="module")
def wide(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows of 128 weights: packing into 4 bits takes 64 at a time."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the hf extra")
    torch: Any = pytest.importorskip("torch", reason="needs the hf extra")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("wide")
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("load", ["8bit", "4bit"])
def test_packed_weights_give_nearly_the_same_scores_under_another_fingerprint(
    wide: str, load: str
) -> None:
    pytest.importorskip("bitsandbytes", reason="needs the packed extra (bitsandbytes)")
    whole, small = eh.load_model(wide), eh.load_model(wide, load=load)
    assert small.describe()["load"] == load
    assert "load" not in whole.describe()
    assert len({whole.fingerprint, small.fingerprint}) == 2
    kinds = {type(module).__module__.split(".")[0] for module in small.model.modules()}
    assert "bitsandbytes" in kinds
    one, two = (eh.Ask(model)(ASKED)["logprob"] for model in (whole, small))
    assert np.isfinite(two).all()
    assert (one != two).any()
    assert np.abs(one - two).max() < 0.5 * np.abs(one).max()


def test_without_the_library_it_is_named(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(MissingExtra, match=r"--load 8bit.*pip install 'evenhand\[packed\]'"):
        eh.load_model(tiny("causal"), load="8bit")


def test_an_unknown_way_to_load_is_refused(tiny: Any) -> None:
    with pytest.raises(SpecError, match="unknown load '3bit'"):
        eh.load_model(tiny("causal"), load="3bit")


def test_a_model_that_does_not_fit_says_so_before_it_is_read(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny("causal")
    monkeypatch.setattr(bits, "free_bytes", lambda torch, device: 1_000)
    with pytest.raises(ModelError, match=r"GiB are free.*--load 8bit"):
        eh.load_model(folder)
