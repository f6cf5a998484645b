"""More ways to spoil a checkpoint: templates, links, weights that are none, modules, adapters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trust.hostile import CODE, Spoil, config, tensors, text, void

MARK = "was-run"
"""A file that appears beside the model when any of its code is run."""


def template(source: str) -> Spoil:
    return text("chat_template.jinja", source)


def settings_template(folder: Path) -> None:
    config(folder, "tokenizer_config.json", chat_template="{{ ''.__class__ }}")


def shell(folder: Path, form: str) -> None:
    mark = str(folder.parent / MARK)
    (folder / "chat_template.jinja").write_text(form.replace("MARK", mark))


def linked(name: str) -> Spoil:
    """A file or folder inside that is a link out, with just the contents it had."""

    def change(folder: Path) -> None:
        target = folder.parent / f"elsewhere-{Path(name).name}"
        (folder / name).rename(target)
        (folder / name).symlink_to(target)

    return change


def linked_to(name: str, target: str) -> Spoil:
    """A file that is a link to some place."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def linked_module(folder: Path) -> None:
    """A sentence transformer whose pooling lies elsewhere."""
    modules(TRUNK, POOL)(folder)
    linked("1_Pooling")(folder)


def linked_shard(folder: Path) -> None:
    """An index that names a file inside, which is a link out."""
    from safetensors.numpy import load_file

    shard = "model-00001-of-00001.safetensors"
    named = dict.fromkeys(load_file(folder / "model.safetensors"), shard)
    (folder / "model.safetensors").rename(folder / shard)
    body = {"metadata": {}, "weight_map": named}
    (folder / "model.safetensors.index.json").write_text(json.dumps(body))
    linked(shard)(folder)


def false_snapshot(folder: Path) -> None:
    """Links as the Hub's cache has them, in a folder that is none."""
    (folder.parent / "blobs").mkdir()
    (folder / "config.json").rename(folder.parent / "blobs" / "0")
    (folder / "config.json").symlink_to("../blobs/0")


def pipe(name: str) -> Spoil:
    """A file that nobody ever writes to: opening it would wait for ever."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def sparse(name: str, size: int) -> Spoil:
    def change(folder: Path) -> None:
        with open(folder / name, "r+b") as file:
            file.truncate(size)

    return change


def cast(kind: str) -> Spoil:
    def change(held: dict[str, np.ndarray]) -> None:
        for name in list(held):
            held[name] = held[name].astype(kind)

    return lambda folder: tensors(folder, change)


def numbers(value: float) -> Spoil:
    """Weights that are not numbers."""

    def change(held: dict[str, np.ndarray]) -> None:
        for name in list(held):
            held[name] = np.full_like(held[name], value)

    return lambda folder: tensors(folder, change)


def one_nan(folder: Path) -> None:
    def change(held: dict[str, np.ndarray]) -> None:
        held["model.norm.weight"][0] = np.nan

    tensors(folder, change)


def twice(folder: Path) -> None:
    """One tensor in two files, with other numbers."""
    from safetensors.numpy import load_file, save_file

    held = load_file(folder / "model.safetensors")
    save_file(held, folder / "model-00001-of-00002.safetensors", metadata={"format": "pt"})
    other = {"model.norm.weight": held["model.norm.weight"] + 1}
    save_file(other, folder / "model-00002-of-00002.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    named = dict.fromkeys(held, "model-00001-of-00002.safetensors")
    named["model.norm.weight"] = "model-00002-of-00002.safetensors"
    body = {"metadata": {}, "weight_map": named}
    (folder / "model.safetensors.index.json").write_text(json.dumps(body))


def header(change: Any) -> Spoil:
    """Another header in front of the same numbers."""

    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        told = json.loads(raw[8 : 8 + size])
        change(told)
        made = json.dumps(told).encode()
        path.write_bytes(len(made).to_bytes(8, "little") + made + raw[8 + size :])

    return spoil


def overlapping(told: dict[str, Any]) -> None:
    names = [n for n in told if n != "__metadata__"]
    like = {json.dumps([told[n]["dtype"], told[n]["shape"]]): n for n in names}
    for name in names:
        other = like[json.dumps([told[name]["dtype"], told[name]["shape"]])]
        if other != name:
            told[name]["data_offsets"] = told[other]["data_offsets"]
            return


def beyond_the_end(told: dict[str, Any]) -> None:
    name = next(n for n in told if n != "__metadata__")
    told[name]["data_offsets"] = [0, 10**15]


def modules(*rows: dict[str, Any]) -> Spoil:
    """As sentence-transformers writes folders."""

    def change(folder: Path) -> None:
        (folder / "modules.json").write_text(json.dumps(rows))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        (folder / "evil.py").write_text(CODE.format(mark=str(folder.parent / MARK)))

    return change


TRUNK = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOL = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}


def adapter(**given: Any) -> Spoil:
    """The folder becomes an adapter, as PEFT writes them."""

    def change(folder: Path) -> None:
        (folder / "evil.py").write_text(CODE.format(mark=str(folder.parent / MARK)))
        told = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 2, "lora_alpha": 2,
                "target_modules": ["q_proj"], **given}  # fmt: skip
        (folder / "adapter_config.json").write_text(json.dumps(told))
        (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
        (folder / "config.json").unlink()

    return change


def lora(change: Callable[[dict[str, np.ndarray]], Any] = len, **given: Any) -> Spoil:
    """An adapter that fits the base, before `change` and further settings."""

    def spoil(folder: Path) -> None:
        from safetensors.numpy import save_file

        adapter(base_model_name_or_path="../base", **given)(folder)
        held, rng = {}, np.random.default_rng(0)
        for layer in range(2):
            name = f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_"
            held[f"{name}A.weight"] = rng.normal(size=(2, 32)).astype("f4")
            held[f"{name}B.weight"] = rng.normal(size=(32, 2)).astype("f4")
        change(held)
        save_file(held, folder / "adapter_model.safetensors", metadata={"format": "pt"})

    return spoil


LAYER = "base_model.model.model.layers.{}.self_attn.q_proj.lora_B.weight"


def dense(change: Callable[[dict[str, np.ndarray]], Any] = len) -> Spoil:
    """A sentence transformer with a layer behind its pooling, before `change`."""

    def spoil(folder: Path) -> None:
        from safetensors.numpy import save_file

        kind = "sentence_transformers.models.Dense"
        modules(TRUNK, POOL, {"idx": 2, "name": "2", "path": "2_Dense", "type": kind})(folder)
        place = folder / "2_Dense"
        place.mkdir()
        (place / "config.json").write_text('{"in_features": 32, "out_features": 8, "bias": true}')
        weight = np.random.default_rng(0).normal(size=(8, 32)).astype("f4")
        held = {"linear.weight": weight, "linear.bias": np.zeros(8, "f4")}
        change(held)
        save_file(held, place / "model.safetensors")

    return spoil


def pooling(**told: Any) -> Spoil:
    def change(folder: Path) -> None:
        modules(TRUNK, POOL)(folder)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(told))

    return change


def own_head(folder: Path) -> None:
    """Another head than the embedding, which the configuration says it is."""

    def change(held: dict[str, np.ndarray]) -> None:
        held["lm_head.weight"] = held["model.embed_tokens.weight"][::-1].copy()

    tensors(folder, change)
    config(folder, tie_word_embeddings=True)


def tokenizer(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "tokenizer.json"
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))

    return spoil


def one_number(held: dict[str, Any]) -> None:
    words = held["model"]["vocab"]
    words["man"] = words[next(w for w in words if w.endswith("woman"))]


def added(number: int, special: bool) -> Spoil:
    """A word of its own for "woman"."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    row = {"id": number, "content": "woman", "special": special, **flags}
    return tokenizer(lambda held: held["added_tokens"].append(row))


MORE: dict[str, Spoil] = {
    "template reaches for classes": template("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    "template reaches for os": lambda f: shell(
        f, "{{ cycler.__init__.__globals__.os.system('touch MARK') }}"
    ),
    "template reaches for popen": lambda f: shell(
        f, "{{ lipsum.__globals__['os'].popen('touch MARK').read() }}"
    ),
    "template in the settings reaches out": settings_template,
    "template includes a file": template("{% include '/etc/passwd' %}"),
    "template imports a file": template("{% from '/etc/passwd' import x %}"),
    "template without end": template(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    ),
    "template calls itself": template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
    "template of a huge range": template("{{ range(999999999999)|list }}"),
    "template fills the memory": template("{{ 'a' * 99999999999 }}"),
    "template doubles": template(
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}"
        "{% endfor %}{{ n.x }}"
    ),
    "template of powers": template("{{ 9 ** 9 ** 9 }}"),
    "template too deep": template("{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}"),
    "template without a place": template("hello"),
    "template is broken": template("{% for %}"),
    "template is bytes": lambda f: void((f / "chat_template.jinja").write_bytes(b"\xff\xfe\x00")),
    "configuration is a pipe": pipe("config.json"),
    "weights are a pipe": pipe("model.safetensors"),
    "tokenizer is a pipe": pipe("tokenizer.json"),
    "configuration is a link out": linked("config.json"),
    "weights are a link out": linked("model.safetensors"),
    "tokenizer is a link out": linked("tokenizer.json"),
    "settings of the tokenizer are a link out": linked("tokenizer_config.json"),
    "template is a link to a file of the system": linked_to("chat_template.jinja", "/etc/passwd"),
    "weights are a link to a device": linked_to("model.safetensors", "/dev/zero"),
    "weights are a link to themselves": linked_to("model.safetensors", "model.safetensors"),
    "a named weight file is a link out": linked_shard,
    "a module is a link out": linked_module,
    "links of a cache that is none": false_snapshot,
    "modules too deep": modules(TRUNK, {**POOL, "path": "a/1_Pooling"}),
    "weights of all NaN": numbers(float("nan")),
    "weights of all infinity": numbers(float("inf")),
    "one NaN among the weights": one_nan,
    "weights are whole numbers": cast("int64"),
    "weights are bytes": cast("uint8"),
    "weights end too late": sparse("model.safetensors", 1 << 40),
    "header names one place twice": header(overlapping),
    "header leads beyond the end": header(beyond_the_end),
    "header of another kind": header(
        lambda told: [row.update(dtype="F8_XXX") for n, row in told.items() if n != "__metadata__"]
    ),
    "one tensor in two files": twice,
    "modules of a foreign class": modules(TRUNK, {**POOL, "type": "evil.Evil"}),
    "modules begin with a foreign class": modules({**TRUNK, "type": "evil.Evil"}, POOL),
    "modules outside": modules({**TRUNK, "path": "../../elsewhere"}, POOL),
    "modules without pooling": modules(TRUNK),
    "modules a word": text("modules.json", '"x"'),
    "adapter without a base": adapter(),
    "adapter on itself": adapter(base_model_name_or_path="."),
    "adapter on a file outside": adapter(base_model_name_or_path="/etc/passwd"),
    "adapter on what is not there": adapter(base_model_name_or_path="../nothing"),
    "adapter with code": adapter(
        base_model_name_or_path="../base",
        auto_mapping={"base_model_class": "Evil", "parent_library": "evil"},
    ),
    "adapter of an unknown kind": adapter(
        base_model_name_or_path="../base", peft_type="EVIL"
    ),
    "quantised by foreign code": lambda f: config(
        f, quantization_config={"quant_method": "evil", "bits": 4}
    ),
    "quantised weights that are not": lambda f: config(
        f, quantization_config={"quant_method": "gptq", "bits": 4}
    ),
    "tokenizer class of its own": lambda f: config(
        f, "tokenizer_config.json", tokenizer_class="EvilTokenizer",
        auto_map={"AutoTokenizer": ["evil.Evil", None]},
    ),
    "vocabulary of lists": text(
        "tokenizer.json", '{"model": {"type": "BPE", "vocab": [], "merges": []}}'
    ),
    "a head beside a tied embedding": own_head,
    "two words of one number": tokenizer(one_number),
    "words are cut at random": tokenizer(lambda held: held["model"].update(dropout=0.5)),
    "an added token without an embedding": added(40, False),
    "a special token like a word without an embedding": added(5000, True),
    "adapter of which a tensor is gone": lora(lambda held: held.pop(LAYER.format(0))),
    "adapter for a layer that is not there": lora(
        lambda held: held.update({LAYER.format(9): np.ones((32, 2), "f4")})
    ),
    "adapter of NaN": lora(lambda held: held[LAYER.format(1)].fill(np.nan)),
    "adapter of another rank": lora(r=5),
    "adapter for modules that are not there": lora(target_modules=["nope"]),
    "adapter of infinite strength": lora(lora_alpha=float("inf")),
    "adapter whose pattern never ends": lora(target_modules=r"^(\w+\.?)*!$"),
    "adapter whose pattern is none": lora(target_modules="("),
    "a dense layer of NaN": dense(lambda held: held["linear.weight"].fill(np.nan)),
    "a dense layer without its bias": dense(lambda held: held.pop("linear.bias")),
    "a dense layer with another tensor": dense(
        lambda held: held.update(other=np.ones(3, "f4"))
    ),
    "a pooling of nothing": pooling(pooling_mode_mean_tokens=False),
    "a pooling switched by a word": pooling(pooling_mode_mean_tokens="yes"),
    "positions -1": lambda f: config(f, max_position_embeddings=-1),
    "positions a word": lambda f: config(f, max_position_embeddings="many"),
    "norm of NaN": lambda f: config(f, rms_norm_eps=float("nan")),
    "rope of another kind": lambda f: config(f, rope_scaling={"rope_type": "evil", "factor": 2.0}),
}  # fmt: skip
"""Each is refused in one paragraph."""
