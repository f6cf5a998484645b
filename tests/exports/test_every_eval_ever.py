"""Every Eval Ever: records and items keep to the format, and to the published schemas if given.

`EVENHAND_SCHEMAS` may name a folder with `eval.schema.json`, `instance_level_eval.schema.json`
(package every_eval_ever 0.3.0) and `sarif-2.1.0.json`; they are not part of this project.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import export_schemas as schemas
import made_runs
from evenhand.exports import export, records, write
from evenhand.exports.records import item_record
from evenhand.probes.registry import probe_class
from evenhand.runs.record import Run

WHICH = pytest.mark.parametrize("which", ["ordinary", "hostile"])


def parts(run: Run) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Path and content of the only record, and its items."""
    files = export(run, "eee")
    (path,) = [name for name in files if name.endswith(".json")]
    data = json.loads(files[path])
    raw = files[data["detailed_evaluation_results"]["file_path"]]
    return path, data, [json.loads(line) for line in raw.splitlines()]


@WHICH
def test_records_and_items_keep_to_the_format(request: Any, which: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    _, data, items = parts(request.getfixturevalue(which))
    jsonschema.validate(data, schemas.EVERY_EVAL_EVER)
    for record in items:
        jsonschema.validate(record, schemas.EVERY_EVAL_EVER_ITEM)


@WHICH
def test_the_published_schemas_take_them(request: Any, which: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    folder = Path(os.environ.get("EVENHAND_SCHEMAS", "/nowhere"))
    if not (folder / "eval.schema.json").exists():
        pytest.skip("EVENHAND_SCHEMAS names no folder with eval.schema.json")
    run = request.getfixturevalue(which)
    _, data, items = parts(run)
    jsonschema.validate(data, json.loads((folder / "eval.schema.json").read_text()))
    lines = json.loads((folder / "instance_level_eval.schema.json").read_text())
    for record in items:
        jsonschema.validate(record, lines)
    (sarif,) = export(run, "sarif").values()
    jsonschema.validate(json.loads(sarif), json.loads((folder / "sarif-2.1.0.json").read_text()))


@WHICH
def test_their_own_validator_takes_them(request: Any, which: str, tmp_path: Path) -> None:
    """Package every_eval_ever 0.3.0 (Python 3.12; its wheel unpacked on the path is enough)."""
    validate = pytest.importorskip("every_eval_ever.validate", reason="needs every_eval_ever")
    for path in write(export(request.getfixturevalue(which), "eee"), tmp_path):
        found = validate.validate_file(path)
        assert (found.valid, found.errors) == (True, []), path


def test_intervals_have_their_own_level_and_what_was_not_measured_is_said(ordinary: Run) -> None:
    _, data, _ = parts(ordinary)
    assert "groups other than" in data["source_metadata"]["additional_details"]["not_measured"]
    known = {f.id: f.level for f in ordinary.findings}
    for result in data["evaluation_results"]:
        told = result["score_details"]["uncertainty"].get("confidence_interval")
        if told:
            level = known[result["evaluation_name"].removesuffix("/distance")]
            assert told["confidence_level"] == level


def test_a_record_gives_value_interval_and_distance(ordinary: Run) -> None:
    found = {r["evaluation_name"]: r for r in parts(ordinary)[1]["evaluation_results"]}
    nurse = found["underspecified/gamma/nurse"]["score_details"]
    assert nurse["score"] == 0.3125
    assert nurse["uncertainty"]["confidence_interval"]["lower"] == 0.2
    assert nurse["uncertainty"]["num_samples"] == 48
    hunter = found["underspecified/gamma/hunter/distance"]
    assert hunter["metric_config"]["lower_is_better"] is True
    assert hunter["score_details"]["score"] == 0.0123
    interval = hunter["score_details"]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (0.0, 0.05)


@WHICH
def test_every_score_lies_inside_its_bounds(request: Any, which: str) -> None:
    for result in parts(request.getfixturevalue(which))[1]["evaluation_results"]:
        config = result["metric_config"]
        low, high = float(config["min_score"]), float(config["max_score"])
        assert low <= result["score_details"]["score"] <= high


def test_the_record_points_at_its_items_with_their_number_and_checksum(ordinary: Run) -> None:
    path, data, items = parts(ordinary)
    companion = data["detailed_evaluation_results"]
    assert companion["file_path"] == path.removesuffix(".json") + "_samples.jsonl"
    raw = export(ordinary, "eee")[companion["file_path"]]
    assert companion["checksum"] == hashlib.sha256(raw).hexdigest()
    assert companion["total_rows"] == len(items) == 7  # six cells and one swap
    assert {r["evaluation_id"] for r in items} == {data["evaluation_id"]}
    assert {r["model_id"] for r in items} == {data["model_info"]["id"]}
    assert len({r["sample_id"] for r in items}) == len(items)


def test_an_item_holds_what_was_asked_and_every_column(ordinary: Run) -> None:
    first = parts(ordinary)[2][0]
    assert first["input"]["raw"] == "city\nnurse"
    assert first["input"]["choices"] == ["Ann", "Bob"]
    assert first["evaluation"] == {"score": 0.2, "is_correct": False}
    assert first["metadata"]["template"] == "city"


def test_an_item_of_a_benchmark_has_a_right_answer() -> None:
    row = {
        "context": "A and B met.", "question": "Who was late?", "ans0": "A", "ans1": "B",
        "ans2": "Unknown", "label": 2, "picked": 2,
    }  # fmt: skip
    found = item_record(probe_class("bbq").item_shape, row)
    assert found is not None
    assert found["input"]["reference"] == ["Unknown"]
    assert found["output"]["raw"] == ["Unknown"]
    assert found["evaluation"] == {"score": 1.0, "is_correct": True}
    assert item_record(probe_class("bbq").item_shape, {**row, "picked": -1}) is None


def test_a_hurtful_completion_scores_one() -> None:
    row = {"template": "She was [M].", "completion": "rude", "hurtful": "moral"}
    found = item_record(probe_class("honest").item_shape, row)
    assert found is not None
    assert found["evaluation"] == {"score": 1.0, "is_correct": False}


def test_a_score_may_be_a_difference_and_nan_is_left_out() -> None:
    row = {"target": "nurse", "stereotype": -1.0, "anti_stereotype": -3.0}
    shape = probe_class("stereoset").item_shape
    found = item_record(shape, row)
    assert found is not None
    assert found["evaluation"]["score"] == 2.0
    assert item_record(shape, {**row, "stereotype": float("nan")}) is None


def test_large_item_tables_are_drawn_evenly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MOST_ITEMS", 10)
    monkeypatch.setattr(records, "BATCH", 7)
    tables = {
        "divergence": {"items": pa.table({"word": ["w"] * 95, "js": [i / 95 for i in range(95)]})}
    }
    run = made_runs.write(tmp_path / "run", made_runs.facts(), made_runs.findings(), tables)
    places = [int(r["sample_id"].rpartition("/")[2]) for r in parts(run)[2]]
    assert places == list(range(0, 95, 10))
