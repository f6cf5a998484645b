"""A study folder: which stages count as finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.study.folder import StudyFolder

NOW = {"train": ["a"], "dev": None, "repeats": 1}


@pytest.mark.parametrize(
    ("known", "finished"),
    [
        (NOW, True),
        ({"train": ["a"], "repeats": 1}, True),  # written before `dev` was a setting
        ({"train": ["a"], "dev": "b", "repeats": 1}, False),
        ({"train": ["a"], "dev": None, "repeats": 2}, False),
        ({"train": ["a"]}, False),  # 1 is a choice, which may have been another
        (None, False),
    ],
)
def test_a_result_counts_when_its_settings_say_the_same(
    tmp_path: Path, known: dict[str, object] | None, finished: bool
) -> None:
    folder = StudyFolder(tmp_path)
    folder.write("cell", "coreference", {"quality": 0.5, "settings": known})
    assert folder.done("cell", "coreference", NOW) is finished
