"""Folders that try to run code, wait for ever, fill the memory or pass for another model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import EvenhandError
from evenhand.models import bounded
from evenhand.models.loading.resolver import resolve
from evenhand.models.loading.transformer import folder_digest
from trust.hostile import BERT, LLAMA
from trust.hostile_more import MARK, MORE, dense, lora, pooling


@pytest.fixture
def placed(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bounded, "SECONDS", 0.5)
    shutil.copytree(tiny("causal"), tmp_path / "base")
    return Path(shutil.copytree(tiny("causal"), tmp_path / "model"))


@pytest.mark.parametrize("how", MORE)
def test_a_hostile_folder_is_refused_in_one_paragraph(placed: Path, how: str) -> None:
    MORE[how](placed)
    with pytest.raises(EvenhandError) as caught:
        resolve(str(placed))
    said = str(caught.value)
    assert len(said) < 1_500
    assert "\n" not in said
    assert not (placed.parent / MARK).exists()


@pytest.mark.parametrize("make", [lora(), dense(), pooling(pooling_mode_cls_token=True)])
def test_what_was_not_spoiled_is_loaded(placed: Path, make: Any) -> None:
    make(placed)
    assert resolve(str(placed)).fingerprint


def test_there_are_more_than_a_hundred_kinds() -> None:
    assert len({**LLAMA, **{f"bert {k}": v for k, v in BERT.items()}, **MORE}) > 100


def test_a_template_is_stopped_and_the_process_goes_on() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(bounded.Unbounded, match="seconds"), bounded.bounded(0.05):
        endless()
    with pytest.raises(bounded.Unbounded, match="MiB of memory"), bounded.bounded():
        bytes(1 << 36)
    assert len(bytes(1 << 20)) == 1 << 20


READ: set[str] | None = None


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if READ is not None and event == "open" and isinstance(given[0], str | Path):
        READ.add(os.path.realpath(given[0]))


@pytest.mark.parametrize("kind", ["causal", "masked", "encoder"])
def test_every_file_that_is_opened_is_in_the_fingerprint(
    tiny: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened by Python while loading, hashes being remembered already; each is then changed."""
    import sys

    global READ
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    folder = Path(shutil.copytree(tiny(kind), tmp_path / "model"))
    for name in ("special_tokens_map.json", "added_tokens.json", "generation_config.json"):
        if not (folder / name).exists():
            (folder / name).write_text("{}")
    form = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(form)
    (folder / "chat_templates").mkdir()
    (folder / "chat_templates" / "other.jinja").write_text(form)
    before = resolve(str(folder)).fingerprint
    if not getattr(sys, "_evenhand_hooked", False):
        sys.addaudithook(_hook)
        sys._evenhand_hooked = True  # type: ignore[attr-defined]
    READ = set()
    try:
        assert resolve(str(folder)).fingerprint == before
        opened = READ
    finally:
        READ = None
    own = [Path(p) for p in opened if p.startswith(f"{folder.resolve()}/") and Path(p).is_file()]
    names = {p.relative_to(folder.resolve()).as_posix() for p in own}
    assert {"config.json", "tokenizer_config.json", "chat_template.jinja"} <= names
    whole = folder_digest(folder)
    for path in [*own, folder / "model.safetensors", folder / "bpe.codes"]:
        raw = path.read_bytes() if path.exists() else b"x"
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        assert folder_digest(folder) != whole, path
        path.write_bytes(raw)
        os.utime(path, ns=(0, 0))
        if path.name == "bpe.codes":
            path.unlink()
    assert folder_digest(folder) == whole
