"""A separate package adds a probe, a mitigation, a model kind, a suite and a lexicon.

It is installed into a folder of its own (files and metadata, as pip would leave them, without a
network) and used from the command line. Nothing in evenhand knows any of its names.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "evenhand_courtesy"
SOURCE = Path(__file__).parents[2] / "src"
EVEN: dict[str, float] = {}
RUDE = {"woman": -0.5, "lady": -0.5, "girl": -0.4}


def install(target: Path) -> Path:
    """The package and its metadata below a folder, as an installer leaves them."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    shutil.copytree(PACKAGE / name, target / name)
    facts = target / f"{name}-{project['version']}.dist-info"
    facts.mkdir()
    head = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
    (facts / "METADATA").write_text("".join(f"{k}: {v}\n" for k, v in head.items()))
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{k} = {v}" for k, v in points.items()), ""]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    return target


class Shell:
    """The command line in a folder, with the package installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        site = install(folder / "site")
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(SOURCE), str(site))),
            "EVENHAND_CACHE": str(folder / "cache"),
            "HF_HUB_OFFLINE": "1",
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "evenhand", *words]

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            self.command(*words), cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout

    def read(self, *words: str, code: int = 0) -> Any:
        """What the command says as JSON."""
        return json.loads(self(*words, "--json", "-", code=code))

    def phrasebook(self, name: str, leans: dict[str, float]) -> str:
        (self.folder / f"{name}.phrasebook.json").write_text(json.dumps(leans))
        return f"{name}.phrasebook.json"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Two audited phrasebooks: `rude` to women, and `even`."""
    made = Shell(tmp_path_factory.mktemp("courtesy"))
    for name, leans in (("rude", RUDE), ("even", EVEN)):
        made("audit", made.phrasebook(name, leans), "--out", name)  # the suite for its kind
    return made


def test_it_is_listed(shell: Shell) -> None:
    listed = {what: shell("ls", what) for what in ("probes", "suites", "lexicons", "mitigations")}
    assert "courtesy" in listed["probes"]
    assert "manners" in listed["suites"]
    assert "courtesy_words" in listed["lexicons"]
    assert "even-tone" in listed["mitigations"]
    assert "even-tone" in listed["mitigations"]
    assert "even-tone: how much of a lean to take" in " ".join(shell("mitigate", "--help").split())


def test_its_probe_runs_on_its_own_kind_of_model(shell: Shell) -> None:
    told = shell.read("show", "rude")
    facts = json.loads((shell.folder / "rude" / "run.json").read_text())
    model = facts["models"]["rude.phrasebook.json"]
    assert (model["kind"], model["answers"]) == ("phrasebook", ["continuation"])
    assert all(f["detected"] and f["value"] < -0.3 for f in told["findings"])
    assert not any(f["detected"] for f in shell.read("show", "even")["findings"])


def test_its_chart_and_words_are_in_the_report(shell: Shell) -> None:
    page = (shell.folder / "rude" / "report.html").read_text()
    assert "Courtesy by word" in page
    assert "Eight greetings stand for all of politeness." in page
    assert "courtesy gap" in page


def test_a_killed_run_is_resumed_to_the_same_bytes(shell: Shell) -> None:
    scores = shell.folder / "killed" / "scores"
    work = subprocess.Popen(
        shell.command("audit", "rude.phrasebook.json", "--suite", "manners", "--out", "killed"),
        cwd=shell.folder, env={**shell.env, "PHRASEBOOK_PAUSE": "600"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while work.poll() is None and not list(scores.glob("*.parquet")):
        time.sleep(0.05)
    work.send_signal(signal.SIGKILL)
    work.wait()
    assert not (shell.folder / "killed" / "findings.json").exists()
    shell("resume", "killed")
    one, two = ((shell.folder / r / "findings.json").read_bytes() for r in ("rude", "killed"))
    assert one == two
    facts = json.loads((shell.folder / "killed" / "run.json").read_text())
    assert set(facts["shards"]["scored_by_attempt"]) == {"1", "2"}


def test_it_is_measured_from_a_file(shell: Shell) -> None:
    rows = ["group,score", "women,0.25", "women,0.75", "men,1.0"]
    (shell.folder / "scores.csv").write_text("\n".join(rows) + "\n")
    told = shell.read("measure", "courtesy", "scores.csv")
    assert (told["gap"], told["n"]) == (-0.5, 3)
    assert "courtesy gap" in shell("measure", "courtesy", "scores.csv")


def test_two_runs_are_compared_and_gated(shell: Shell) -> None:
    rows = shell.read("compare", "rude", "even")
    assert "welcome" in json.dumps(rows)
    assert shell.read("gate", "even")["outcome"] == "passed"
    failed = shell.read("gate", "rude", code=1)
    assert failed["outcome"] == "failed"
    assert any("courtesy" in str(check) for check in failed["checks"])


def test_its_mitigation_is_fitted_saved_judged_and_audited(shell: Shell) -> None:
    shell("mitigate", "rude.phrasebook.json", "--method", "even-tone", "--out", "calmer")
    judged = shell.read("show", "calmer/run")
    assert judged["kind"] == "mitigation"
    assert judged["findings"][0]["value"] < -0.4
    assert "The courtesy gap changes by" in (shell.folder / "calmer/run/report.html").read_text()
    shell("audit", "calmer", "--out", "after")
    assert not any(f["detected"] for f in shell.read("show", "after")["findings"])
    facts = json.loads((shell.folder / "after" / "run.json").read_text())
    assert facts["models"]["calmer"]["name"] == "rude.phrasebook.json + even-tone gender"
    assert "welcome" in json.dumps(shell.read("compare", "rude", "after"))
