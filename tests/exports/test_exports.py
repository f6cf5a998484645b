"""Exports hold the findings' numbers, keep to their formats, and carry no attack along."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pyarrow.parquet as pq
import pytest

import export_schemas as schemas
import made_runs
from evenhand.errors import RunError, SpecError
from evenhand.exports import FORMATS, export, write
from evenhand.exports.common import csv_cell, distance, file_name
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run, RunWriter
from evenhand.viewer.folders import Folders

TEXT_FORMATS = [name for name in FORMATS if name not in ("parquet", "figures")]


def only(run: Run, name: str) -> bytes:
    (raw,) = export(run, name).values()
    return raw


def rows_of(run: Run) -> dict[str, dict[str, Any]]:
    return {r["id"]: r for r in json.loads((run.folder / "findings.json").read_bytes())["findings"]}


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_every_text_format_is_valid_utf8_without_control_characters(
    hostile: Run, name: str
) -> None:
    for raw in export(hostile, name).values():
        text = raw.decode("utf-8")
        assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(text)


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_same_run_gives_the_same_bytes(ordinary: Run, name: str) -> None:
    assert export(ordinary, name) == export(Run.open(ordinary.folder), name)


def test_csv_holds_every_finding_with_its_numbers(ordinary: Run) -> None:
    found = list(csv.DictReader(io.StringIO(only(ordinary, "csv").decode())))
    assert [r["id"] for r in found] == list(rows_of(ordinary))
    for row in found:
        known = rows_of(ordinary)[row["id"]]["value"]
        assert row["value"] == ("" if known is None else repr(known))


def test_no_csv_cell_starts_a_formula(hostile: Run) -> None:
    before = csv.field_size_limit(10**7)
    rows = list(csv.reader(io.StringIO(only(hostile, "csv").decode())))
    csv.field_size_limit(before)
    for row in rows:
        for cell in row:
            if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
                float(cell)  # a plain negative number is allowed


@pytest.mark.parametrize("text", ["=1", "+1", "-x", "@A1", "\t=1", "\r=1", " =1", "＝1"])
def test_a_cell_that_a_spreadsheet_would_run_gets_a_quote(text: str) -> None:
    assert str(csv_cell(text)).startswith("'")


def test_parquet_reads_back_with_the_same_values(ordinary: Run) -> None:
    table = pq.read_table(io.BytesIO(only(ordinary, "parquet")))
    known = [row["value"] for row in rows_of(ordinary).values()]
    assert table.column("value").to_pylist() == known


def test_lm_eval_has_the_keys_of_its_readers(ordinary: Run) -> None:
    ((name, raw),) = export(ordinary, "lm-eval").items()
    assert name == "tiny-model/results_2026-01-02T03-05-05.json"
    data = json.loads(raw)
    task = "evenhand/underspecified/gamma/nurse"
    assert data["results"][task]["gamma,none"] == 0.3125
    assert data["results"][task]["gamma_stderr,none"] == pytest.approx(0.21 / 3.92, rel=1e-3)
    assert data["results"]["evenhand/underspecified/mu"]["mu,none"] == 0.0791
    assert data["higher_is_better"]["evenhand/underspecified/mu"] == {"mu": False}
    assert data["higher_is_better"][task] == {"gamma": None}
    assert "evenhand/underspecified/gamma/chef" not in data["results"]  # undefined
    assert data["lm_eval_version"] is None
    tasks = set(data["results"])
    for key in ("configs", "versions", "n-shot", "n-samples", "task_hashes", "higher_is_better"):
        assert set(data[key]) == tasks
    for values in data["results"].values():
        for key, value in values.items():
            if key.endswith("_stderr,none"):
                assert value == "N/A" or isinstance(value, float)


def test_lm_evals_own_table_maker_takes_it(ordinary: Run) -> None:
    utils = pytest.importorskip("lm_eval.utils", reason="lm-eval is not installed")
    pytest.importorskip("pytablewriter", reason="lm-eval's table maker needs pytablewriter")
    table = utils.make_table(json.loads(only(ordinary, "lm-eval")))
    assert "evenhand/underspecified/gamma/nurse" in table
    assert "0.3125" in table


def test_the_distance_of_a_fifty_is_ideal_score() -> None:
    found = Finding("x", "x", "ss", 58.0, "", 54.0, 62.0, ideal=50.0)
    assert distance(found) == (8.0, 4.0, 12.0)


def test_model_index_is_taken_by_huggingface_hub(ordinary: Run) -> None:
    data = pytest.importorskip("huggingface_hub.repocard_data", reason="needs huggingface_hub")
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    card = hub.ModelCard(f"---\n{only(ordinary, 'model-index').decode()}---\n# A model\n")
    results = card.data.eval_results
    assert card.data.model_name == "tiny-model"
    found = {r.metric_name: r for r in results}
    nurse = found["lean γ, nurse (female / male) (ideal 0)"]
    assert nurse.metric_value == 0.3125
    assert nurse.metric_args == {"n": 48, "ideal": 0.0, "ci95": [0.2, 0.41], "q_value": 0.0004}
    again = data.eval_results_to_model_index("tiny-model", results)
    assert len(again[0]["results"]) == 2  # one per probe


def test_a_hostile_model_index_is_still_plain_metadata(hostile: Run) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    card = hub.ModelCard(f"---\n{only(hostile, 'model-index').decode()}---\n")
    assert card.data.model_name == made_runs.SCRIPT


def test_the_card_section_says_what_was_found_and_what_was_not(ordinary: Run) -> None:
    text = only(ordinary, "model-card").decode()
    assert "## Bias, Risks, and Limitations" in text
    assert "lean γ +0.312 | 0.200 to 0.410 | &lt; 0.001 | 48 |" in text
    assert "hunter (female / male)" in text


def test_hostile_text_in_a_card_section_is_only_text(hostile: Run) -> None:
    text = only(hostile, "model-card").decode()
    assert "<" not in text
    assert len(text) < 20_000


def test_junit_counts_failures_and_errors(ordinary: Run) -> None:
    root = xml.fromstring(only(ordinary, "junit"))
    assert {k: root.get(k) for k in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
    }
    (failure,) = root.iter("failure")
    assert failure.text == "lean γ +0.312 [0.200, 0.410], q < 0.001, n 48"
    assert [e.get("message") for e in root.iter("error")] == ["no cell had both names"]


def test_every_room_counts_the_same_findings(tmp_path: Path) -> None:
    """Detections of method checks and of other models count nowhere."""
    nurse, hunter, *_ = made_runs.findings()
    clock = replace(
        nurse, id="ceat/weat1", probe="ceat", metric="combined_effect_size", groups=("a", "b")
    )
    other = replace(nurse, id="underspecified/gamma/other", model="other-model")
    lost = replace(nurse, id="underspecified/gamma/lost", value=NAN, detected=None, reason="none")
    strange = replace(lost, id="underspecified/gamma/strange", model="other-model")
    facts = made_runs.facts()
    facts["probes"]["ceat"] = {"probe": "ceat", "settings": {}, "summary": {}}
    claims = [nurse, hunter, clock, other, lost, strange]
    run = made_runs.write(tmp_path / "run", facts, claims, made_runs.tables())
    root = xml.fromstring(only(run, "junit"))
    assert [root.get(k) for k in ("tests", "failures", "errors")] == ["3", "1", "1"]
    results = json.loads(only(run, "sarif"))["runs"][0]["results"]
    assert [r["kind"] for r in results] == ["fail", "pass", "notApplicable"]
    card = only(run, "model-card").decode()
    assert "(2 tests)" in card
    assert card.count(nurse.sentence) == 1
    line = Folders(tmp_path).line(run)
    assert (line.detected, line.tests) == (1, 2)
    story = kind_of(run.facts).story(run)
    assert story.strongest == tuple(run.strongest) == (run.findings[0],)
    assert [f.id for f in story.controls] == ["ceat/weat1"]


def test_junit_of_a_hostile_run_is_well_formed(hostile: Run) -> None:
    root = xml.fromstring(only(hostile, "junit"))
    assert int(root.get("failures", "0")) == 1 + len(made_runs.HOSTILE)


@pytest.mark.parametrize("which", ["ordinary", "hostile"])
def test_sarif_keeps_to_its_schema(request: Any, which: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    data = json.loads(only(request.getfixturevalue(which), "sarif"))
    jsonschema.validate(data, schemas.SARIF)
    rules = data["runs"][0]["tool"]["driver"]["rules"]
    for result in data["runs"][0]["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_warns_about_detections_alone(ordinary: Run) -> None:
    results = json.loads(only(ordinary, "sarif"))["runs"][0]["results"]
    warned = [r["partialFingerprints"]["findingId/v1"] for r in results if r["level"] == "warning"]
    assert warned == ["underspecified/gamma/nurse"]


def test_figures_come_as_four_files_each(ordinary: Run) -> None:
    pytest.importorskip("vl_convert", reason="needs the report extra")
    files = export(ordinary, "figures")
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    assert len(files) == 4 * 4  # four charts
    for name, raw in files.items():
        assert raw.startswith(starts[name.rpartition(".")[2]]), name
    svg = files["underspecified-1-lean-by-attribute.svg"].decode()
    assert svg.count("mark-symbol role-mark") == 1
    assert "nurse" in svg


def test_file_names_stay_inside_the_folder(hostile: Run, tmp_path: Path) -> None:
    for name in TEXT_FORMATS:
        for path in write(export(hostile, name), tmp_path / name):
            assert path.resolve().is_relative_to(tmp_path.resolve())
    assert file_name("../../../etc/passwd") == "etc-passwd"
    assert file_name("...") == "model"


def test_a_single_file_can_be_given_by_name(ordinary: Run, tmp_path: Path) -> None:
    (path,) = write(export(ordinary, "csv"), tmp_path / "mine.csv")
    assert path == tmp_path / "mine.csv"
    assert path.read_bytes() == only(ordinary, "csv")


def test_an_unknown_format_names_the_nearest(ordinary: Run) -> None:
    with pytest.raises(SpecError, match="unknown format 'serif'. Did you mean 'sarif'"):
        export(ordinary, "serif")


def test_an_unfinished_run_is_refused_with_the_command_that_goes_on(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run").facts({**made_runs.facts(), "status": "interrupted"})
    with pytest.raises(RunError, match=r"'interrupted'.*evenhand resume"):
        export(Run.open(tmp_path / "run"), "csv")


def test_the_command_prints_one_file_or_says_why_not(ordinary: Run) -> None:
    command = [sys.executable, "-m", "evenhand", "export", str(ordinary.folder), "--out", "-"]
    done = subprocess.run([*command, "--format", "sarif"], capture_output=True, check=True)
    assert done.stdout == only(ordinary, "sarif")
