"""Paging through large tables: right rows, exact totals, skipped row groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.viewer import folders
from evenhand.viewer.folders import PAGE, ItemTable

ROWS, GROUP = 10_000, 500


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ItemTable:
    """Two coded columns, one plain text column sorted, one with nulls, and a number."""
    rng = np.random.default_rng(3)
    jobs = pa.array(["chef", "hunter", "nurse", "pilot"])
    columns = {
        "attribute": pa.DictionaryArray.from_arrays(pa.array(rng.integers(4, size=ROWS)), jobs),
        "term": pa.array([f"t{i // 1000}" for i in range(ROWS)]),
        "maybe": pa.array([None if i % 3 else "yes" for i in range(ROWS)]),
        "score": rng.random(ROWS),
    }
    path = Path(tmp_path_factory.mktemp("items")) / "items.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=GROUP)
    return ItemTable(path)


def whole(table: ItemTable) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(table.path).to_pylist()
    return rows


FILTERS = [
    {}, {"attribute": "nurse"}, {"attribute": "nurse", "term": "t7"}, {"term": "t3"},
    {"any": "t9"}, {"any": "pilot"}, {"search": "URSE"}, {"search": "t1", "attribute": "chef"},
    {"maybe": "yes"}, {"attribute": "nobody"}, {"unknown": "x"},
]  # fmt: skip


def passes(row: dict[str, object], filters: dict[str, str]) -> bool:
    texts = [str(v) for k, v in row.items() if k != "score" and v is not None]
    for key, value in filters.items():
        if key == "any" and value not in texts:
            return False
        if key == "search" and not any(value.lower() in t.lower() for t in texts):
            return False
        if key in row and row[key] != value:
            return False
    return True


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_pages_equal_those_of_the_whole_table(table: ItemTable, filters: dict[str, str]) -> None:
    known = [row for row in whole(table) if passes(row, filters)]
    last = max(1, -(-len(known) // PAGE))
    for number in {1, 2, last // 2 or 1, last, last + 1}:
        page = table.page(filters, number)
        assert list(page.rows) == known[(number - 1) * PAGE : number * PAGE]
        assert (page.matches, page.total) == (len(known), ROWS)
        assert page.more == (len(known) > number * PAGE)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_streams_hold_every_matching_row(table: ItemTable, filters: dict[str, str]) -> None:
    known = [list(row.values()) for row in whole(table) if passes(row, filters)]
    assert [row for rows in table.stream(filters) for row in rows] == known


def test_row_groups_that_cannot_match_are_never_read(table: ItemTable, tmp_path: Path) -> None:
    """Spoiled bytes in all row groups but two raise an error as soon as they are read."""
    metadata = pq.read_metadata(table.path)
    raw = bytearray(table.path.read_bytes())
    for group in {*range(metadata.num_row_groups)} - {6, 7}:  # rows 3000 to 3999
        column = metadata.row_group(group).column(1)
        start = column.dictionary_page_offset or column.data_page_offset
        raw[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    (tmp_path / "spoiled.parquet").write_bytes(raw)
    spoiled = ItemTable(tmp_path / "spoiled.parquet")
    page = spoiled.page({"term": "t3"})
    assert page.matches == 1000
    assert page.rows == table.page({"term": "t3"}).rows
    with pytest.raises(OSError):
        spoiled.page({"term": "t4"})


def test_the_first_request_for_a_scattered_value_has_all_rows_and_the_exact_total(
    table: ItemTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [r for r in whole(table) if r["attribute"] == "nurse"]
    monkeypatch.setattr(folders, "PAGE", 400)  # spreads over several row groups
    page = ItemTable(table.path).page({"attribute": "nurse"})
    assert list(page.rows) == known[:400]
    assert (page.matches, page.more) == (len(known), True)
    last = ItemTable(table.path).page({"attribute": "nurse"}, 7)
    assert (list(last.rows), last.more) == (known[2400:], False)


def test_values_to_choose_from_come_from_dictionaries_and_statistics(table: ItemTable) -> None:
    values = table.values()
    assert values["attribute"] == ["chef", "hunter", "nurse", "pilot"]
    assert set(values["term"]) == {f"t{i}" for i in range(10)}


def test_an_empty_table_has_an_empty_page(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), tmp_path / "x.parquet")
    page = ItemTable(tmp_path / "x.parquet").page({"a": "b"})
    assert (page.rows, page.matches, page.more) == ((), 0, False)
