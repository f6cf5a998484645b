"""A run killed at random moments and resumed ends with the same bytes as one left alone."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand.errors import RunError
from evenhand.runs.record import Run, RunWriter

WORKER = """
import sys, time, zlib
from pathlib import Path
from evenhand.audit.auditing import Audit
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.audit.suites import parse_suite

def slow(prefix, continuation):
    time.sleep(0.0004)
    return -(zlib.crc32((prefix + continuation).encode()) % 1000) / 100 - 0.01

model = ScriptedModel({"continuation": slow}, name="slow")
suite = parse_suite({"name": "crash", "probe": [{
    "name": "underspecified", "pairs": 12, "templates": 2,
    "attributes": ["nurse", "doctor", "hunter", "pilot"], "resamples": 50}]}, "test", "crash")
Audit(suite, "slow", Path(sys.argv[1]), loaded={"slow": model}).run()
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def finish(folder: Path) -> None:
    worker = start(folder)
    _, err = worker.communicate(timeout=120)
    assert worker.returncode == 0, err.decode()


def test_ten_kills_change_no_byte_and_repeat_no_shard(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begun = time.monotonic()
    finish(whole)
    usual = time.monotonic() - begun
    rng = random.Random(7)
    kills = 0
    for _ in range(10):
        worker = start(killed)
        try:
            worker.communicate(timeout=rng.uniform(0.35, 0.9) * usual)
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
            kills += 1
    finish(killed)
    assert kills >= 3
    assert (killed / "findings.json").read_bytes() == (whole / "findings.json").read_bytes()
    facts = Run.open(killed).facts
    assert facts["status"] == "finished"
    assert 1 < facts["attempts"] <= 11  # a kill before the first write leaves no trace
    shards = facts["shards"]
    # Each shard file names the one attempt that scored it; together they are all shards.
    assert sum(shards["scored_by_attempt"].values()) == shards["total"]
    assert shards["total"] == Run.open(whole).facts["shards"]["total"]
    assert not list((killed / "scores").glob("*.tmp"))


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run").held():
        second = start(tmp_path / "run")
        _, err = second.communicate(timeout=60)
    assert second.returncode != 0
    assert b"another process is working in this run folder" in err


def test_a_folder_with_other_work_is_refused(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    RunWriter(tmp_path / "run").facts({**facts, "work": {**facts["work"], "seed": 99}})
    worker = start(tmp_path / "run")
    _, err = worker.communicate(timeout=60)
    assert b"holds a run with another seed (99 there, 0 now)" in err


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run.json there"):
        Run.open(tmp_path)
