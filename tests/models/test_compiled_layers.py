"""Layers that run compiled inside a block only, and give what plain ones give."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.mark.model
def test_compiled_layers_score_as_plain_ones_and_are_given_back() -> None:
    from evenhand.models.batching.compiled import layers_compiled

    config = transformers.LlamaConfig(
        vocab_size=200, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    ids = torch.randint(0, 200, (3, 9))
    with torch.inference_mode():
        plain = model(ids, use_cache=False).logits
        with layers_compiled(torch, model):
            inside = [vars(layer).get("forward") for layer in model.model.layers]
            fused = model(ids, use_cache=False).logits
            fewer = model(ids[:2, :7], use_cache=False).logits
    assert all(inside)
    assert all("forward" not in vars(layer) for layer in model.model.layers)
    assert torch.allclose(plain, fused, atol=1e-5)
    assert torch.allclose(plain[:2, :7], fewer, atol=1e-5)
