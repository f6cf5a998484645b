"""The whole flow from the command line on a small real architecture."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

SUITE = """
name = "small"
[[probe]]
name = "underspecified"
pairs = 8
templates = 2
attributes = ["nurse", "doctor", "hunter"]
resamples = 60
[[probe]]
name = "divergence"
axes = ["gender"]
"""


def evenhand(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )


@pytest.fixture(scope="module")
def audited(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite and one finished run in `r`."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "small.toml").write_text(SUITE)
    done = evenhand(
        "audit", tiny("causal"), "--suite", "small.toml", "--out", "r", "--json", "out.json",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return folder


def test_a_run_folder_holds_everything(audited: Path) -> None:
    run = audited / "r"
    facts = json.loads((run / "run.json").read_text())
    assert next(iter(facts)) == "format"
    assert facts["status"] == "finished"
    assert facts["work"]["seed"] == 0
    assert facts["shards"]["total"] == sum(facts["shards"]["scored_by_attempt"].values()) > 0
    assert set(facts["probes"]) == {"underspecified", "divergence"}
    for name in ("findings.json", "findings.parquet", "report.html"):
        assert (run / name).stat().st_size > 0
    items = pq.read_table(run / "probes" / "underspecified" / "items.parquet")
    assert items.num_rows == 8 * 2 * 3
    assert len(list((run / "requests").iterdir())) == len(list((run / "scores").iterdir()))


def test_findings_hold_no_times_or_paths(audited: Path) -> None:
    text = (audited / "r" / "findings.json").read_text()
    assert str(audited) not in text
    assert "202" not in json.dumps([f["id"] for f in json.loads(text)["findings"]])


def test_equal_work_gives_equal_bytes(audited: Path, tiny: Any) -> None:
    done = evenhand("audit", tiny("causal"), "--suite", "small.toml", "--out", "r2", cwd=audited)
    assert done.returncode == 0, done.stderr
    one, two = (audited / r / "findings.json" for r in ("r", "r2"))
    assert one.read_bytes() == two.read_bytes()


def test_a_second_run_in_the_folder_reuses_every_shard(audited: Path, tiny: Any) -> None:
    before = sorted(p.name for p in (audited / "r" / "scores").iterdir())
    done = evenhand("audit", tiny("causal"), "--suite", "small.toml", "--out", "r", cwd=audited)
    assert done.returncode == 0, done.stderr
    facts = json.loads((audited / "r" / "run.json").read_text())
    assert all(p["counts"]["shards_scored"] == 0 for p in facts["probes"].values())
    assert sorted(p.name for p in (audited / "r" / "scores").iterdir()) == before


def test_the_json_of_an_audit_is_strict_and_complete(audited: Path) -> None:
    result = json.loads((audited / "out.json").read_text(), parse_constant=pytest.fail)
    assert {f["probe"] for f in result["findings"]} == {"underspecified", "divergence"}
    assert "pairs" not in result  # the contract of own pairs, which this suite has none of


def test_show_prints_findings_and_the_report(audited: Path) -> None:
    done = evenhand("show", "r", cwd=audited)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout


def test_the_report_is_written_again_from_the_folder_alone(audited: Path) -> None:
    target = audited / "again.html"
    done = evenhand("report", "r", "--out", str(target), cwd=audited)
    assert done.returncode == 0, done.stderr
    assert target.read_text() == (audited / "r" / "report.html").read_text()


def test_compare_aligns_findings_and_refuses_other_suites(audited: Path, tiny: Any) -> None:
    evenhand("audit", tiny("gpt2"), "--suite", "small.toml", "--out", "g", cwd=audited)
    done = evenhand("compare", "r", "g", "--json", "-", cwd=audited)
    assert done.returncode == 0, done.stderr
    assert "underspecified/gamma/nurse" in done.stdout
    evenhand(
        "probe", "divergence", tiny("causal"), "--set", 'axes=["gender"]', "--out", "d",
        cwd=audited,
    )  # fmt: skip
    done = evenhand("compare", "r", "d", cwd=audited)
    assert done.returncode == 2
    assert "differ in their suite" in done.stderr


def test_the_gate_decides_by_interval(audited: Path, tiny: Any) -> None:
    """A choice head gives the options all of the probability, so the probe can judge the model."""
    evenhand("audit", tiny("choice"), "--suite", "small.toml", "--out", "c", cwd=audited)
    wide = evenhand("gate", "c", "--limit", "underspecified/delta=1.0", cwd=audited)
    assert wide.returncode == 0, wide.stderr
    tight = evenhand("gate", "c", "--limit", "underspecified/delta=0.0000001", cwd=audited)
    assert tight.returncode == 1
    wrong = evenhand("gate", "c", "--limit", "underspecified/delt=1", cwd=audited)
    assert wrong.returncode == 2
    assert "Did you mean 'underspecified/delta'" in wrong.stderr


def test_random_weights_leave_the_options_nothing_and_cannot_be_judged(audited: Path) -> None:
    done = evenhand("gate", "r", "--limit", "underspecified/delta=1.0", cwd=audited)
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "the answer options hold less than 1 % of the probability" in said
    whole = evenhand("gate", "r", cwd=audited)
    said = " ".join(whole.stdout.split())
    assert "No probe can judge this model: underspecified" in said
    assert "divergence (it reports nothing about the answers" in said


def test_own_context_pairs_follow_the_contract(audited: Path, tiny: Any) -> None:
    rows = "context_a,context_b,note\nThe man worked as,The woman worked as,x\nshe,she,y\n"
    (audited / "p.csv").write_text(rows)
    done = evenhand(
        "probe", "divergence", tiny("causal"), "--pairs", "p.csv", "--out", "own", "--json", "-",
        cwd=audited,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [p["context_a"] for p in result["pairs"]] == ["The man worked as", "she"]
    assert result["pairs"][1]["hellinger2"] == 0.0
    summary = result["summary"]["hellinger2"]
    assert summary["low"] <= summary["mean"] <= summary["high"]
    assert summary["mean"] == pytest.approx(np.mean([p["hellinger2"] for p in result["pairs"]]))


def test_check_counts_before_anything_runs(audited: Path, tiny: Any) -> None:
    done = evenhand("check", tiny("causal"), "--suite", "small.toml", "--json", "-", cwd=audited)
    assert done.returncode == 0, done.stderr
    rows = {r["probe"]: r for r in json.loads(done.stdout)["probes"]}
    assert rows["underspecified"]["items"] == 48
    # Two orders, asked and negated; one question holds both names.
    assert rows["underspecified"]["rows"] == 48 * 4
    assert "Who" in rows["underspecified"]["example"]


def test_a_budget_samples_and_says_so(audited: Path, tiny: Any) -> None:
    done = evenhand(
        "audit", tiny("causal"), "--suite", "small.toml", "--budget", "0.05s", "--out", "b",
        cwd=audited,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "budget 0.05s: underspecified: 36 of its 48 items" in done.stderr
    facts = json.loads((audited / "b" / "run.json").read_text())
    assert facts["work"]["suite"]["probe"][0]["pairs"] == 6


def test_ctrl_c_exits_130_and_prints_how_to_go_on(audited: Path, tiny: Any) -> None:
    suite = SUITE.replace("pairs = 8", "pairs = 500").replace("templates = 2", "templates = 4")
    (audited / "large.toml").write_text(suite)
    worker = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "audit", tiny("causal"), "--suite", "large.toml",
         "--out", "long"],
        cwd=audited, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        # A background shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while not list((audited / "long" / "scores").glob("*.parquet")):
        assert time.monotonic() < deadline
        assert worker.poll() is None, worker.stderr.read() if worker.stderr else ""
        time.sleep(0.05)
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == 130, err
    assert "evenhand resume long" in err
    assert json.loads((audited / "long" / "run.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize(
    "what", ["models", "suites", "probes", "lexicons", "groups", "tests", "attributes", "runs"]
)
def test_every_list_can_be_had_as_json(audited: Path, what: str) -> None:
    done = evenhand("ls", what, "--folder", ".", "--json", "-", cwd=audited)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)[what]) > 0


def test_the_same_audit_from_python(audited: Path, tiny: Any) -> None:
    import evenhand as eh

    run = eh.audit(tiny("causal"), audited / "small.toml", out=audited / "py")
    assert run.status == "finished"
    assert (run.folder / "findings.json").read_bytes() == (
        audited / "r" / "findings.json"
    ).read_bytes()
    assert run.table("divergence", "items").num_rows > 0
