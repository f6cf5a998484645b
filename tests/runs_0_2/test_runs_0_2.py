"""Folders and files that version 0.2.0.dev0 wrote (see `make.py`) are read as they were meant."""

from __future__ import annotations

import csv
import gzip
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.evidence.comparing import difference, near
from evenhand.runs.kinds import kind_of
from in_process import evenhand
from runs_0_2 import make

AUDITS = ("even", "planted", "first", "later")
RUNS = (
    *(f"audits/{name}" for name in AUDITS),
    "measured/counterfactual",
    "measured/decision",
    "mitigations/causal-a-inlp/run",
    "studies/finished",
)
MITIGATIONS = [
    f"mitigations/{kind}-{method}" for kind, methods in make.METHODS.items() for method in methods
]
DETECTED = {"audits/even": 0, "audits/planted": 7}
"""Findings that count in each scripted audit."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of everything, which is the working directory."""
    copy = Path(shutil.copytree(make.MADE, tmp_path / "made"))
    for path in copy.glob("bundles/*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify as on another machine, where sums may end in other last digits.

    The recorded versions do not say which processor it was, and equal versions are held to the
    byte; whoever runs these tests has another processor.
    """
    monkeypatch.setattr("evenhand.evidence.verifying.elsewhere", lambda run: "another processor")


def stored(run: str) -> list[dict[str, Any]]:
    """The findings as the file has them."""
    rows: list[dict[str, Any]] = json.loads(Path(run, "findings.json").read_bytes())["findings"]
    return rows


def same(value: float, written: float | None, rel: float = 1e-9) -> bool:
    """Whether a number is the written one; null stands for NaN."""
    if written is None:
        return math.isnan(value)
    return value == pytest.approx(written, rel=rel, abs=rel)


@pytest.mark.parametrize("place", RUNS)
def test_a_run_opens_with_every_finding_it_has(place: str, folder: Path) -> None:
    run, rows = eh.Run.open(place), stored(place)
    assert run.status == "finished"
    assert [f.id for f in run.findings] == [row["id"] for row in rows]
    assert rows
    for finding, row in zip(run.findings, rows):
        for name in ("value", "low", "high", "p", "q"):
            assert same(getattr(finding, name), row[name]), (finding.id, name)
        assert (finding.n, finding.detected, finding.sentence) == (
            row["n"],
            row["detected"],
            row["sentence"],
        )


@pytest.mark.parametrize("place", [*DETECTED])
def test_a_run_counts_the_findings_that_it_counted(place: str, folder: Path) -> None:
    counted = [f for f in eh.Run.open(place).findings if f.detected and f.counts]
    assert len(counted) == DETECTED[place]


@pytest.mark.parametrize("place", RUNS)
def test_a_run_is_reported_shown_and_exported(place: str, folder: Path) -> None:
    done = evenhand("report", place, cwd=folder)
    assert done.returncode == 0, done.stderr
    page = Path(place, "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    ids = [row["id"] for row in stored(place)]
    shown = evenhand("show", place, "--json", "-", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert {row["id"] for row in json.loads(shown.stdout)["findings"]} == set(ids)
    exported = evenhand("export", place, "--format", "csv", "--out", "new.csv", cwd=folder)
    assert exported.returncode == 0, exported.stderr
    with open("new.csv", encoding="utf-8", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ids


@pytest.mark.parametrize("place", RUNS)
def test_every_table_of_a_run_is_read(place: str, folder: Path) -> None:
    run = eh.Run.open(place)
    files = sorted(Path(place, "probes").glob("*/*.parquet"))
    assert files
    for path in files:
        assert path.stem in run.tables(path.parent.name)
        assert run.table(path.parent.name, path.stem).num_rows > 0


def test_an_interrupted_run_is_finished_from_the_shards_it_has(folder: Path) -> None:
    pytest.importorskip("torch", reason="needs the hf extra")
    place = Path("audits/interrupted")
    begun = {p.name for p in (place / "scores").glob("*.parquet")}
    assert eh.Run.open(place).status == "interrupted"
    done = evenhand("resume", str(place), cwd=folder)
    assert done.returncode == 0, done.stderr
    run = eh.Run.open(place)
    assert run.status == "finished"
    assert begun < {p.name for p in (place / "scores").glob("*.parquet")}
    assert run.facts["shards"]["scored_by_attempt"]["1"] == len(begun) == 3
    assert run.facts["shards"]["scored_by_attempt"]["2"] > 0
    rows = {row["id"]: row for row in stored("audits/first")}  # the same, never interrupted
    assert [f.id for f in run.findings] == list(rows)
    for finding in run.findings:
        assert same(finding.value, rows[finding.id]["value"], rel=1e-4), finding.id


@pytest.mark.parametrize(("name", "lean"), [("even", 0.0), ("planted", 1.0)])
def test_a_finished_run_is_computed_again_from_its_scores(
    name: str, lean: float, folder: Path
) -> None:
    place = f"audits/{name}"
    rows = stored(place)
    run = make.audit(lean, Path(place))
    assert run.facts["attempts"] == 2
    assert set(run.facts["shards"]["scored_by_attempt"]) == {"1"}
    assert [f.id for f in run.findings] == [row["id"] for row in rows]
    for finding, row in zip(run.findings, rows):
        for column in ("value", "low", "high", "p", "q"):
            assert same(getattr(finding, column), row[column]), (finding.id, column)


def test_another_model_is_not_resumed_into_a_finished_run(folder: Path) -> None:
    with pytest.raises(eh.EvenhandError, match="changed"):
        make.audit(0.5, Path("audits/even"))


def test_two_runs_are_compared(folder: Path) -> None:
    written = json.loads(Path("json/compare-scripted.json").read_bytes())
    compared = eh.compare("audits/even", "audits/planted")
    assert compared.verdict == "worse"
    rows = {row["finding"]: row for row in written["findings"]}
    assert [across.finding for across in compared.findings] == list(rows)
    done = evenhand("compare", "audits/first", "audits/later", "--json", "-", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {row["finding"] for row in json.loads(done.stdout)["findings"]} == {
        row["id"] for row in stored("audits/first")
    }


@pytest.mark.parametrize("policy", make.POLICIES)
def test_a_policy_is_read_and_decides_as_it_did(policy: str, folder: Path) -> None:
    written = json.loads(Path(f"json/gate-{policy}.json").read_bytes())
    gate = eh.gate("audits/planted", policy=f"policies/{policy}.toml")
    assert gate.outcome == written["outcome"] == "failed"
    outcomes = {check["id"]: check["outcome"] for check in written["checks"]}
    assert {check.id: check.outcome for check in gate.checks} == outcomes
    done = evenhand("gate", "audits/planted", "--policy", f"policies/{policy}.toml", cwd=folder)
    assert done.returncode == 1, done.stderr


def test_undetected_is_a_requirement(folder: Path) -> None:
    assert eh.Policy(require="undetected").require == "undetected"
    gate = eh.gate("audits/even", policy={"require": "undetected", "only": ["underspecified/*"]})
    assert gate.outcome == "passed"
    done = evenhand("gate", "audits/planted", "--require", "undetected", cwd=folder)
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize("suite", ["scripted", "judged", "two"])
def test_a_suite_is_read(suite: str, folder: Path) -> None:
    loaded = eh.load_suite(f"suites/{suite}.toml")
    assert loaded.name == suite
    text = Path(f"suites/{suite}.toml").read_text()
    assert len(loaded.entries) == text.count("[[probe]]")
    if suite == "two":
        recorded = eh.Run.open("audits/first").facts["work"]["suite"]["probe"]
        assert [entry.label for entry in loaded.entries] == [row["label"] for row in recorded]


@pytest.mark.parametrize("name", ["signed", "audit", "measured", "mitigation", "study"])
def test_a_bundle_verifies(name: str, folder: Path, elsewhere: None) -> None:
    if name == "signed":
        pytest.importorskip("cryptography", reason="signatures need the sign extra")
    outcome = eh.verify(f"bundles/{name}.evidence.tar")
    assert outcome.ok, outcome.reason
    assert outcome.hashes_equal
    assert outcome.findings_equal
    assert outcome.signature == ("valid" if name == "signed" else "none")


@pytest.mark.parametrize("name", ["audit", "measured", "signed"])
def test_another_state_may_round_otherwise_on_the_same_machine(name: str, folder: Path) -> None:
    """The recorded versions are those of here, and only the state of evenhand differs."""
    outcome = eh.verify(f"bundles/{name}.evidence.tar")
    assert outcome.findings_equal, outcome.reason


def test_a_signature_is_checked_against_its_key(folder: Path, elsewhere: None) -> None:
    pytest.importorskip("cryptography", reason="signatures need the sign extra")
    file = "bundles/signed.evidence.tar"
    done = evenhand("verify", file, "--key", "bundles/key.pub.pem", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    raw = bytearray(Path(file).read_bytes())
    raw[raw.index(b'"value"') + 12] ^= 1
    Path(file).write_bytes(raw)
    assert evenhand("verify", file, cwd=folder).returncode == 1


def test_a_run_that_is_computed_again_is_bundled_and_verified(folder: Path) -> None:
    for place in ("audits/even", "studies/finished"):
        if place.startswith("audits"):
            make.audit(0.0, Path(place))
        else:
            assert evenhand("resume", place, cwd=folder).returncode == 0
        outcome = eh.verify(eh.bundle(place, f"{Path(place).name}.evidence.tar"))
        assert outcome.ok, outcome.reason


def test_what_a_run_recorded_is_compared_whatever_was_added_since(folder: Path) -> None:
    """Keys and columns that came later are left out; a changed number of today's is found."""
    run = eh.Run.open("audits/even")
    again = kind_of(run.facts).again(run, folder / "again").run
    assert difference(run, again, near) == ""

    facts = again.facts
    facts["probes"]["underspecified"]["summary"]["mean_score"] += 0.001
    other: Any = SimpleNamespace(folder=again.folder, facts=facts)
    assert "summary of 'underspecified'" in difference(run, other, near)

    file = again.folder / "probes" / "bbq" / "scores.parquet"
    table = pq.read_table(file)
    changed = [value + 0.001 for value in table.column("value").to_pylist()]
    where = table.column_names.index("value")
    pq.write_table(table.set_column(where, "value", pa.array(changed)), file)
    assert difference(run, again, near) == "probes/bbq/scores.parquet"


@pytest.mark.parametrize("spec", MITIGATIONS)
def test_a_saved_mitigation_answers_as_it_did(spec: str, folder: Path) -> None:
    pytest.importorskip("torch", reason="needs the hf extra")
    written = json.loads(Path("json/answers.json").read_bytes())[spec]
    answered = make.answers(spec)
    assert set(answered) == set(written)
    for name, values in written.items():
        np.testing.assert_allclose(answered[name], values, rtol=1e-3, atol=1e-4, err_msg=name)


def test_a_saved_mitigation_is_not_its_base(folder: Path) -> None:
    pytest.importorskip("torch", reason="needs the hf extra")
    written = json.loads(Path("json/answers.json").read_bytes())
    bases = {"causal": "models/causal", "masked": "models/masked", "vectors": "data/vectors.txt"}
    for kind, base in bases.items():
        before = make.answers(base)
        for method in make.METHODS[kind]:
            assert before != written[f"mitigations/{kind}-{method}"], (kind, method)


def test_a_saved_mitigation_is_audited(folder: Path) -> None:
    pytest.importorskip("torch", reason="needs the hf extra")
    run = eh.audit("mitigations/causal-a-inlp", "suites/two.toml", out="new")
    rows = {row["id"]: row for row in stored("audits/later")}
    assert [f.id for f in run.findings] == list(rows)
    for finding in run.findings:
        assert same(finding.value, rows[finding.id]["value"], rel=1e-4), finding.id


def test_an_unfinished_study_is_finished(folder: Path) -> None:
    pytest.importorskip("gensim", reason="training word vectors needs the train extra")
    place = Path("studies/unfinished")
    before = {p: p.stat().st_mtime_ns for p in place.glob("cells/*/*.json")}
    assert eh.Run.open(place).status == "interrupted"
    done = evenhand("resume", str(place), cwd=folder)
    assert done.returncode == 0, done.stderr
    run = eh.Run.open(place)
    assert run.status == "finished"
    after = {p: p.stat().st_mtime_ns for p in place.glob("cells/*/*.json")}
    assert {p: time for p, time in after.items() if p in before} == before
    added = sorted(p.stem for p in after if p not in before)
    assert added == ["hate_speech", "hate_speech", "intrinsic", "intrinsic"]
    rows = {row["id"]: row for row in stored("studies/finished")}
    assert [f.id for f in run.findings] == list(rows)


def test_a_finished_study_does_nothing_again(folder: Path) -> None:
    place = Path("studies/finished")
    before = {p: p.stat().st_mtime_ns for p in place.glob("cells/*/*.json")}
    rows = stored(str(place))
    done = evenhand("resume", str(place), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {p: p.stat().st_mtime_ns for p in place.glob("cells/*/*.json")} == before
    findings = eh.Run.open(place).findings
    assert [f.id for f in findings] == [row["id"] for row in rows]
    for finding, row in zip(findings, rows):
        assert same(finding.value, row["value"]), finding.id
