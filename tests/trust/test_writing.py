"""Outputs are whole or absent, and nothing that somebody filled in is overwritten."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.mitigations import saved
from evenhand.probes.generation.ratings import Text, write_sheets
from evenhand.writing import drafted, write_csv, write_text
from trust.hostile import void

KILLED = """
import os, signal, sys
from pathlib import Path
from evenhand.mitigations import saved
from evenhand.writing import drafted
out = Path(sys.argv[1])
def save(draft):
    (draft / "weights").write_text("half")
    if sys.argv[2] == "writing":
        os.kill(os.getpid(), signal.SIGKILL)
with saved.unfinished(out, save):
    (out / "run").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["writing", "judging"])
def test_a_killed_mitigation_is_started_over(tmp_path: Path, when: str) -> None:
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(out), when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert out.exists() == (when == "judging")
    saved.start_over(out)
    saved.check_free(out)
    with drafted(out) as draft:
        (draft / "weights").write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_only_what_a_dead_process_left_is_thrown_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with saved.unfinished(out, lambda draft: void((draft / "mine").write_text("precious"))):
        saved.start_over(out)  # another process works on it
        assert (out / "mine").exists()
        with pytest.raises(SpecError, match="not empty"):
            saved.check_free(out)
    saved.start_over(out)
    assert os.listdir(out) == ["mine"]


def test_a_folder_that_fails_half_way_never_was(tmp_path: Path) -> None:
    def fill() -> None:
        with drafted(tmp_path / "out") as draft:
            (draft / "x").write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match="No space left"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_text(path, "old")

    def rows() -> Any:
        yield ("a",)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csv(path, ("x",), rows())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


TAIL = """
import resource, signal, sys
from pathlib import Path
import evenhand as eh
from evenhand.errors import DataError
from evenhand.writing import write_text
if sys.argv[1] == "vectors":
    fitted = eh.mitigate("v.txt", "hard-projection")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    if sys.argv[1] == "vectors":
        fitted.save("out")
    else:
        write_text(Path(f"out{sys.argv[1]}"), "".join(map(chr, range(40, 3040))))
except DataError as error:
    print(error)
"""
"""argv: what is written, and how large a file may become."""


@pytest.mark.usefixtures("limited_files")
@pytest.mark.parametrize("what", ["vectors", "", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("short", [4, 100])
def test_a_disk_that_is_full_at_the_last_bytes(tmp_path: Path, what: str, short: int) -> None:
    """They wait in the buffer of a library, which is asked for them when the file is closed."""
    names = [
        "she",
        "he",
        "woman",
        "man",
        "daughter",
        "son",
        "nurse",
        "librarian",
        *(f"w{k}" for k in range(300)),
    ]
    rows = np.random.default_rng(0).normal(size=(len(names), 50))
    lines = [" ".join([name, *map(str, row)]) for name, row in zip(names, rows, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")

    def save(most: int) -> str:
        done = subprocess.run(
            [sys.executable, "-c", TAIL, what, str(most)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert save(10**8) == ""
    (out,) = tmp_path.glob("out*")
    whole = max(p.stat().st_size for p in (out, *out.rglob("*")) if p.is_file())
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    assert "cannot be written (File too large)" in save(whole - short)
    assert [p.name for p in tmp_path.iterdir()] == ["v.txt"]


def test_filled_in_sheets_are_never_overwritten(tmp_path: Path) -> None:
    texts = [Text("m", "p", "a", "=cmd()"), Text("m", "p", "b", "good")]
    write_sheets(texts, tmp_path / "s", raters=2)
    sheet = tmp_path / "s" / "rater1.csv"
    rows = list(csv.reader(sheet.read_text().splitlines()))
    assert sorted(row[1] for row in rows[1:]) == ["'=cmd()", "good"]
    sheet.write_text("filled in")
    with pytest.raises(DataError, match="not overwritten"):
        write_sheets(texts, tmp_path / "s", raters=2)
    assert sheet.read_text() == "filled in"


SMALL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.argv[0] = "evenhand"
from evenhand.cli.main import main
main()
"""


@pytest.mark.usefixtures("limited_files")
@pytest.mark.parametrize(
    "words",
    [
        "measure correlation s.csv --x x --y y --resamples 99 --json out",
        "corpus label c.txt --sets sets.toml --out out",
        "corpus clean c.txt --least 1 --out out",
    ],
)
def test_a_full_disk_gives_no_false_advice(tmp_path: Path, words: str) -> None:
    """Only audits and studies can be resumed; other commands are given once more."""
    (tmp_path / "s.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
    (tmp_path / "c.txt").write_text("she is a cook\nhe is a guard\n" * 2000)
    (tmp_path / "sets.toml").write_text('[t]\nx=["cook"]\ny=["guard"]\na=["she"]\nb=["he"]\n')
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", SMALL, *words.split()],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "resume" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before
