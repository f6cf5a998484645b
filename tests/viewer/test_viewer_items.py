"""Paging through large tables: right rows, skipped row groups, time limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.viewer import items
from evenhand.viewer.items import PAGE, ItemTable

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
        page = table.page(filters, number, seconds=60)
        assert list(page.rows) == known[(number - 1) * PAGE : number * PAGE]
        assert (page.matches, page.complete, page.total) == (len(known), True, ROWS)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_streams_hold_every_matching_row(table: ItemTable, filters: dict[str, str]) -> None:
    known = [list(row.values()) for row in whole(table) if passes(row, filters)]
    assert [row for rows in table.stream(filters) for row in rows] == known


def test_row_groups_that_cannot_match_are_never_read(
    table: ItemTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    fresh = ItemTable(table.path)
    real = fresh._file()

    class Watched:
        def read_row_group(self, group: int, columns: list[str] | None = None) -> pa.Table:
            read.append(group)
            return real.read_row_group(group, columns=columns)

    monkeypatch.setattr(fresh, "_file", Watched)
    page = fresh.page({"term": "t3"}, seconds=60)
    assert page.matches == 1000
    assert set(read) == {6, 7}  # rows 3000 to 3999


def test_a_request_stops_in_time_and_the_next_goes_on(
    table: ItemTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = ItemTable(table.path)
    clock = iter(range(1000))
    monkeypatch.setattr(items.time, "monotonic", lambda: next(clock))
    first = fresh.page({"attribute": "nurse"}, seconds=5)
    assert 0 < first.searched < 1
    assert first.more
    pages = [fresh.page({"attribute": "nurse"}, seconds=5) for _ in range(4)]
    assert pages[-1].complete
    assert pages[-1].matches == sum(r["attribute"] == "nurse" for r in whole(table))


def test_a_page_of_scattered_rows_is_read_in_parts_and_ends_the_same(
    table: ItemTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [r for r in whole(table) if r["attribute"] == "nurse"]
    rare = ItemTable(table.path)
    monkeypatch.setattr(items, "PAGE", 400)  # spreads over several row groups
    whole_page = rare.page({"attribute": "nurse"}, seconds=60)
    assert list(whole_page.rows) == known[:400]
    fresh = ItemTable(table.path)
    fresh.page({"attribute": "nurse"}, 9, seconds=60)  # counts everything
    monkeypatch.setattr(items.time, "monotonic", iter(range(1, 10_000)).__next__)
    sizes = [len(fresh.page({"attribute": "nurse"}, seconds=0).rows) for _ in range(12)]
    assert sizes[0] < 400
    assert sizes == sorted(sizes)
    assert list(fresh.page({"attribute": "nurse"}, seconds=0).rows) == known[:400]


def test_values_to_choose_from_come_from_dictionaries_and_statistics(table: ItemTable) -> None:
    values = table.values()
    assert values["attribute"] == ["chef", "hunter", "nurse", "pilot"]
    assert set(values["term"]) == {f"t{i}" for i in range(10)}


def test_an_empty_table_has_an_empty_page(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), tmp_path / "x.parquet")
    page = ItemTable(tmp_path / "x.parquet").page({"a": "b"})
    assert (page.rows, page.matches, page.complete) == ((), 0, True)
