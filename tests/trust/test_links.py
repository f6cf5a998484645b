"""Links in model folders: none leads out, and those of the Hub's cache are its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import ModelError
from evenhand.models.loading.checkpoint import folder_of
from evenhand.models.loading.resolver import kind_of_spec, resolve
from evenhand.train.common import load_base

REVISION = "0" * 40


@pytest.fixture
def snapshot(tiny: Any, tmp_path: Path) -> Path:
    """A model as the Hub's cache holds it."""
    home = tmp_path / "hub" / "models--someone--tiny"
    folder = Path(shutil.copytree(tiny("masked"), home / "snapshots" / REVISION))
    (home / "blobs").mkdir()
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(REVISION)
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(home / "blobs" / str(number))
        path.symlink_to(f"../../blobs/{number}")
    return folder


def test_a_snapshot_of_the_hub_is_loaded(
    snapshot: Path, tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its folder, by its name, through a link to the cache and as the base of a training."""
    hub: Any = pytest.importorskip("huggingface_hub")
    whole = resolve(tiny("masked")).fingerprint
    assert resolve(str(snapshot)).fingerprint == whole
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    assert folder_of("someone/tiny") == snapshot
    assert resolve("someone/tiny").fingerprint == whole
    (tmp_path / "other").symlink_to(tmp_path / "hub")
    away = tmp_path / "other" / snapshot.relative_to(tmp_path / "hub")
    assert resolve(str(away)).fingerprint == whole
    assert load_base("span", "AutoModelForQuestionAnswering", str(snapshot))


@pytest.mark.parametrize("way", ["a file", "another model", "all of its files"])
def test_a_snapshot_that_leads_elsewhere_is_refused(
    snapshot: Path, tmp_path: Path, way: str
) -> None:
    blobs, config = snapshot.parents[1] / "blobs", snapshot / "config.json"
    file = Path(os.path.realpath(config))
    if way == "all of its files":
        blobs.rename(tmp_path / "blobs")
        blobs.symlink_to(tmp_path / "blobs")
    else:
        other = tmp_path / ("hub/models--someone--else/blobs" if way == "another model" else "x")
        other.mkdir(parents=True)
        shutil.copy(file, other / "0")
        config.unlink()
        config.symlink_to(other / "0")
    for use in (resolve, kind_of_spec, folder_of):
        with pytest.raises(ModelError, match="points outside the model's folder"):
            use(str(snapshot))


def test_links_inside_a_folder_and_to_it_are_followed(tiny: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("causal"), tmp_path / "model"))
    (folder / "model.safetensors").rename(folder / "weights")
    (folder / "model.safetensors").symlink_to("weights")
    (tmp_path / "link").symlink_to(folder)
    assert resolve(str(tmp_path / "link")).kind == "causal"


def test_a_training_reads_no_file_elsewhere(tiny: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("masked"), tmp_path / "model"))
    (folder / "model.safetensors").rename(tmp_path / "weights")
    (folder / "model.safetensors").symlink_to(tmp_path / "weights")
    with pytest.raises(ModelError, match="points outside the model's folder"):
        load_base("span", "AutoModelForQuestionAnswering", str(folder))
