"""What calls used is counted once, whenever a kill comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.models.endpoints.journal import FOLDER, Journals
from evenhand.models.endpoints.spending import Meter, Prices, Usage


def written(folder: Path, shard: str) -> Journals:
    journals = Journals("server")
    journals.keep_below(folder)
    journal = journals.of_shard(shard)
    journal.add("one", [0.5], Usage(1, 9, 1))
    journal.add("two", [0.25], Usage(1, 8, 1))
    return journals


def test_a_kill_between_counting_and_removing_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        written(tmp_path, "a").stored("a")
    left = tmp_path / FOLDER / "a.jsonl"
    assert left.is_file()
    assert Journals("server").keep_below(tmp_path) == Usage(2, 17, 2)
    assert not left.exists()


def test_a_shard_that_is_asked_anew_counts_again(tmp_path: Path) -> None:
    written(tmp_path, "a").stored("a")
    journals = Journals("server")
    journals.keep_below(tmp_path)
    journals.of_shard("a").add("one", [0.5], Usage(1, 9, 1))
    assert Journals("server").keep_below(tmp_path) == Usage(3, 26, 3)


def test_usage_of_older_versions_is_read(tmp_path: Path) -> None:
    from evenhand.seals import write_sealed

    (tmp_path / FOLDER).mkdir()
    write_sealed(tmp_path / FOLDER / "usage.json", Usage(4, 5, 6).as_dict())
    assert Journals("server").keep_below(tmp_path) == Usage(4, 5, 6)


def test_calls_of_earlier_attempts_do_not_change_the_length_of_a_token() -> None:
    meter = Meter(Prices())
    meter.used += Usage(1_000, 2_000_000, 1_000)  # as the journal of a resumed run says
    meter.settle(0.0, Usage(1, 100, 1), characters=450)
    assert meter.characters_per_token == 4.5
