"""GGUF files: whole, themselves, and read without what lies beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import ModelError
from evenhand.models.loading.gguf import converted
from models.test_begin_tokens import gguf_file
from trust.hostile import CODE


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))


def spoiled(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, drop: str = "", layers: int = 1
) -> Path:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter
    add, count = writer.add_tensor, writer.add_block_count
    monkeypatch.setattr(
        writer, "add_tensor", lambda self, name, *a: None if name == drop else add(self, name, *a)
    )
    monkeypatch.setattr(writer, "add_block_count", lambda self, n: count(self, layers))
    return gguf_file(path)


@pytest.mark.parametrize(
    "drop",
    ["token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight"],
)
def test_a_file_without_a_tensor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drop: str
) -> None:
    path = spoiled(tmp_path / "x.gguf", monkeypatch, drop=drop)
    with pytest.raises(ModelError, match=r"x\.gguf"):
        converted(path)


@pytest.mark.parametrize("layers", [0, 2, 200_000])
def test_a_file_with_another_number_of_layers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    path = spoiled(tmp_path / "x.gguf", monkeypatch, layers=layers)
    with pytest.raises(ModelError, match="num_hidden_layers"):
        converted(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_one_paragraph(tmp_path: Path, share: float) -> None:
    path = gguf_file(tmp_path / "x.gguf")
    raw = path.read_bytes()
    path.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ModelError, match=r"x\.gguf") as caught:
        converted(path)
    assert "\n" not in str(caught.value)


def test_what_lies_beside_a_file_is_neither_read_nor_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    for folder in (alone, beside):
        folder.mkdir()
        gguf_file(folder / "x.gguf")
    mark = tmp_path / "was-run"
    (beside / "evil.py").write_text(CODE.format(mark=str(mark)))
    names = ("AutoConfig", "AutoModelForCausalLM")
    code: dict[str, Any] = dict.fromkeys(names, "evil.Evil")
    code["AutoTokenizer"] = ["evil.Evil", None]
    (beside / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": code}))
    said = {"auto_map": code, "tokenizer_class": "Evil", "bos_token": "a", "chat_template": "x"}
    (beside / "tokenizer_config.json").write_text(json.dumps(said))
    monkeypatch.setattr("builtins.input", lambda *a: "y")
    held = []
    for folder in (alone, beside):
        monkeypatch.setenv("EVENHAND_CACHE", str(folder / "cache"))
        made = converted(folder / "x.gguf")
        held.append({f.name: f.read_bytes() for f in made.iterdir()})
    assert not mark.exists()
    assert held[0] == held[1]


def place_of(raw: bytes, name: str) -> int:
    """Where a GGUF file says at which byte a tensor begins: behind name, shape and kind."""
    at = raw.index(len(name).to_bytes(8, "little") + name.encode()) + 8 + len(name)
    dimensions = int.from_bytes(raw[at : at + 4], "little")
    return at + 4 + 8 * dimensions + 4


def told_place(raw: bytes, name: str) -> int:
    at = place_of(raw, name)
    return int.from_bytes(raw[at : at + 8], "little")


@pytest.mark.parametrize("way", ["as another", "inside another", "before all", "in the header"])
def test_tensors_that_share_bytes_are_refused(tmp_path: Path, way: str) -> None:
    path = gguf_file(tmp_path / "x.gguf")
    raw = path.read_bytes()
    one, two = "blk.0.attn_q.weight", "blk.0.attn_k.weight"
    place = {
        "as another": told_place(raw, two),
        "inside another": told_place(raw, two) + 32,
        "before all": 0,
        "in the header": 2**64 - 64,
    }[way]
    at = place_of(raw, one)
    path.write_bytes(raw[:at] + place.to_bytes(8, "little") + raw[at + 8 :])
    with pytest.raises(ModelError, match=r"x\.gguf") as caught:
        converted(path)
    assert "\n" not in str(caught.value)
    if way != "in the header":
        assert "do not share bytes" in str(caught.value)


def test_tensors_side_by_side_are_read(tmp_path: Path) -> None:
    assert (converted(gguf_file(tmp_path / "x.gguf")) / "model.safetensors").is_file()
