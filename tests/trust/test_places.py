"""Links that lead away and folders of other people are not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import made_runs
from evenhand.errors import RunError
from evenhand.models.loading import cache
from evenhand.runs.record import Run
from evenhand.viewer.folders import Folders


def test_links_out_of_the_runs_folder_are_not_followed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    made_runs.ordinary(runs / "own")
    away = made_runs.ordinary(tmp_path / "away").folder
    (runs / "linked").symlink_to(away)
    (runs / "half").mkdir()
    (runs / "half" / "run.json").symlink_to(away / "run.json")
    (runs / "again").symlink_to(runs / "own")
    assert set(Folders(runs).runs()) == {"own", "again"}


def test_a_table_that_is_a_link_out_of_the_run_is_refused(tmp_path: Path) -> None:
    run = made_runs.ordinary(tmp_path / "run")
    away = made_runs.ordinary(tmp_path / "away")
    path = run.tables("underspecified")["items"]
    path.unlink()
    path.symlink_to(away.tables("underspecified")["items"])
    with pytest.raises(RunError, match="points outside the run"):
        Run.open(run.folder).table("underspecified", "items")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.filterwarnings("ignore:.*the cache cannot be written")
def test_a_cache_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    theirs = tmp_path / "cache" / "converted" / "model"
    theirs.mkdir(parents=True)
    spare = tmp_path / f"evenhand-{os.getuid()}"
    spare.mkdir()
    for folder in (theirs, spare):
        os.chown(folder, 12345, 12345)
    used = cache.writable(theirs)
    assert used.parent not in (theirs.parent, spare)
    assert used.parent.stat().st_uid == os.getuid()


def test_a_remembered_hash_that_others_may_write_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    (tmp_path / "x").write_bytes(b"x")
    right = cache.file_digest(tmp_path / "x")
    (memo,) = (tmp_path / "cache" / "digests").iterdir()
    memo.write_text('{"sha256": "wrong"}')
    memo.chmod(0o666)
    assert cache.file_digest(tmp_path / "x") == right
