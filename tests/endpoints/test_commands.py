"""The commands on a model behind an address: what is shown before anything is paid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.audit.auditing import plan_audit
from evenhand.audit.planning import announced
from evenhand.audit.suites import parse_suite
from evenhand.errors import RunError, SpecError
from evenhand.models.protocol import LoadOptions
from scripted_server import NAME, ScriptedServer

SUITE = {
    "name": "small",
    "probe": [{
        "name": "underspecified", "pairs": 2, "templates": ["same_city"], "attributes": ["nurse"],
    }],
}  # fmt: skip


def evenhand(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *words], capture_output=True, text=True, check=False
    )


def test_check_shows_capabilities_and_price_and_asks_no_question_of_the_suite() -> None:
    with ScriptedServer() as server:
        done = evenhand(
            "check", f"openai:{NAME}", "--base-url", server.url, "--suite", "quick",
            "--price-in", "2", "--price-out", "8", "--rung", "2", "--json", "-",
        )  # fmt: skip
        asked = sum(server.answered.values())
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["probes"][0]
    assert row["calls"] == row["distinct"] > 1_000
    assert row["cost"] == pytest.approx(2e-6 * row["tokens"], rel=0.2)
    assert asked < 15


def test_what_is_announced_before_the_first_paid_call(tmp_path: Path) -> None:
    suite = parse_suite(SUITE, "test", "small")
    with ScriptedServer(rungs=(2, 5)) as server:
        job = plan_audit(server.url, suite, out=tmp_path / "run", options=LoadOptions(model=NAME))
        lines = list(announced(job))
        dear = plan_audit(
            server.url, "quick",
            options=LoadOptions(model=NAME, price_in=1e6, price_out=0.0, max_cost=4_000.0),
        )  # fmt: skip
        with pytest.raises(SpecError, match="--max-cost 4000: the run would cost about"):
            list(announced(dear))
        run = job.run()
        asked = sum(server.answered.values())
        again = eh.resume(run.folder)
        assert sum(server.answered.values()) == asked
    assert "asked by rung 2, top log-probabilities" in lines[0]
    assert any("no: refused with 404" in line for line in lines)
    assert "about 8 calls" in lines[-1]
    assert "unknown cost" in lines[-1]
    about = run.facts["models"][server.url]
    assert about["usage"]["calls"] > 8
    assert about["usage"]["cost"] is None
    assert about["server"]["asked_on"]
    assert [f.value for f in again.findings] == [f.value for f in run.findings]


def test_rungs_never_meet_in_one_table(tmp_path: Path) -> None:
    """A run has one; columns of a comparison name theirs; a gate takes no baseline of another."""
    suite = parse_suite(SUITE, "test", "small")
    with ScriptedServer() as server:
        runs = [
            eh.audit(eh.load_model(server.url, rung=k), suite, out=tmp_path / str(k))
            for k in (1, 2)
        ]
        with pytest.raises(RunError, match="has changed since this run began"):
            eh.audit(eh.load_model(server.url, rung=5), suite, out=runs[0].folder)
    assert [run.facts["rung"] for run in runs] == ["decision endpoint", "top log-probabilities"]
    assert eh.compare(*runs).names == ("1, decision endpoint", "2, top log-probabilities")
    with pytest.raises(RunError, match="asked by top log-probabilities, .* by decision endpoint"):
        eh.gate(runs[1], baseline=runs[0])


def test_folders_are_named_by_the_model_and_executors_are_refused(tmp_path: Path) -> None:
    suite = parse_suite(SUITE, "test", "small")
    options = LoadOptions(model="big-1")
    job = plan_audit("http://localhost:1/v1", suite, options=options)
    assert job.folder.name.endswith("big-1-small")
    with pytest.raises(SpecError, match="--concurrency N"):
        plan_audit(
            "http://localhost:1/v1", suite, options=options, executor=eh.DevicesExecutor(["cpu"])
        )
