"""A short fuzz of every reader; `make fuzz` runs 100,000 cases."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.audit.suites import parse_suite
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, EvenhandError, ModelError
from evenhand.models.loading import checkpoint
from evenhand.opening import json_lines, parse_json, read_json, read_toml, understood
from evenhand.runs.finding import Finding
from fuzz.fuzzing import fuzz

CASES = int(os.environ.get("EVENHAND_FUZZ_CASES", "150"))
EXAMPLES = int(os.environ.get("EVENHAND_FUZZ_EXAMPLES", "100"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


def test_spoiled_files_are_accepted_or_refused_in_one_paragraph() -> None:
    faults = Counter(
        f"{name}: {outcome} {said}"
        for name, outcome, said in fuzz(CASES, seed=0)
        if outcome not in ("accepted", "refused")
    )
    assert not faults


@given(st.dictionaries(st.sampled_from(["name", "title", "kinds", "probe"]), json_values))
@settings(max_examples=EXAMPLES)
def test_suites_of_any_shape(data: dict[str, Any]) -> None:
    data = {**data, "probe": [data.get("probe"), {"name": "divergence", **data}]}
    with pytest.raises(EvenhandError):
        parse_suite(data, "s.toml", "s")


@given(st.dictionaries(st.sampled_from(sorted(Finding.__dataclass_fields__)), json_values))
@settings(max_examples=2 * EXAMPLES)
def test_findings_of_any_shape_are_right_or_refused(row: dict[str, Any]) -> None:
    whole = {"id": "a", "probe": "b", "metric": "c", "value": 0.0, "sentence": "", **row}
    try:
        found = Finding.from_dict(whole)
    except (TypeError, OverflowError):
        return
    assert isinstance(found.value, (int, float))
    assert found.detected in (True, False, None)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "ignore")))
@settings(max_examples=EXAMPLES)
def test_bytes_of_any_kind_are_one_sentence(tmp_path_factory: Any, raw: bytes) -> None:
    folder = Path(tmp_path_factory.mktemp("any"))
    path = folder / "model.safetensors"
    path.write_bytes(raw)
    for read in (read_json, read_toml, lambda p: list(json_lines(p))):
        with contextlib.suppress(EvenhandError):
            read(path)
    with pytest.raises(ModelError):
        checkpoint.shapes(folder)
    with pytest.raises(ModelError):
        checkpoint.gguf_shapes(path)


def test_what_no_check_foresaw_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EvenhandError, match="KeyError: 3"), understood("x.csv"):
        raise KeyError(3)
    monkeypatch.setenv("EVENHAND_DEBUG", "1")
    with pytest.raises(KeyError), understood("x.csv"):
        raise KeyError(3)


def test_column_names_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\xf5,b\n1,2\n")
    with pytest.raises(DataError, match=r"t\.csv: is not a readable CSV"):
        read_table(tmp_path / "t.csv")


cells = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=6
).filter(lambda text: text.strip() == text)


@given(st.lists(st.tuples(cells, st.floats(allow_nan=False, width=32)), min_size=1, max_size=6))
@settings(max_examples=EXAMPLES)
def test_every_format_of_a_table_says_what_was_written(tmp_path_factory: Any, rows: Any) -> None:
    """Texts that look like numbers, formulas or quotes stay texts; numbers stay these numbers."""
    folder = Path(tmp_path_factory.mktemp("table"))
    with open(folder / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "number"), *rows])
    told = [{"text": text, "number": number} for text, number in rows]
    (folder / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in told))
    pq.write_table(pa.Table.from_pylist(told), folder / "t.parquet")
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        table = read_table(folder / name, text=["text"], needed=["text", "number"])
        assert list(table.labels("text")) == [text for text, _ in rows], name
        assert table.numbers("number").tolist() == [number for _, number in rows], name


@given(json_values)
@settings(max_examples=EXAMPLES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    text = json.dumps(value)
    assert json.dumps(parse_json(text, "x.json")) == text
