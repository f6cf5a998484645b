"""What a run folder shows is what the run wrote, and only from inside the folder."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
import made_runs
from evenhand.audit.suites import parse_suite
from evenhand.errors import RunError, SpecError
from evenhand.runs.finding import Finding, to_json
from evenhand.runs.record import Run, RunWriter
from in_process import evenhand

NAN = float("nan")


def claim(**changes: Any) -> Finding:
    given = {"model": "tiny-model", "detected": False, "counts": True, "margin": 0.1, "value": 0.0}
    return Finding("a/x", "a", "m", sentence="", **{**given, **changes})


# the gate


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ([], "undefined"),
        ([claim(detected=None)], "undefined"),
        ([claim(value=NAN)], "undefined"),
        ([claim(value=NAN), claim(value=math.inf)], "undefined"),
        ([claim(value=NAN, detected=True)], "failed"),
        ([claim(value=0.01, low=NAN, high=NAN, detected=True, margin=NAN)], "failed"),
        ([claim(value=NAN), claim()], "passed"),
    ],
)
def test_the_gate_never_passes_what_was_not_tested(
    tmp_path: Path, findings: list[Finding], outcome: str
) -> None:
    run = made_runs.write(tmp_path / "r", made_runs.facts(), findings, {})
    assert eh.gate(run).outcome == outcome
    done = evenhand("gate", str(run.folder), cwd=tmp_path)
    assert done.returncode == {"passed": 0, "failed": 1}.get(outcome, 3)


@pytest.mark.parametrize("limit", ["nan", "-1", "x", ""])
def test_a_limit_is_a_distance(tmp_path: Path, limit: str) -> None:
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim()], {})
    with pytest.raises(SpecError, match="0 or more"):
        eh.gate(run, [f"a/x={limit}"])


@pytest.mark.parametrize("error", [1e-320, 1e-10, 0, 0.5, NAN, math.inf, -0.05])
def test_an_error_rate_is_one_that_something_can_settle(tmp_path: Path, error: float) -> None:
    """Below it the quantile of a number of items that would settle a check is infinite."""
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim()], {})
    with pytest.raises(SpecError, match="error"):
        eh.gate(run, require="within-margin", error=error)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{}", b"[]", b"null", b'{"findings": []}', b'{"format": 2, "findings": []}',
        b'{"format": 1, "findings": {}}', b'{"format": 1, "findings": [[]]}', b"[" * 100_000,
        b'{"format": 1, "findings": [{"id": "a"}]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("listed", [True, False])
def test_another_findings_file_never_passes(tmp_path: Path, raw: bytes, listed: bool) -> None:
    """Whether or not run.json knows the hash of the file (older runs do not)."""
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim()], {})
    (run.folder / "findings.json").write_bytes(raw)
    if not listed:
        unsealed(run.folder)
    assert evenhand("gate", str(run.folder), cwd=tmp_path).returncode in (1, 2, 3)


def unsealed(folder: Path) -> None:
    """The run as an older version wrote it: without hashes."""
    facts = json.loads((folder / "run.json").read_text())
    del facts["sha256"], facts["files"]
    (folder / "run.json").write_text(json.dumps(facts))


WRONG: dict[str, Any] = {
    "value": ["0.1", True, [0.1], {}], "detected": ["no", 0, 1], "counts": [None, "yes", 0],
    "groups": ["ab", None, {}], "n": ["3", 2.5], "details": [[], None], "sentence": [None, 3],
    "margin": ["0.1"], "examples": [{}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in WRONG.items() for v in values])
def test_findings_of_wrong_kinds_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim()], {})
    held = json.loads(to_json([claim()]))
    held["findings"][0][name] = value
    (run.folder / "findings.json").write_text(json.dumps(held))
    unsealed(run.folder)
    with pytest.raises(RunError, match=r"findings\.json is damaged"):
        eh.gate(run.folder)


# names


@pytest.mark.parametrize("label", ["../../../x", "/tmp/x", "a/b", "..", ".", ".x", "a b", 3, ["a"]])
def test_labels_are_not_paths(label: Any) -> None:
    row = {"name": "divergence", "label": label}
    with pytest.raises(SpecError, match="label"):
        parse_suite({"probe": [row]}, "s.toml", "s")


def test_tables_of_other_folders_are_neither_read_nor_written(tmp_path: Path) -> None:
    run = made_runs.ordinary(tmp_path / "r")
    other = made_runs.ordinary(tmp_path / "other")
    table = other.table("underspecified", "items")
    away = "../../other/probes/underspecified"
    assert run.tables(away) == {}
    with pytest.raises(RunError, match="unknown probe"):
        run.table(away, "items")
    for place in ((away, "items"), ("underspecified", "../items")):
        with pytest.raises(RunError, match="names no table"):
            RunWriter(run.folder).table(*place, table)
    facts = json.loads((run.folder / "run.json").read_text())
    facts["probes"][away] = facts["probes"]["underspecified"]
    (run.folder / "run.json").write_text(json.dumps(facts))
    done = evenhand("report", str(run.folder), cwd=tmp_path)
    assert done.returncode == 2
    assert away in done.stderr


def test_the_usual_folder_is_below_runs() -> None:
    from evenhand.runs.room import default_folder

    made = default_folder("../../a b", "../../../etc/x")
    assert made.parent == Path("runs")
    assert made.name.endswith("-a-b-x")


# damage


def test_every_bit_that_is_shown_is_checked(tmp_path: Path) -> None:
    """Single bits of run.json, findings and tables: detected, or what is read stays the same."""
    run = made_runs.ordinary(tmp_path / "r")
    files = sorted(p for p in run.folder.rglob("*") if p.suffix in (".json", ".parquet"))
    assert len(files) >= 5
    whole = seen(run.folder)
    draw = np.random.default_rng(0)
    caught = 0
    for number in range(300):
        path = files[number % len(files)]
        raw = path.read_bytes()
        place = int(draw.integers(len(raw)))
        spoiled = bytearray(raw)
        spoiled[place] ^= 1 << int(draw.integers(8))
        path.write_bytes(bytes(spoiled))
        try:
            assert seen(run.folder) == whole, (path, place)
        except RunError:
            caught += 1
        path.write_bytes(raw)
    assert caught > 250
    assert seen(run.folder) == whole


def seen(folder: Path) -> Any:
    run = Run.open(folder)
    tables = {(p, n): run.table(p, n).to_pylist() for p in run.probes for n in run.tables(p)}
    return json.dumps([run.facts, tables and [f.as_dict() for f in run.findings]]), repr(tables)


def test_a_damaged_table_is_written_again_by_resume(tmp_path: Path, tiny: Any) -> None:
    suite = {"probe": [{"name": "underspecified", "pairs": 4, "templates": 1,
                        "attributes": ["nurse"], "resamples": 50}]}  # fmt: skip
    run = eh.audit(tiny("choice"), parse_suite(suite, "here", "here"), out=tmp_path / "r")
    path = run.tables("underspecified")["items"]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(RunError, match="evenhand resume"):
        Run.open(run.folder).table("underspecified", "items")
    eh.resume(run.folder)
    assert path.read_bytes() == whole
    assert Run.open(run.folder).table("underspecified", "items").num_rows


def test_a_planted_table_is_not_shown(tmp_path: Path) -> None:
    run = made_runs.ordinary(tmp_path / "r")
    folder = run.folder / "probes" / "underspecified"
    (folder / "planted.parquet").write_bytes((folder / "items.parquet").read_bytes())
    with pytest.raises(RunError, match=r"planted\.parquet is damaged"):
        run.tables("underspecified")


@pytest.mark.parametrize("name", ["run.json", "findings.json"])
def test_a_name_twice_in_an_older_run_is_damage(tmp_path: Path, name: str) -> None:
    """Where no hash is known, readers would still understand it differently."""
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim()], {})
    unsealed(run.folder)
    path = run.folder / name
    word = "detected" if name == "findings.json" else "attempts"
    twice = path.read_text().replace(f'"{word}"', f'"{word}": 1, "{word}"', 1)
    path.write_text(twice)
    with pytest.raises(RunError, match=f"{word}' occurs twice"):
        eh.gate(run.folder)


def test_older_runs_are_still_read(tmp_path: Path) -> None:
    run = made_runs.ordinary(tmp_path / "r")
    unsealed(run.folder)
    assert Run.open(run.folder).findings


# settings


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, NAN, math.inf, True, "0.05", None])
def test_a_false_discovery_rate_is_a_share(rate: Any) -> None:
    with pytest.raises(SpecError, match="false_discovery_rate"):
        parse_suite({"false_discovery_rate": rate, "probe": [{"name": "divergence"}]}, "s", "s")


def test_replaced_findings_are_recognised(tmp_path: Path) -> None:
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [claim(detected=True, value=1.0)], {})
    (run.folder / "findings.json").write_bytes(to_json([replace(claim(), value=0.0)]))
    with pytest.raises(RunError, match="not what the run wrote"):
        eh.gate(run.folder)
