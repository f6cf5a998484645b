"""Run folders, with hashes and as older versions wrote them; bundles; policies; scenarios."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evenhand as eh
import made_runs
from evenhand.audit.suites import parse_suite
from evenhand.errors import RunError
from evenhand.evidence import checker
from probe_cases import CASES

POLICY = """require = "within-margin"
error = 0.05
undecided = "fail"
ignore = ["divergence/*"]

[margins]
"underspecified/*" = 0.2
"""


def showing(*words: str) -> Callable[[Path], list[str]]:
    def make(folder: Path) -> list[str]:
        run = made_runs.ordinary(folder / "run")
        return [w.replace("RUN", str(run.folder)) for w in words]

    return make


def old_run(*words: str) -> Callable[[Path], list[str]]:
    """A run without hashes, as older versions wrote it: whatever it holds is read."""

    def make(folder: Path) -> list[str]:
        run = made_runs.ordinary(folder / "run")
        _forget(run.folder)
        return [w.replace("RUN", str(run.folder)) for w in words]

    return make


def _forget(run: Path) -> None:
    """Without the hashes."""
    facts = json.loads((run / "run.json").read_text())
    del facts["sha256"], facts["files"]
    (run / "run.json").write_text(json.dumps(facts))


def gating(folder: Path) -> list[str]:
    """A policy: the run itself is left alone, so that every case reaches the rules."""
    run = made_runs.ordinary(Path(tempfile.mkdtemp(dir=folder.parent)) / "run")
    (folder / "policy.toml").write_text(POLICY)
    return ["gate", str(run.folder), "--policy", str(folder / "policy.toml"), "--json", "-"]


def _audited(folder: Path) -> Any:
    case = CASES["crows-pairs"]
    rows = {"name": "crows-pairs", **case.settings(folder, case.rows[:8])}
    suite = parse_suite({"name": "short", "probe": [rows]}, "here", "short")
    return eh.audit(case.model(0.5), suite, out=folder / "run")


def comparing(folder: Path) -> list[str]:
    """Two runs of the same work, the second without hashes."""
    apart = Path(tempfile.mkdtemp(dir=folder.parent))
    one = _audited(apart).folder
    shutil.copytree(one, folder / "run")
    _forget(folder / "run")
    return ["compare", str(one), str(folder / "run"), "--json", "-"]


def verifying(folder: Path) -> Callable[[], Any]:
    """A bundle holds, or does not: that is no number that changed in silence."""
    apart = Path(tempfile.mkdtemp(dir=folder.parent))
    eh.bundle(_audited(apart), folder / "e.tar")
    return lambda: _held(eh.verify(folder / "e.tar").as_dict())


def _held(told: dict[str, Any]) -> dict[str, Any]:
    if not told["hashes_equal"]:
        raise RunError(told["reason"])
    return told


def checking(folder: Path) -> Callable[[], Any]:
    """The checker that travels in the bundle."""
    verifying(folder)
    return lambda: _held(checker.check(folder / "e.tar"))


def shards(folder: Path) -> Callable[[], Any]:
    """Stored scores: what is damaged is asked again, so findings stay what they are."""
    case = CASES["crows-pairs"]
    apart = Path(tempfile.mkdtemp(dir=folder.parent))
    rows = {"name": "crows-pairs", **case.settings(apart, case.rows[:8])}
    suite = parse_suite({"name": "short", "probe": [rows]}, "here", "short")

    def audit() -> Any:
        out = Path(tempfile.mkdtemp(dir=apart)) / "run"
        run = eh.audit(case.model(0.5), suite, out=out, store=str(folder / "scores"))
        return [f.as_dict() for f in run.findings]

    audit()
    return audit


TARGETS = {
    "show": showing("show", "RUN"),
    "gate": showing("gate", "RUN", "--json", "-"),
    "report": showing("report", "RUN", "--out", "page.html"),
    "show old": old_run("show", "RUN", "--json", "-"),
    "report old": old_run("report", "RUN", "--out", "page.html"),
    "gate old": old_run("gate", "RUN", "--json", "-"),
    "compare old": comparing,
    "ls": old_run("ls", "runs", "--folder", "."),
    **{
        f"export {form}": old_run("export", "RUN", "--format", form, "--out", "-")
        for form in ("csv", "lm-eval", "junit", "sarif", "model-card")
    },
    "policy": gating,
    "verify": verifying,
    "checker": checking,
    "audit shards": shards,
}
