"""Saved mitigations and vectors: whole, and not below themselves; full and read-only disks."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, ModelError
from evenhand.models.loading.resolver import MOST_STACKED, resolve
from evenhand.models.loading.saved import FACTS, MOVED
from evenhand.models.vectors.files import open_vectors, write_words
from evenhand.seals import digests, write_sealed
from evenhand.writing import disk_fault, drafted, replacing, require_place
from in_process import evenhand


def vectors(folder: Path) -> Path:
    folder.mkdir()
    np.save(folder / "vectors.npy", np.eye(3, dtype=np.float32))
    write_words(folder / "words.parquet", ["a", "b", "c"])
    write_sealed(folder / MOVED, {"format": 1}, digests(folder))
    return folder


@pytest.mark.parametrize("name", ["vectors.npy", "words.parquet", MOVED])
def test_vectors_that_are_not_what_was_saved_are_refused(tmp_path: Path, name: str) -> None:
    folder = vectors(tmp_path / "v")
    assert len(open_vectors(folder)) == 3
    raw = bytearray((folder / name).read_bytes())
    raw[-9 if name.endswith("npy") else len(raw) // 2] ^= 1
    (folder / name).write_bytes(bytes(raw))
    with pytest.raises(ModelError, match="damaged|cannot be read"):
        open_vectors(folder)
    with pytest.raises(ModelError, match="Make"):
        resolve(str(folder))


@pytest.mark.parametrize("family", ["vectors", "training", "head", "hidden", "reweighting"])
def test_a_mitigation_below_itself_is_refused(tmp_path: Path, family: str) -> None:
    folder = vectors(tmp_path / "v")
    facts = {"format": 1, "family": family, "model": {"spec": str(folder), "kind": "vectors"}}
    (folder / FACTS).write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="names itself"):
        resolve(str(folder))


def test_a_tower_of_mitigations_is_refused(tmp_path: Path) -> None:
    places = [tmp_path / str(k) for k in range(MOST_STACKED + 3)]
    for one, two in itertools.pairwise(places):
        one.mkdir()
        facts = {"format": 1, "family": "head", "model": {"spec": str(two)}}
        (one / FACTS).write_text(json.dumps(facts))
    vectors(places[-1])
    with pytest.raises(ModelError, match="stacked on more than"):
        resolve(str(places[0]))


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "out", Path("/proc/evenhand/out")):
        with pytest.raises(DataError, match="cannot be written.*--out"):
            require_place(place)
    done = evenhand("corpus", "clean", "no.txt", "--out", "/proc/evenhand/c.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    require_place(tmp_path / "new" / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_below_a_library_is_one_sentence(tmp_path: Path) -> None:
    class SafetensorError(Exception):
        pass

    def fill(fault: Exception) -> None:
        with drafted(tmp_path / "out") as draft:
            (draft / "x").write_text("half")
            raise fault

    full = SafetensorError(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )
    with pytest.raises(DataError, match=r"cannot be written \(No space left on device\)"):
        fill(full)
    with pytest.raises(SafetensorError):
        fill(SafetensorError("shared memory"))
    assert disk_fault(ValueError("x")) == ""
    assert list(tmp_path.iterdir()) == []


def test_files_of_killed_writers_are_taken_away(tmp_path: Path) -> None:
    dead = 2**22 + 1  # more than there can be
    (tmp_path / f".a.txt.{dead}.tmp").write_text("half")
    (tmp_path / f".a.{dead}.draft").mkdir()
    with replacing(tmp_path / "a.txt") as file:
        file.write(b"whole")
    with drafted(tmp_path / "a") as draft, drafted(draft) as same:
        assert same == draft
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.txt"]


def test_a_report_that_was_changed_is_not_shown(tmp_path: Path) -> None:
    import made_runs
    from evenhand.runs.record import Run, RunWriter

    run = made_runs.ordinary(tmp_path / "r")
    RunWriter(run.folder).page("<p>nothing found</p>")
    assert Run.open(run.folder).page() == b"<p>nothing found</p>"
    run.report.write_text("<p>something found</p>")
    done: Any = evenhand("show", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "report.html is damaged" in done.stderr
    assert "evenhand report r" in done.stderr
    assert evenhand("report", "r", cwd=tmp_path).returncode == 0
    assert evenhand("show", "r", cwd=tmp_path).returncode == 0
