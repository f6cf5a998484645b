"""Which precision a model computes in on a GPU; the choice itself needs none."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.models.loading import precision

torch = pytest.importorskip("torch", reason="needs the hf extra")


def chosen(folder: str, spoil: bool = False) -> tuple[str, list[Any]]:
    import transformers

    asked = []

    def load(dtype: Any) -> Any:
        asked.append(dtype)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        if spoil:  # the factor still fits into float16, its products do not
            for name, weight in model.named_parameters():
                if "norm" in name:
                    weight.data.mul_(30_000.0)
        return model

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, name = precision.fitting(torch, load, tokenizer, "cpu")
    assert model.dtype == getattr(torch, name)
    return name, asked


def test_small_models_stay_in_float32(tiny: Any) -> None:
    assert chosen(tiny("causal")) == ("float32", ["auto"])


def test_large_models_compute_in_float16(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "SMALL", 0)
    assert chosen(tiny("causal")) == ("float16", ["auto"])


def test_a_model_too_large_for_float16_is_read_again_as_bfloat16(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "SMALL", 0)
    assert chosen(tiny("causal"), spoil=True) == ("bfloat16", ["auto", torch.bfloat16])


@pytest.mark.parametrize("kind", ["masked", "span", "choice", "classifier", "encoder"])
def test_the_check_reads_every_kind_of_model(tiny: Any, kind: str) -> None:
    from evenhand.models.loading.resolver import resolve

    model = resolve(tiny(kind), kind=kind)
    assert precision.finite(torch, model.model, model.tokenizer)
