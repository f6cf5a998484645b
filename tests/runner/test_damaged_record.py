"""A damaged run.json is one paragraph that says how to go on, and hides no other run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.audit.auditing import audit
from evenhand.audit.catalogue import runs as listed
from evenhand.audit.suites import load_suite
from evenhand.errors import RunError
from evenhand.runs.facts import read_facts
from evenhand.runs.record import Run
from in_process import evenhand

TOML = """
name = "s"
[[probe]]
name = "underspecified"
pairs = 4
templates = 1
attributes = ["nurse"]
resamples = 50
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> Path:
    """A folder `runs` with one finished run, its suite and the name of its model beside it."""
    top = Path(tmp_path_factory.mktemp("finished"))
    (top / "s.toml").write_text(TOML)
    (top / "model").write_text(tiny("choice"))
    audit(tiny("choice"), load_suite(top / "s.toml"), out=top / "runs" / "r")
    return top


def without(*path: str) -> Callable[[Any], Any]:
    def change(facts: Any) -> Any:
        inner = facts
        for part in path[:-1]:
            inner = inner[part]
        del inner[path[-1]]
        return facts

    return change


def with_value(value: Any, *path: str) -> Callable[[Any], Any]:
    def change(facts: Any) -> Any:
        inner = facts
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = value
        return facts

    return change


WRONG: dict[str, bytes | Callable[[Any], Any]] = {
    "empty": b"",
    "zeros": b"\0" * 100,
    "not UTF-8": b"\xff\xfe{}",
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "no work": without("work"),
    "no models": without("models"),
    "no attempts": without("attempts"),
    "no status": without("status"),
    "no suite": without("work", "suite"),
    "no seed": without("work", "seed"),
    "a text as work": with_value("x", "work"),
    "a text as attempts": with_value("two", "attempts"),
    "a list of probes": with_value([], "probes"),
    "a number as probe": with_value(3, "probes", "underspecified"),
    "no summary": without("probes", "underspecified", "summary"),
    "a text as settings": with_value("x", "probes", "underspecified", "settings"),
    "a number as model": with_value({"m": 1}, "models"),
    "a list as store": with_value([], "work", "store"),
    "a text as timings": with_value("x", "timings"),
    "a text as format": with_value("one", "format"),
}


def spoiled(finished: Path, top: Path, name: str) -> Path:
    folder = top / "runs" / "bad"
    shutil.copytree(finished / "runs" / "r", folder)
    how, path = WRONG[name], folder / "run.json"
    path.write_bytes(
        how if isinstance(how, bytes) else json.dumps(how(json.loads(path.read_text()))).encode()
    )
    return folder


@pytest.mark.parametrize("name", WRONG)
def test_damage_is_told_with_the_next_command(finished: Path, tmp_path: Path, name: str) -> None:
    folder = spoiled(finished, tmp_path, name)
    with pytest.raises(
        RunError, match="run.json is damaged .*The scores are kept.*mv .*--out"
    ) as e:
        Run.open(folder)
    assert str(folder) in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("name", ["empty", "not UTF-8", "no work"])
@pytest.mark.parametrize(
    "words", ["resume", "show", "report", "gate", "compare", "export", "audit"]
)
def test_every_command_says_so(finished: Path, tmp_path: Path, name: str, words: str) -> None:
    folder = str(spoiled(finished, tmp_path, name))
    given = {
        "compare": ("compare", folder, str(finished / "runs" / "r")),
        "audit": ("audit", (finished / "model").read_text(), "--suite", str(finished / "s.toml"),
                  "--out", folder),
        "export": ("export", folder, "--format", "csv", "--out", str(tmp_path / "e")),
    }  # fmt: skip
    done = evenhand(*given.get(words, (words, folder)), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("evenhand: ")
    assert "run.json is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_advice_works_and_no_score_is_repeated(finished: Path, tmp_path: Path) -> None:
    folder = spoiled(finished, tmp_path, "empty")
    (folder / "run.json").rename(folder / "run.json.damaged")
    model = (finished / "model").read_text()
    again = audit(model, load_suite(finished / "s.toml"), out=folder)
    assert again.facts["probes"]["underspecified"]["counts"]["shards_scored"] == 0
    one, two = (p / "findings.json" for p in (folder, finished / "runs" / "r"))
    assert one.read_bytes() == two.read_bytes()


def test_other_runs_are_listed_beside_a_damaged_one(finished: Path, tmp_path: Path) -> None:
    spoiled(finished, tmp_path, "no work")
    shutil.copytree(finished / "runs" / "r", tmp_path / "runs" / "good")
    rows = listed(tmp_path / "runs")
    assert [(r["run"], r["status"]) for r in rows] == [("good", "finished"), ("bad", "damaged")]
    done = evenhand("ls", "runs", cwd=tmp_path)
    assert done.returncode == 0
    assert "damaged" in done.stdout


def test_damaged_findings_are_written_again_by_resume(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(finished / "runs" / "r", folder)
    whole = (folder / "findings.json").read_bytes()
    for raw in (whole[:-30], b"{}", b"[1]", b"\xff", b'{"findings": [5]}'):
        (folder / "findings.json").write_bytes(raw)
        done = evenhand("show", str(folder), cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "findings.json is damaged" in done.stderr
        assert f"evenhand resume {folder}" in done.stderr
    assert evenhand("resume", str(folder), cwd=tmp_path).returncode == 0
    assert (folder / "findings.json").read_bytes() == whole


def test_a_newer_format_is_not_called_damage(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(finished / "runs" / "r", folder)
    (folder / "run.json").write_text('{"format": 99, "all": "is different"}')
    with pytest.raises(RunError, match="format 99, this version reads up to 1. Upgrade"):
        read_facts(folder)
