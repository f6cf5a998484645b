"""A run of an older version: its words may be other ones, its numbers may not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.evidence.comparing import difference, older_words, same_document
from evenhand.runs.finding import from_json, to_table
from evenhand.runs.record import Run, RunWriter

Rows = list[dict[str, Any]]


def worded(run: Run, folder: Path, *, state: str = "older", **changed: Any) -> Run:
    """A copy of a run as a version without words for differences would have written it."""
    copy = Path(shutil.copytree(run.folder, folder))
    rows: Rows = json.loads((copy / "findings.json").read_bytes())["findings"]
    for row in rows:
        row.pop("difference")
        row |= {"sentence": f"Once it was said: {row['sentence']}", **changed}
    raw = json.dumps({"format": 1, "findings": rows}, indent=1, ensure_ascii=False) + "\n"
    (copy / "findings.json").write_text(raw, encoding="utf-8")
    table = to_table(from_json(raw.encode())).drop_columns(["difference"])
    _write(table, copy / "findings.parquet")
    facts = json.loads((copy / "run.json").read_text())
    facts["environment"]["code"] = state or run.facts["environment"]["code"]
    RunWriter(copy).facts(facts)
    return Run.open(copy)


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def test_other_words_of_an_older_version_are_no_difference(bbq: Any, tmp_path: Path) -> None:
    run: Run = bbq[0]
    old = worded(run, tmp_path / "old", harm="somebody: worded otherwise")
    assert older_words(old)
    assert not older_words(run)
    assert difference(old, run) == ""


def test_other_words_of_this_version_are_one(bbq: Any, tmp_path: Path) -> None:
    run: Run = bbq[0]
    assert difference(worded(run, tmp_path / "now", state=""), run) == "findings.json"


@pytest.mark.parametrize("changed", [{"value": 0.123}, {"detected": True}, {"n": 7}, {"q": 0.01}])
def test_another_number_is_one_in_every_version(
    bbq: Any, tmp_path: Path, changed: dict[str, Any]
) -> None:
    run: Run = bbq[0]
    old = worded(run, tmp_path / "old", **changed)
    assert difference(old, run) == "findings.json"


def test_a_table_has_to_be_that_of_its_findings(bbq: Any, tmp_path: Path) -> None:
    run: Run = bbq[0]
    old = worded(run, tmp_path / "old")
    shutil.copy(run.folder / "findings.parquet", old.folder / "findings.parquet")
    assert difference(old, run) == "findings.parquet"


def test_a_scenario_may_word_its_hazard_otherwise_and_nothing_else() -> None:
    made = json.dumps({"scenarios": [{"id": "a", "hazard": "new", "shown": True}]}).encode()
    held = json.dumps({"scenarios": [{"id": "a", "hazard": "old", "shown": True}]}).encode()
    other = json.dumps({"scenarios": [{"id": "a", "hazard": "old", "shown": False}]}).encode()
    assert same_document(made, held, older=True)
    assert not same_document(made, held, older=False)
    assert not same_document(made, other, older=True)
    assert not same_document(made, b"", older=True)


def test_verify_says_that_it_left_the_words_out(bbq: Any, tmp_path: Path) -> None:
    old = worded(bbq[0], tmp_path / "old")
    file = eh.bundle(old.folder, tmp_path / "old.evidence.tar")
    verified = eh.verify(file)
    assert verified.ok, verified.reason
    assert "wording of an older version" in verified.elsewhere
