"""Sentence transformers, objects and folders: our vectors are their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError
from evenhand.requests import Embed

pytest.importorskip("sentence_transformers", reason="needs the dev extra")
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "the man worked as a doctor",
    "She said that was not a nurse ?",
    "flight",
    "Jennifer lives in the same city with Gerald . " * 3,
]
PROMPT = {"prompts": {"query": "who is : "}, "default_prompt_name": "query"}
MADE = {
    "cls": (("cls",), (), {}),
    "mean": (("mean",), (), {}),
    "max": (("max",), (), {}),
    "lasttoken": (("lasttoken",), (), {}),
    "weightedmean": (("weightedmean",), (), {}),
    "root": (("mean_sqrt_len_tokens",), (), {}),
    "both": (("cls", "mean"), (), {}),
    "normalised": (("mean",), ("normalise",), {}),
    "cls normalised": (("cls",), ("normalise",), {}),
    "dense": (("cls",), ("dense", "normalise"), {}),
    "prompt": (("mean",), (), PROMPT),
    "without prompt": (("mean",), ("norm",), PROMPT),
}


def sentence_transformer(folder: str, case: str) -> Any:
    """A small untrained one."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

    torch.manual_seed(1)
    modes, more, options = MADE[case]
    pooling = Pooling(32, pooling_mode=modes, include_prompt=case != "without prompt")
    made = {"dense": lambda: Dense(32, 16), "normalise": Normalize, "norm": lambda: LayerNorm(32)}
    modules = [Transformer(folder, max_seq_length=12), pooling, *(made[m]() for m in more)]
    return SentenceTransformer(modules=modules, device="cpu", **options)


def vectors(given: Any, texts: list[str] = TEXTS) -> np.ndarray:
    model = eh.load_model(given)
    assert model.kind == "encoder"
    asked = Embed(texts)
    return np.asarray(model.answer(asked, model.prepare(asked))["vector"])


@pytest.mark.parametrize("case", MADE)
def test_vectors_equal_its_own(tiny: Any, tmp_path: Path, case: str) -> None:
    st = sentence_transformer(tiny("encoder"), case)
    want = st.encode(TEXTS)
    assert np.abs(vectors(st) - want).max() < 1e-5
    st.save_pretrained(str(tmp_path / "saved"))
    assert np.abs(vectors(tmp_path / "saved") - want).max() < 1e-5


def test_a_folder_is_read_with_its_own_pooling_and_says_so(tiny: Any, tmp_path: Path) -> None:
    sentence_transformer(tiny("encoder"), "dense").save_pretrained(str(tmp_path / "st"))
    model = eh.load_model(tmp_path / "st")
    assert model.describe()["pooling"] == "cls pooling, dense, normalised"
    plain = eh.load_model(tiny("encoder"))
    assert "pooling" not in plain.describe()


def test_one_that_was_trained_as_a_masked_model_is_an_encoder(tiny: Any, tmp_path: Path) -> None:
    """The transformer of many is saved as a masked model; its folder is a sentence model's."""
    import json
    import shutil

    st = sentence_transformer(tiny("encoder"), "cls")
    st.save_pretrained(str(tmp_path / "st"))
    config = tmp_path / "st" / "config.json"
    config.write_text(
        json.dumps({**json.loads(config.read_text()), "architectures": ["BertForMaskedLM"]})
    )
    assert np.abs(vectors(tmp_path / "st") - st.encode(TEXTS)).max() < 1e-5
    apart = tmp_path / "older"  # older folders keep the transformer in a folder of its own
    shutil.copytree(tmp_path / "st", apart)
    (apart / "0_Transformer").mkdir()
    for file in apart.iterdir():
        if file.is_file() and file.name not in (
            "modules.json",
            "config_sentence_transformers.json",
        ):
            file.rename(apart / "0_Transformer" / file.name)
    modules = json.loads((apart / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (apart / "modules.json").write_text(json.dumps(modules))
    assert np.abs(vectors(apart) - st.encode(TEXTS)).max() < 1e-5


def test_another_pooling_is_another_model(tiny: Any) -> None:
    prints = {
        eh.load_model(sentence_transformer(tiny("encoder"), case)).fingerprint
        for case in ("cls", "mean", "prompt", "cls normalised")
    }
    assert len(prints) == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: m[1].update(type="somebody.models.Wild"), "unknown module 'Wild'"),
        (lambda m: m.pop(1), "names no Pooling"),
        (lambda m: m[0].update(type="x.models.BoW"), "begins with 'BoW'"),
        (lambda m: m[1].update(path="../elsewhere"), "is not a folder beside it"),
        (lambda m: m[0].pop("type"), "expected a list of modules"),
    ],
)
def test_modules_that_cannot_be_read_are_refused(
    tiny: Any, tmp_path: Path, change: Any, told: str
) -> None:
    import json

    sentence_transformer(tiny("encoder"), "cls").save_pretrained(str(tmp_path / "st"))
    path = tmp_path / "st" / "modules.json"
    modules = json.loads(path.read_text())
    change(modules)
    path.write_text(json.dumps(modules))
    with pytest.raises(ModelError, match=told):
        eh.load_model(tmp_path / "st")


def test_wrong_poolings_and_pickled_layers_are_refused(tiny: Any, tmp_path: Path) -> None:
    import json

    sentence_transformer(tiny("encoder"), "dense").save_pretrained(str(tmp_path / "st"))
    pooling = tmp_path / "st" / "1_Pooling" / "config.json"
    kept = pooling.read_text()
    pooling.write_text(json.dumps({**json.loads(kept), "pooling_mode": "median"}))
    with pytest.raises(ModelError, match="unknown pooling 'median'"):
        eh.load_model(tmp_path / "st")
    pooling.write_text(kept)
    dense = tmp_path / "st" / "2_Dense"
    config = dense / "config.json"
    held = config.read_text()
    config.write_text(json.dumps({**json.loads(held), "activation_function": "somebody.code.Wild"}))
    with pytest.raises(ModelError, match="unknown activation"):
        eh.load_model(tmp_path / "st")
    config.write_text(held)
    (dense / "model.safetensors").rename(dense / "pytorch_model.bin")
    with pytest.raises(ModelError, match="can run code and are never opened"):
        eh.load_model(tmp_path / "st")


def test_one_without_a_transformer_is_asked_as_a_whole(tiny: Any) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("encoder"))
    st = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    assert np.abs(vectors(st) - st.encode(TEXTS)).max() < 1e-5


def test_a_static_model_of_model2vec(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("model2vec", reason="needs the dev extra")
    from model2vec import StaticModel
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("encoder"))
    rows = np.random.default_rng(0).normal(size=(len(tokenizer), 8)).astype(np.float32)
    static = StaticModel(rows, tokenizer.backend_tokenizer)
    assert np.abs(vectors(static) - static.encode(TEXTS)).max() < 1e-6
    other = StaticModel(rows + 1, tokenizer.backend_tokenizer)
    assert eh.load_model(static).fingerprint != eh.load_model(other).fingerprint
    run = eh.audit(static, [{"name": "association", "tests": ["weat7"]}], out=tmp_path / "run")
    assert run.findings
