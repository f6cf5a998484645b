"""Weights of zeros or of one number are refused, as an interrupted download leaves them."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import DataError, ModelError
from evenhand.models.loading.checkpoint import load_model
from evenhand.models.loading.gguf import converted
from evenhand.models.loading.resolver import resolve
from evenhand.models.vectors.files import open_vectors, write_words
from in_process import evenhand
from models.test_begin_tokens import gguf_file
from trust.hostile import tensors

Weights = dict[str, np.ndarray]
KINDS = ("causal", "gpt2", "bloom", "gptneox", "roberta", "masked", "span", "choice", "classifier",
         "encoder")  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def copied(tiny: Any, tmp_path: Path) -> Callable[[str], Path]:
    return lambda kind: Path(shutil.copytree(tiny(kind), tmp_path / "model"))


def filled(folder: Path, pattern: str, value: float = 0.0) -> Path:
    """Fill all matrices of that name with one number."""

    def change(held: Weights) -> None:
        names = [n for n in held if re.search(pattern, n) and held[n].ndim > 1]
        assert names, pattern
        for name in names:
            held[name] = np.full_like(held[name], value)

    tensors(folder, change)
    return folder


def zeroed(path: Path, begin: float, end: float = 1.0) -> Path:
    """Write zeros over a share of the data of a safetensors file."""
    raw = bytearray(path.read_bytes())
    head = 8 + int.from_bytes(raw[:8], "little")
    one, two = (head + int(share * (len(raw) - head)) for share in (begin, end))
    raw[one:two] = bytes(two - one)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begin", [0.0, 0.4, 0.7])
def test_a_file_whose_end_never_arrived_is_refused(copied: Any, kind: str, begin: float) -> None:
    zeroed((folder := copied(kind)) / "model.safetensors", begin)
    with pytest.raises(ModelError, match="An interrupted download leaves such files"):
        resolve(str(folder))


@pytest.mark.parametrize("value", [0.0, 1.0, -0.25])
@pytest.mark.parametrize(
    "name", ["embed_tokens", "layers.1.self_attn.v_proj", "layers.0.mlp.down_proj", "o_proj"]
)
def test_a_matrix_of_one_number_is_refused_by_name(copied: Any, name: str, value: float) -> None:
    with pytest.raises(ModelError, match=rf"{re.escape(name)}.*are {value:g} in every place"):
        resolve(str(filled(copied("causal"), re.escape(name), value)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [("causal", "model.norm.weight"), ("gpt2", "transformer.ln_f.weight"),
     ("masked", "bert.embeddings.LayerNorm.weight")],
)  # fmt: skip
def test_a_scale_of_zeros_that_lets_nothing_through_is_refused(
    copied: Any, kind: str, name: str
) -> None:
    folder = copied(kind)

    def change(held: Weights) -> None:
        (whole,) = {name, name.partition(".")[2]} & {*held}  # with or without the prefix
        held[whole] = np.zeros_like(held[whole])

    tensors(folder, change)
    with pytest.raises(ModelError, match=rf"'{re.escape(name)}' are 0 in every place, which lets"):
        resolve(str(folder))


def test_a_scale_to_which_one_is_added_may_be_zero(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the hf extra")
    config = transformers.GemmaConfig(
        vocab_size=20, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, head_dim=4,
    )  # fmt: skip
    model = transformers.GemmaForCausalLM(config)  # whose scales begin at zero
    assert not model.model.norm.weight.any()
    model.save_pretrained(tmp_path)
    assert load_model("AutoModelForCausalLM", tmp_path).model.norm is not None


def test_several_are_counted(copied: Any) -> None:
    folder = filled(copied("causal"), r"layers\.0\.mlp")
    with pytest.raises(ModelError, match=r"; so are 2 more of \d+ matrices"):
        resolve(str(folder))


def test_a_matrix_whose_rows_are_mostly_zero_is_refused(copied: Any) -> None:
    def change(held: Weights) -> None:
        held["model.embed_tokens.weight"][int(0.45 * len(held["model.embed_tokens.weight"])) :] = 0

    tensors(folder := copied("causal"), change)
    with pytest.raises(ModelError, match=r"embed_tokens.*one number in about 5\d % of their rows"):
        resolve(str(folder))


def test_scales_of_one_and_biases_of_zero_are_usual(copied: Any) -> None:
    def change(held: Weights) -> None:
        for name in (n for n, w in held.items() if w.ndim == 1):
            held[name] = np.full_like(held[name], float(name.endswith("weight")))

    tensors(folder := copied("masked"), change)
    assert resolve(str(folder)).n_parameters > 0


def test_rows_for_padding_may_be_zero(copied: Any) -> None:
    def change(held: Weights) -> None:
        held["model.embed_tokens.weight"][-100:] = 0

    tensors(folder := copied("causal"), change)
    assert resolve(str(folder)).n_parameters > 0


@pytest.mark.parametrize("kind", ["roberta", "masked"])
def test_unused_kinds_of_tokens_may_be_zero(copied: Any, kind: str) -> None:
    """As in every RoBERTa: its conversion wrote zeros there."""
    assert resolve(str(filled(copied(kind), "token_type_embeddings"))).n_parameters > 0


def test_attention_to_every_word_alike_is_no_damage(copied: Any) -> None:
    """Queries and keys of zeros get no gradient, so a model can be trained with them."""
    folder = filled(copied("causal"), r"layers\.0\.self_attn\.[qk]_proj")
    assert resolve(str(folder)).n_parameters > 0
    filled(folder, r"layers\.1\.self_attn\.q_proj")
    with pytest.raises(ModelError, match=r"layers\.1\.self_attn\.q_proj"):
        resolve(str(folder))


def test_an_audit_of_zeros_ends_before_the_first_question(copied: Any, tmp_path: Path) -> None:
    folder = filled(copied("causal"), ".")
    done = evenhand("audit", str(folder), "--suite", "quick", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "0 in every place" in done.stderr
    assert not (tmp_path / "run" / "findings.json").exists()


@pytest.mark.parametrize("load", ["8bit", "4bit"])
def test_packing_hides_no_zeros(copied: Any, load: str) -> None:
    pytest.importorskip("bitsandbytes", reason="needs the packed extra")
    folder = filled(copied("causal"), r"layers\.0\.mlp\.up_proj")
    with pytest.raises(ModelError, match="in every place"):
        resolve(str(folder), load=load)


@pytest.mark.parametrize("begin", [0.0, 0.5])
def test_a_gguf_file_of_zeros_is_refused(tmp_path: Path, begin: float) -> None:
    gguf = pytest.importorskip("gguf")
    path = gguf_file(tmp_path / "x.gguf")
    offset = int(gguf.GGUFReader(str(path)).data_offset)
    raw = bytearray(path.read_bytes())
    start = offset + int(begin * (len(raw) - offset))
    raw[start:] = bytes(len(raw) - start)
    path.write_bytes(raw)
    with pytest.raises(ModelError, match=r"x\.gguf.*An interrupted download"):
        converted(path)


def test_base_models_for_training_are_looked_at_too(copied: Any) -> None:
    from evenhand.train.common import load_base

    folder = filled(copied("masked"), r"layer\.1\.output")
    with pytest.raises(ModelError, match="in every place"):
        load_base("span", "AutoModelForQuestionAnswering", str(folder))


def adapter(tiny: Any, out: Path, **values: float) -> Path:
    """An adapter whose lora_A or lora_B are filled with one number."""
    peft = pytest.importorskip("peft", reason="needs the peft extra")
    import torch
    import transformers

    base = transformers.AutoModelForCausalLM.from_pretrained(tiny("causal"))
    how = peft.LoraConfig(r=2, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"])
    made = peft.get_peft_model(base, how)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            for part in ("lora_A", "lora_B"):
                if part in name:
                    weight.fill_(values[part]) if part in values else weight.normal_()
    made.save_pretrained(str(out))
    return out


def test_an_adapter_that_changes_nothing_says_so(tiny: Any, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the adapter changes nothing"):
        resolve(str(adapter(tiny, tmp_path / "new", lora_B=0.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        resolve(str(adapter(tiny, tmp_path / "trained")))


def test_an_adapter_that_did_not_arrive_is_refused(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="lora_A.* are 0 in every place"):
        resolve(str(adapter(tiny, tmp_path / "zeros", lora_A=0.0, lora_B=0.0)))


WORDS = [f"w{k}" for k in range(40)]


def written(folder: Path, kind: str, rows: np.ndarray) -> Path:
    """The vectors as text, as word2vec binary, or in evenhand's own layout."""
    rows = rows.astype("<f4")
    path = folder / f"v.{kind}"
    if kind == "txt":
        lines = (f"{w} {' '.join(map(str, row.tolist()))}\n" for w, row in zip(WORDS, rows))
        path.write_text("".join(lines))
    elif kind == "bin":
        body = b"".join(w.encode() + b" " + r.tobytes() for w, r in zip(WORDS, rows, strict=True))
        path.write_bytes(f"{len(rows)} {rows.shape[1]}\n".encode() + body)
    else:
        path.mkdir()
        np.save(path / "vectors.npy", rows)
        write_words(path / "words.parquet", WORDS)
    return path


@pytest.mark.parametrize("kind", ["txt", "bin", "folder"])
@pytest.mark.parametrize("large", [0, 1 << 30])
def test_vectors_without_content_are_refused(tmp_path: Path, kind: str, large: int) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 5))
    assert len(open_vectors(written(tmp_path, kind, rows), large=large)) == 40
    cases = {
        "about 100 % of its vectors are 0": np.zeros((40, 5)),
        "about 60 % of its vectors are 0": np.where(np.arange(40)[:, None] < 16, rows, 0.0),
        "all vectors are equal": np.tile(rows[0], (40, 1)),
    }
    for k, (said, given) in enumerate(cases.items()):
        (tmp_path / str(k)).mkdir()
        path = written(tmp_path / str(k), kind, given)
        with pytest.raises(DataError, match=f"{re.escape(str(path))}: {said}"):
            open_vectors(path, large=large)


def test_some_words_without_a_vector_are_usual(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 5))
    rows[5:20] = 0.0
    assert len(open_vectors(written(tmp_path, "txt", rows))) == 40


def test_an_audit_of_equal_vectors_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "txt", np.ones((40, 5)))
    with pytest.raises(DataError, match="all vectors are equal"):
        eh.load_model(str(path))


def test_the_dense_layer_of_a_sentence_model_is_looked_at(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    from evenhand.models.loading.sentence import _dense

    held = {"linear.weight": np.zeros((3, 4), "f4"), "linear.bias": np.zeros(3, "f4")}
    save_file(held, tmp_path / "model.safetensors")
    facts = {"in_features": 4, "out_features": 3, "bias": True,
             "activation_function": "torch.nn.modules.linear.Identity"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="0 in every place"):
        _dense(tmp_path, "cpu")
