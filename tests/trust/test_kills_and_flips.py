"""The small forms of `make kills` and `make flips`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trust.flipping import Subject, files_of, flip, flipping, light, seen_of_run

HERE = Path(__file__).parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_killed_commands_leave_nothing_half_and_can_be_given_again() -> None:
    words = [sys.executable, str(HERE / "killing.py"), "9", "0", "", "--light"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
    assert "0 faults" in done.stdout.splitlines()[-1]


def test_flipped_bits_are_noticed_or_change_nothing(tmp_path: Path) -> None:
    found = Counter[tuple[str, str]]()
    for name, file, outcome in flipping(80, 0, light(tmp_path)):
        assert not outcome.startswith("FAULT"), (name, file, outcome)
        found[file, outcome] += 1
    assert found["report.html", "detected"] >= 7
    assert found["inputs/table/d.csv", "detected"] >= 7
    assert sum(found.values()) == 80


def test_a_flip_that_is_not_noticed_is_a_fault(tmp_path: Path) -> None:
    import random

    def blind(folder: Path) -> str:
        return (folder / "findings.json").read_text(errors="replace")

    (run, _) = light(tmp_path)
    path = next(p for p in files_of(run.folder) if p.name == "findings.json")
    careless = Subject("careless", run.folder, blind)
    outcome = flip(careless, path, random.Random(0), blind(run.folder))
    assert outcome.startswith("FAULT other contents")
    assert seen_of_run(run.folder)
