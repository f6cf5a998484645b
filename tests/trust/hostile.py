"""Ways to spoil a checkpoint folder: `SPOILED[name](folder)` changes it in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Spoil = Callable[[Path], None]
CODE = "import pathlib\npathlib.Path({mark!r}).touch()\n"


def config(folder: Path, file: str = "config.json", **changes: Any) -> None:
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def tensors(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    held = load_file(path)
    change(held)
    path.unlink()
    save_file(held, path, metadata={"format": "pt"})


def without(word: str) -> Spoil:
    """Every tensor whose name holds the word is gone."""

    def change(held: dict[str, np.ndarray]) -> None:
        gone = [name for name in held if word in name]
        assert gone, word
        for name in gone:
            del held[name]

    return lambda folder: tensors(folder, change)


def with_tensor(name: str) -> Spoil:
    return lambda folder: tensors(folder, lambda held: held.update({name: np.ones((4, 4), "f4")}))


def setting(**changes: Any) -> Spoil:
    return lambda folder: config(folder, **changes)


def cut(file: str, keep: float) -> Spoil:
    def change(folder: Path) -> None:
        raw = (folder / file).read_bytes()
        (folder / file).write_bytes(raw[: int(len(raw) * keep)])

    return change


def text(file: str, content: str | bytes) -> Spoil:
    raw = content.encode() if isinstance(content, str) else content
    return lambda folder: void((folder / file).write_bytes(raw))


def void(value: Any) -> None:
    """Nothing, whatever was given."""


def gone(*files: str) -> Spoil:
    return lambda folder: [(folder / file).unlink() for file in files] and None


def index(names: Any) -> Spoil:
    """The weights under other names, by an index."""

    def change(folder: Path) -> None:
        from safetensors.numpy import load_file

        held = dict.fromkeys(load_file(folder / "model.safetensors"), names)
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        body = {"metadata": {}, "weight_map": held} if isinstance(names, str) else names
        (folder / "model.safetensors.index.json").write_text(json.dumps(body))

    return change


def beyond(folder: Path) -> None:
    """A word whose number has no embedding."""
    path = folder / "tokenizer.json"
    held = json.loads(path.read_text())
    held["model"]["vocab"]["zzzz"] = 100_000
    path.write_text(json.dumps(held))


def wordless(folder: Path) -> None:
    """A tokenizer of special tokens only."""
    path = folder / "tokenizer.json"
    held = json.loads(path.read_text())
    special = {t["content"] for t in held["added_tokens"]}
    held["model"]["vocab"] = {k: v for k, v in held["model"]["vocab"].items() if k in special}
    held["model"]["merges"] = []
    path.write_text(json.dumps(held))


def own_code(mark: Path, kind: str = "") -> Spoil:
    """A configuration that names code in the folder; `kind`: as an unknown type of model."""

    def change(folder: Path) -> None:
        (folder / "evil.py").write_text(CODE.format(mark=str(mark)))
        names = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM")
        code = dict.fromkeys(names, "evil.Evil") | {"AutoTokenizer": ["evil.Evil", None]}
        config(folder, auto_map=code, **({"model_type": kind} if kind else {}))
        config(folder, "tokenizer_config.json", auto_map=code)

    return change


LLAMA: dict[str, Spoil] = {
    "no embedding": without("embed_tokens"),
    "no layer 1": without("layers.1."),
    "no attention": without("self_attn"),
    "no q": without("layers.0.self_attn.q_proj"),
    "no norm": without("model.norm"),
    "no tensor at all": without(""),
    "head untied and missing": setting(tie_word_embeddings=False),
    "layers too few in the configuration": setting(num_hidden_layers=1),
    "layers too many": setting(num_hidden_layers=3),
    "layers -1": setting(num_hidden_layers=-1),
    "layers 0": setting(num_hidden_layers=0),
    "layers 200,000": setting(num_hidden_layers=200_000),
    "layers a word": setting(num_hidden_layers="two"),
    "layers 1.5": setting(num_hidden_layers=1.5),
    "layers none": setting(num_hidden_layers=None),
    "layers a list": setting(num_hidden_layers=[2]),
    "hidden size 10^12": setting(hidden_size=10**12),
    "hidden size 0": setting(hidden_size=0),
    "hidden size other": setting(hidden_size=64),
    "heads 0": setting(num_attention_heads=0),
    "heads -4": setting(num_attention_heads=-4),
    "heads other": setting(num_attention_heads=3, num_key_value_heads=3),
    "vocabulary 10^12": setting(vocab_size=10**12),
    "vocabulary -1": setting(vocab_size=-1),
    "vocabulary smaller": setting(vocab_size=7),
    "inner size 10^12": setting(intermediate_size=10**12),
    "inner size other": setting(intermediate_size=65),
    "unknown type": setting(model_type="llama9"),
    "no type": setting(model_type=None),
    "another type": setting(model_type="gpt2"),
    "unknown activation": setting(hidden_act="nonsense"),
    "padding beyond": setting(pad_token_id=10**6),
    "foreign kernels": setting(_attn_implementation="someone/kernel"),
    "foreign kernels by the other key": setting(attn_implementation="someone/kernel"),
    "extra layer": with_tensor("model.layers.7.mlp.up_proj.weight"),
    "extra bias": with_tensor("model.layers.0.mlp.up_proj.bias"),
    "extra bias of the head": with_tensor("lm_head.bias"),
    "wrong shape": lambda f: tensors(
        f, lambda h: h.update({"model.norm.weight": np.ones(5, "f4")})
    ),
    "config empty": text("config.json", ""),
    "config a list": text("config.json", "[]"),
    "config null": text("config.json", "null"),
    "config cut": cut("config.json", 0.5),
    "config deep": text("config.json", "[" * 100_000),
    "config not utf-8": text("config.json", b"\xff\xfe{}"),
    "no config": gone("config.json"),
    "weights cut": cut("model.safetensors", 0.9),
    "weights empty": text("model.safetensors", b""),
    "weights header cut": cut("model.safetensors", 0.001),
    "weights of a huge header": text("model.safetensors", b"\xff" * 64),
    "weights a pickle": text("model.safetensors", b"\x80\x04]\x94."),
    "no weights": gone("model.safetensors"),
    "pickled weights only": lambda f: void(
        (f / "model.safetensors").rename(f / "pytorch_model.bin")
    ),
    "index names a pickle": index("pytorch_model.bin"),
    "index names a file outside": index("../../elsewhere.safetensors"),
    "index names what is not there": index("model-00001-of-00001.safetensors"),
    "index of another shape": index([1, 2]),
    "index empty": index({"weight_map": {}}),
    "no tokenizer": gone("tokenizer.json", "tokenizer_config.json"),
    "no tokenizer.json": gone("tokenizer.json"),
    "tokenizer empty": text("tokenizer.json", ""),
    "tokenizer a list": text("tokenizer.json", "[]"),
    "tokenizer cut": cut("tokenizer.json", 0.7),
    "tokenizer knows no words": wordless,
    "tokenizer knows too many": beyond,
    "tokenizer settings a list": text("tokenizer_config.json", "[1]"),
    "tokenizer settings cut": cut("tokenizer_config.json", 0.5),
    "an adapter": text("adapter_config.json", '{"base_model_name_or_path": "x/y"}'),
}
BERT: dict[str, Spoil] = {
    "no head": without("cls.predictions"),
    "no head transform": without("transform"),
    "no layer": without("encoder.layer.0"),
    "no positions": without("position_embeddings"),
    "extra": with_tensor("bert.encoder.layer.9.output.dense.weight"),
    "layers": setting(num_hidden_layers=1),
}
