"""What stands before a text: begin tokens of GGUF files, and sentences whose first word counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.models.loading.gguf import begin_token
from evenhand.requests import Continuation, Start

BYTES = [f"<0x{i:02X}>" for i in range(256)]


def gguf_file(path: Path, kind: str = "llama", **said: Any) -> Path:
    """A GGUF file of a tiny model; `said` are keys of its tokenizer."""
    gguf = pytest.importorskip("gguf")
    from tokenizers.pre_tokenizers import ByteLevel

    draw = np.random.default_rng(0)
    wide, inner, heads = 16, 32, 2
    if kind == "llama":
        tokens = ["<unk>", "<s>", "</s>", *BYTES, "▁", "a", "b", "▁a", "▁b"]
        types = [2, 3, 3] + [6] * 256 + [1] * 5
    else:
        tokens = ["<|end|>", "<|begin|>", *sorted(ByteLevel.alphabet()), "ab"]
        types = [3, 3] + [1] * 257
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_context_length(64)
    out.add_embedding_length(wide)
    out.add_block_count(1)
    out.add_feed_forward_length(inner)
    out.add_head_count(heads)
    out.add_head_count_kv(heads)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(wide // heads)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model(kind)
    out.add_token_list(tokens)
    out.add_token_types(types)
    out.add_eos_token_id(2 if kind == "llama" else 0)
    if kind == "llama":
        out.add_token_scores([0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0])
    else:
        out.add_token_merges(["a b"])
    for name, value in said.items():
        getattr(out, name)(value)
    shapes = {
        "token_embd": (len(tokens), wide), "output": (len(tokens), wide), "output_norm": (wide,),
        "blk.0.attn_norm": (wide,), "blk.0.ffn_norm": (wide,), "blk.0.ffn_gate": (inner, wide),
        "blk.0.ffn_up": (inner, wide), "blk.0.ffn_down": (wide, inner),
        **{f"blk.0.attn_{part}": (wide, wide) for part in ("q", "k", "v", "output")},
    }  # fmt: skip
    for name, shape in shapes.items():
        values = np.ones(shape) if len(shape) == 1 else draw.normal(0, 0.1, shape)
        out.add_tensor(f"{name}.weight", values.astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


@pytest.mark.parametrize(
    ("kind", "said", "begin"),
    [
        ("llama", {"add_bos_token_id": 1}, 1),  # as TinyLlama's file: it does not say
        ("llama", {}, 1),
        ("llama", {"add_bos_token_id": 1, "add_add_bos_token": False}, None),
        ("gpt2", {"add_bos_token_id": 1}, None),
        ("gpt2", {"add_bos_token_id": 1, "add_tokenizer_pre": "llama-bpe"}, 1),
        ("gpt2", {"add_bos_token_id": 1, "add_add_bos_token": True}, 1),
    ],
)
def test_a_gguf_that_does_not_say_follows_its_kind_of_vocabulary(
    kind: str, said: dict[str, Any], begin: int | None, tmp_path: Path
) -> None:
    assert begin_token(gguf_file(tmp_path / "m.gguf", kind, **said)) == begin


@pytest.mark.parametrize("flag", [None, False, True])
def test_the_converted_model_starts_texts_as_the_gguf_says(
    flag: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.models.loading.resolver import resolve

    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    said = {} if flag is None else {"add_add_bos_token": flag}
    model: Any = resolve(str(gguf_file(tmp_path / "m.gguf", add_bos_token_id=1, **said)))
    assert model.start == ([] if flag is False else [1])
    assert model.describe()["begins"] == "bos"


def answered(model: Any, text: str, start: Start = "auto") -> tuple[float, int]:
    asked = Continuation([""], [text], start)
    found = model.answer(asked, model.prepare(asked))
    return float(found["logprob"][0]), int(found["n_tokens"][0])


def test_the_first_word_counts_unless_nothing_is_asked_to_stand_before(tiny: Any) -> None:
    import torch

    from evenhand.models.loading.resolver import resolve

    model: Any = resolve(tiny("causal"))
    ids = model.encode(["he said nurse"], special=False)[0]
    token = {"bos": model.tokenizer.bos_token_id, "eos": model.tokenizer.eos_token_id}
    assert model.start == []

    def oracle(first: list[int]) -> float:
        whole = first + ids
        with torch.inference_mode():
            logp = model.model(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
        return float(sum(logp[k - 1, whole[k]] for k in range(1, len(whole))))

    for start in ("bos", "eos"):
        if token[start] is None:
            with pytest.raises(SpecError, match=f"start = '{start}': model .* has no such token"):
                answered(model, "he said nurse", start)
            continue
        value, count = answered(model, "he said nurse", start)
        assert count == len(ids)
        assert value == pytest.approx(oracle([token[start]]), abs=1e-4)
    value, count = answered(model, "he said nurse", "none")
    assert (count, value) == (len(ids) - 1, pytest.approx(oracle([]), abs=1e-4))
    assert model.describe()["begins"] in ("bos", "eos")
    assert answered(model, "he said nurse") == answered(
        model, "he said nurse", model.describe()["begins"]
    )
