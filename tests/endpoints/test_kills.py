"""A run that is killed and resumed pays for no finished call again and ends with the same bytes,
however many calls were under way at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from evenhand.models.endpoints.journal import CHECKING, FOLDER, Journal
from evenhand.models.endpoints.spending import Usage
from scripted_server import NAME, CountingProxy, ScriptedServer

SUITE = """name = "small"
[[probe]]
name = "underspecified"
pairs = 4
templates = ["same_city"]
attributes = ["nurse", "doctor"]
"""


def finished(run: Path) -> set[str]:
    """Calls of shards that were kept; those by which the server was looked at repeat on purpose."""
    paths = [path for path in (run / FOLDER).glob("*.jsonl") if not path.stem.startswith(CHECKING)]
    return {key for path in paths for key in Journal(path)}


def test_killed_and_resumed_runs_repeat_no_finished_call(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SUITE)
    with ScriptedServer(delay=0.05) as server, CountingProxy(server.url) as proxy:
        words = [sys.executable, "-m", "evenhand", "audit", proxy.url, "--model", NAME]
        words += ["--rung", "2", "--suite", str(file), "--out"]
        run, whole = tmp_path / "killed", tmp_path / "whole"
        kept: dict[str, int] = {}
        for calls, at_once in ((4, "2"), (12, "5"), (8, "1")):
            process = subprocess.Popen(
                [*words, str(run), "--concurrency", at_once], stderr=subprocess.DEVNULL
            )
            goal = proxy.total + calls
            while process.poll() is None and proxy.total < goal:
                time.sleep(0.005)
            process.kill()
            process.wait()
            kept = proxy.counts(finished(run)) | kept
        assert len(kept) > 4
        resumed = subprocess.run(
            [sys.executable, "-m", "evenhand", "resume", str(run)], capture_output=True, text=True
        )
        assert resumed.returncode == 0, resumed.stderr
        assert proxy.counts(kept) == kept
        together = [*words, str(whole), "--concurrency", "20"]
        subprocess.run(together, check=True, capture_output=True)
        before = proxy.total
        subprocess.run([*words, str(whole)], check=True, capture_output=True)
        assert proxy.total == before  # a repeated command asks nothing
    assert (run / "findings.json").read_bytes() == (whole / "findings.json").read_bytes()


def test_a_line_that_a_kill_cut_in_two_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "shard.jsonl"
    notes = Journal(path)
    notes.add("a", [0.5], Usage(1, 9, 1))
    notes.add("b", "text", Usage(1, 9, 1))
    path.write_bytes(path.read_bytes()[:-7])
    again = Journal(path)
    assert "a" in again
    assert again["a"] == [0.5]
    assert "b" not in again
    again.add("b", "text", Usage(1, 9, 1))
    assert list(Journal(path)) == ["a", "b"]
    assert Journal(path).used == Usage(2, 18, 2)
