"""Score tables: formats, kinds of columns, and messages."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.corpora.tables import Table, from_columns, read_table
from evenhand.errors import DataError, SpecError

CSV = "name,number,flag\nNA,0.1,True\n007,,no\ntrue,-2e-3,1\n"


def check(table: Table) -> None:
    names = table.labels("name")
    assert [names[k] for k in range(3)] == ["NA", "007", "true"]
    np.testing.assert_array_equal(table.numbers("number"), [0.1, np.nan, -0.002])
    assert table.flags("flag").tolist() == [True, False, True]


def test_csv_keeps_names_that_look_like_something_else(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    check(read_table(path, text=["name", "absent"]))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    check(read_table(tmp_path / "t.csv.gz", text=["name"]))
    (tmp_path / "t.tsv").write_text(CSV.replace(",", "\t"))
    check(read_table(tmp_path / "t.tsv", text=["name"]))
    (tmp_path / "plain").write_text(CSV)
    check(read_table(tmp_path / "plain", text=["name"]))


def test_json_lines(tmp_path: Path) -> None:
    lines = (
        '{"name": "NA", "number": 0.1, "flag": true}\n\n'
        '{"name": "007", "flag": false}\n{"name": "true", "number": -0.002, "flag": true}\n'
    )
    for name in ("t.jsonl", "plain"):
        (tmp_path / name).write_text(lines)
        check(read_table(tmp_path / name))
    whole = "[" + ",".join(line for line in lines.splitlines() if line) + "]"
    (tmp_path / "t.json").write_text(whole)
    check(read_table(tmp_path / "t.json"))


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {"name": ["NA", "007", "true"], "number": [0.1, None, -0.002], "flag": [1, 0, 1]}
    )
    for name in ("t.parquet", "plain"):
        pq.write_table(table, tmp_path / name, row_group_size=1)
        check(read_table(tmp_path / name))


def test_dates_and_numbers_as_text_stay_as_written() -> None:
    table = from_columns({"day": ["2020-01-02", "2020-01-01"], "id": [2, 1]}, "memory")
    assert table.labels("day").values == ("2020-01-01", "2020-01-02")
    assert table.labels("id").values == ("1", "2")


def test_missing_columns_are_named_with_the_nearest() -> None:
    table = from_columns({"templat": ["a"], "score": [1.0]}, "t.csv")
    told = "t.csv: the file has no column 'template'.* Missing: template, other. Columns found: t"
    with pytest.raises(DataError, match=told):
        table.require(["template", "other"])
    with pytest.raises(DataError, match=r"no column 'template'. The nearest is 'templat'\."):
        table.require(["template", "score"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n1,2,3\n", "not a readable CSV file"),
        ("a,a\n1,2\n", "a column name occurs twice"),
    ],
)
def test_broken_csv(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "t.csv")


def test_broken_json_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(DataError, match="line 2: is not JSON"):
        read_table(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match=r"line 1: expected an object, found \[1\]"):
        read_table(tmp_path / "t.jsonl")
    (tmp_path / "t.parquet").write_text("no")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read_table(tmp_path / "t.parquet")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_wrong_values_name_row_and_value() -> None:
    table = from_columns({"x": ["1", "two"], "flag": ["yes", "maybe"], "gap": ["a", None]}, "t")
    with pytest.raises(DataError, match="row 2, column x: 'two' is not a number"):
        table.numbers("x")
    with pytest.raises(DataError, match="row 2, column flag: 'maybe' is not a yes or no"):
        table.flags("flag")
    with pytest.raises(DataError, match="row 2, column gap: is empty; 1 of 2 rows"):
        table.labels("gap")
    with pytest.raises(DataError, match="a header but no rows"):
        from_columns({"x": []}, "t").require(["x"])
    with pytest.raises(DataError, match="differ in length"):
        from_columns({"x": [1], "y": []}, "t")


def test_a_flag_between_yes_and_no_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.csv"
    path.write_text("negated\n1.0\n0.5\n")
    with pytest.raises(DataError, match=r"row 2, column negated: '0.5' is not a yes or no"):
        read_table(path).flags("negated")
    path.write_text("negated\n1.0\n0.0\n")
    assert read_table(path).flags("negated").tolist() == [True, False]


ROWS = [
    {"item": k // 2, "group": ("women", "men")[k % 2], "score": (k * 7 % 10) / 10 - 0.05 * (k % 2)}
    for k in range(40)
]


def forms() -> Iterator[tuple[str, Any]]:
    """The same table as people hold it in memory."""
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    yield "rows", ROWS
    yield "columns", columns
    yield "arrays", {name: np.asarray(values) for name, values in columns.items()}
    yield "arrow", pa.table(columns)
    yield "coded", pa.table({**columns, "group": pa.array(columns["group"]).dictionary_encode()})
    pandas = pytest.importorskip("pandas", reason="needs the pandas extra")
    frame = pandas.DataFrame(columns)
    yield "frame", frame
    yield "categories", frame.astype({"group": "category", "item": "category"})
    yield "indexed", frame.set_index("item", drop=False)
    yield "mixed", frame.assign(item=[k if k % 4 < 2 else str(k) for k in columns["item"]])


def test_tables_in_memory_are_measured_as_files_are(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    want = eh.measure.counterfactual(path)
    for name, given in forms():
        assert eh.measure.counterfactual(given).gaps == want.gaps, name
        assert eh.measure.table(given, outcome="score").n == len(ROWS), name
    run = eh.as_run(eh.measure.counterfactual(ROWS), tmp_path / "run")
    assert run.facts["work"]["model"] == "the table"
    assert run.report.is_file()


@pytest.mark.parametrize("given", [3, None, [], [1, 2], b"x"])
def test_what_is_no_table_is_refused_in_a_sentence(given: Any) -> None:
    with pytest.raises(SpecError) as refused:
        eh.measure.counterfactual(given)
    kind = type(given).__name__
    assert str(refused.value).startswith(f"measure counterfactual: table: {kind} is not a table.")
    assert "DataFrame" in str(refused.value)
    assert "Value error" not in str(refused.value)


def test_mistakes_in_a_table_in_memory_speak_of_no_file() -> None:
    with pytest.raises(
        DataError, match=r"^the table: .*no column 'score'\. The nearest is 'Score'"
    ):
        eh.measure.counterfactual([{"item": 1, "group": "a", "Score": 1.0}])
    with pytest.raises(DataError, match=r"the table, row 2, column group: is empty; 1 of 2"):
        eh.measure.counterfactual({"item": [1, 1], "group": ["a", None], "score": [1.0, 0.5]})
    with pytest.raises(SpecError, match=r"the columns differ in length"):
        eh.measure.counterfactual({"item": [1, 1], "group": ["a"], "score": [1.0]})


def test_a_result_shows_its_tables_as_text_and_in_a_notebook() -> None:
    result = eh.measure.counterfactual(ROWS)
    shown = list(result.shown())
    lines = str(result).splitlines()
    assert lines[0] == shown[0].title
    assert lines[1].split() == list(shown[0].head)
    assert lines[2].split() == [cell for cell in shown[0].rows[0] if cell]
    page = result._repr_html_()
    assert page.count("<table>") == sum(bool(part.head) for part in shown)
    assert all(f">{cell}</td>" in page for cell in shown[0].rows[0] if cell)
