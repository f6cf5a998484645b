"""action.yml: its steps run as a runner runs them, and what it declares is what they use."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SUITE = """
name = "short"
title = "Short"
[[probe]]
name = "underspecified"
terms = 5
templates = 1
resamples = 50
attributes = ["nurse", "hunter"]
"""


class Job:
    """A job on a runner: inputs filled in, steps as scripts with the environment they get."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        known = {name: str(given.get("default", "")) for name, given in ACTION["inputs"].items()}
        self.inputs = {**known, **{k.replace("_", "-"): v for k, v in inputs.items()}}
        self.outputs: dict[str, dict[str, str]] = {}
        self.summary, self.temp = folder / "summary.md", folder / "temp"
        self.temp.mkdir(exist_ok=True)
        commands = folder / "bin"
        commands.mkdir(exist_ok=True)
        for name, words in (("evenhand", "-m evenhand"), ("python", "")):
            (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (commands / name).chmod(0o755)

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: self.inputs[m[1]], text)

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        (step,) = [s for s in ACTION["runs"]["steps"] if s["id"] == name]
        output = self.folder / f"{name}.output"
        output.write_text("")
        script = self.folder / f"{name}.sh"
        script.write_text(step["run"])
        env = {
            **os.environ, **{k: self.filled(v) for k, v in step["env"].items()},
            "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1",
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.temp),
        }  # fmt: skip
        # What a runner does for `shell: bash`.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.folder, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = output.read_text().splitlines()
        self.outputs[name] = dict(line.split("=", 1) for line in lines)
        return done


@pytest.fixture(scope="module")
def model(tiny: Any) -> str:
    return str(tiny("choice"))  # a head for the options: they hold all of the probability


@pytest.fixture(scope="module")
def first(model: str, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job without a baseline, its audit done."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "short.toml").write_text(SUITE)
    job = Job(folder, model=model, suite="short.toml", out="run one", install="")
    assert job.step("install").returncode == 0
    done = job.step("audit")
    assert done.returncode == 0, done.stderr
    return job


def test_the_audit_leaves_a_run_and_says_where(first: Job) -> None:
    assert first.outputs["audit"]["run"] == "run one"
    assert (first.folder / first.outputs["audit"]["report"]).read_text().startswith("<!doctype")


def test_the_gate_writes_sarif_and_the_jobs_page(first: Job) -> None:
    done = first.step("gate")
    assert done.returncode == 0, done.stdout + done.stderr
    told = first.outputs["gate"]
    assert told["outcome"] == "passed"
    results = json.loads(Path(told["sarif"]).read_text())["runs"][0]["results"]
    assert len(results) == 3
    assert first.summary.read_text().startswith("## evenhand: passed")


def test_against_a_baseline_and_with_undecided_let_through(first: Job) -> None:
    """The same run against itself has not become worse; equivalence is not shown by so few."""
    same = Job(first.folder, out="run one", baseline="run one", install="")
    assert same.step("gate").returncode == 0
    assert same.outputs["gate"]["outcome"] == "passed"
    assert "have become worse" in same.summary.read_text()
    options = "--limit underspecified/lean/nurse=0.000001"
    strict = Job(first.folder, out="run one", gate_options=options, install="")
    assert strict.step("gate").returncode == 3
    assert strict.outputs["gate"]["outcome"] == "undecided"
    lenient = Job(first.folder, out="run one", gate_options=options, undecided="pass", install="")
    assert lenient.step("gate").returncode == 0


def test_a_model_that_cannot_be_judged_fails_the_job_however_undecided_counts(
    tiny: Any, tmp_path: Path
) -> None:
    """Random weights put next to nothing on the names."""
    (tmp_path / "short.toml").write_text(SUITE)
    job = Job(tmp_path, model=str(tiny("causal")), suite="short.toml", undecided="pass", install="")
    assert job.step("audit").returncode == 0
    assert job.step("gate").returncode == 3
    assert job.outputs["gate"]["outcome"] == "cannot tell"
    assert job.summary.read_text().startswith("## evenhand: cannot tell")


def test_a_failing_gate_fails_the_job_and_still_tells(first: Job) -> None:
    import made_runs

    made_runs.ordinary(first.folder / "lean")
    job = Job(first.folder, out="lean", install="")
    job.summary.unlink(missing_ok=True)
    assert job.step("gate").returncode == 1
    assert job.outputs["gate"]["outcome"] == "failed"
    assert "leans to the female name" in job.summary.read_text()


def test_a_mistake_is_an_error_and_no_outcome(first: Job) -> None:
    job = Job(first.folder, out="nowhere", install="")
    done = job.step("gate")
    assert done.returncode == 2
    assert "not a run folder" in done.stderr
    assert job.outputs["gate"] == {}


def test_inputs_cannot_run_as_script(first: Job) -> None:
    job = Job(first.folder, model="$(touch owned)`touch owned`;touch owned", install="")
    assert job.step("audit").returncode == 2
    assert not (first.folder / "owned").exists()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


MISSED = "--limit underspecified/lean/nurse=0.000001"


@pytest.mark.parametrize(
    "options",
    [
        MISSED,
        f"--error 0.05\n{MISSED}\n",
        f"\n\n  --error 0.05\r\n  {MISSED}\r\n",
        f"--error 0.05 \\\n  {MISSED}",
        "--error 0.05\n--limit 'underspecified/lean/nurse=0.000001'",
        '--error 0.05\n--limit "underspecified/lean/nurse=0.000001"',
    ],
)
def test_the_gate_reads_every_line_of_its_options(first: Job, options: str) -> None:
    job = Job(first.folder, out="run one", gate_options=options, install="")
    assert job.step("gate").returncode == 3
    assert job.outputs["gate"]["outcome"] == "undecided"


def test_an_option_with_spaces_reaches_the_gate_whole(first: Job) -> None:
    (first.folder / "my policy.toml").write_text('require = "within-margin"\n')
    options = f"--error 0.05\n--policy 'my policy.toml'\n{MISSED}"
    job = Job(first.folder, out="run one", gate_options=options, install="")
    done = job.step("gate")
    assert done.returncode == 3, done.stderr


def test_the_audit_reads_every_line_of_its_options(first: Job) -> None:
    job = Job(first.folder, model="m", out="none", audit_options="--seed 1\n--nowhere 2")
    done = job.step("audit")
    assert done.returncode == 2
    assert "--nowhere" in done.stderr


@pytest.mark.parametrize("step", ["audit", "gate"])
@pytest.mark.parametrize("options", ["--error 0.05\n--policy 'mine", 'a "b', "--error 0.05 \\"])
def test_options_that_cannot_be_read_fail_the_step(first: Job, step: str, options: str) -> None:
    given = {f"{step}_options": options}
    job = Job(first.folder, model="m", out="run one", install="", **given)
    done = job.step(step)
    assert done.returncode == 2
    assert f"::error::{step}-options cannot be read" in done.stderr
    assert job.outputs[step] == {}


def test_a_gate_without_a_verdict_is_no_pass(first: Job) -> None:
    """Not even where an earlier gate of the job has left its page."""
    assert Job(first.folder, out="run one", install="").step("gate").returncode == 0
    job = Job(first.folder, out="run one", gate_options="--help", install="")
    done = job.step("gate")
    assert done.returncode == 2
    assert "gave no verdict" in done.stdout
    assert job.outputs["gate"] == {}


def test_what_is_declared_is_what_is_used() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
    ids = {s["id"] for s in ACTION["runs"]["steps"]}
    for output in ACTION["outputs"].values():
        step, name = re.fullmatch(
            r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", output["value"]
        ).groups()  # type: ignore[union-attr]
        assert step in ids
        (script,) = [s["run"] for s in ACTION["runs"]["steps"] if s["id"] == step]
        assert f'echo "{name}=' in script
    assert all(given["description"] for given in ACTION["inputs"].values())
    assert len(ACTION["description"]) < 126  # what the marketplace takes
