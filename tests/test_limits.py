"""How much is read: every limit is named in its message, with what to set for more."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand import opening as limits
from evenhand.arrays import map_array, read_arrays, read_parquet
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, SpecError
from evenhand.models.vectors.files import open_vectors
from evenhand.opening import json_lines, lines, opened, read_json, read_rows, read_text, read_toml


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "text=1KiB,line=100,ratio=2,array=64KiB,depth=5,seconds=3600"
    monkeypatch.setenv(limits.VARIABLE, told)
    monkeypatch.setattr(limits, "SLACK", 1000)
    monkeypatch.setattr("evenhand.arrays.SLACK", 1000)


@pytest.mark.usefixtures("small")
def test_a_text_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps("x" * 2000))
    told = r"unpacked, larger than 1 KiB \(the limit 'text'\).*EVENHAND_LIMITS=text=NUMBER"
    for read in (read_text, read_json, read_toml, read_rows):
        with pytest.raises(DataError, match=told):
            read(path)


@pytest.mark.usefixtures("small")
def test_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("short\n" + "x" * 5_000_000)
    with pytest.raises(DataError, match="a line is longer than 100 bytes"):
        list(lines(path))
    path.write_text("art 1 2\nmath " + "1" * 200 + " 2\n")
    with pytest.raises(DataError, match="a line is longer than 100 bytes"):
        open_vectors(path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_file_that_unpacks_without_end(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "t.csv.x"
    path.write_bytes(pack(b"1,2\n" * 200_000))  # type: ignore[operator]
    told = "unpacks to more than its own size times 2 "
    with pytest.raises(DataError, match=told), opened(path) as file:
        file.read()
    with pytest.raises(DataError, match=told):
        read_table(path)


@pytest.mark.usefixtures("small")
def test_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(20_000))
    with pytest.raises(DataError, match="the array 'a' is larger than 64 KiB"):
        read_arrays(tmp_path / "x.npz")
    pq.write_table(pa.table({"a": np.zeros(20_000)}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="its rows take more than 64 KiB"):
        read_parquet(tmp_path / "x.parquet")
    (tmp_path / "v.vec").write_text("4 99999999\nart 1 0\n")
    with pytest.raises(DataError, match="one of its vectors would take more than 64 KiB"):
        open_vectors(tmp_path / "v.vec")


@pytest.mark.usefixtures("small")
def test_an_archive_that_unpacks_without_end(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(2_000))
    with pytest.raises(DataError, match="unpacks to more than its own size times 2 "):
        read_arrays(tmp_path / "x.npz")


@pytest.mark.usefixtures("small")
def test_nesting(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a": [[[[[[]]]]]]}')
    (tmp_path / "t.toml").write_text("a = [[[[[[]]]]]]")
    told = "is nested deeper than 5 "
    for read, name in ((read_json, "t.json"), (read_toml, "t.toml")):
        with pytest.raises(DataError, match=told):
            read(tmp_path / name)
    with pytest.raises(DataError, match=f"line 1: {told}"):
        list(json_lines(tmp_path / "t.json"))


@pytest.mark.parametrize("name", ["t.json", "t.toml"])
def test_nesting_beyond_the_stack(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(("a = " if name == "t.toml" else "") + "[" * 100_000)
    read = read_toml if name == "t.toml" else read_json
    with pytest.raises(DataError, match="is nested deeper than 200 "):
        read(tmp_path / name)


def test_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"x"))
    clock = iter(range(0, 10**9, 4000))
    monkeypatch.setattr(limits.time, "monotonic", lambda: next(clock))
    with pytest.raises(DataError, match=r"longer to read than these seconds: 3,600 \(the limit"):
        read_text(tmp_path / "t.gz")


def test_more_is_read_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.json").write_text("[" * 300 + "]" * 300)
    with pytest.raises(DataError, match="nested deeper than 200"):
        read_json(tmp_path / "t.json")
    monkeypatch.setenv(limits.VARIABLE, "depth=400")
    assert read_json(tmp_path / "t.json")


@pytest.mark.parametrize("given", ["x=1", "text", "text=many", "text=-1", "text=1MB"])
def test_a_wrong_limit_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(limits.VARIABLE, given)
    with pytest.raises(SpecError, match=f"EVENHAND_LIMITS: {given!r}: expected NAME=NUMBER"):
        limits.limit("text")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_text(tmp_path / "p")


def test_an_array_is_as_long_as_it_says(tmp_path: Path) -> None:
    """numpy reads what the head promises and never comes to the check sum of the archive."""
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(24.0))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"(24,)", b"(14,)"))
    with pytest.raises(DataError, match=r"x\.npz: is not an \.npz file of plain arrays"):
        read_arrays(path)
    np.save(tmp_path / "y.npy", np.arange(24.0))
    raw = (tmp_path / "y.npy").read_bytes()
    (tmp_path / "y.npy").write_bytes(raw.replace(b"(24,)", b"(14,)"))
    with pytest.raises(DataError, match="192 bytes where its head promises 112"):
        map_array(tmp_path / "y.npy")


def test_a_name_twice_in_an_archive(tmp_path: Path) -> None:
    one = io.BytesIO()
    np.save(one, np.ones(2))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr("a.npy", one.getvalue())
    with pytest.raises(DataError, match="'a' is there twice"):
        read_arrays(tmp_path / "x.npz")


def test_pages_of_parquet_are_compared_with_their_check_sums(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"score": [0.25, 0.5, 0.75]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(np.float64(0.5).tobytes(), np.float64(0.625).tobytes(), 1))
    with pytest.raises(DataError, match="is not a readable Parquet file .*CRC"):
        read_table(path)


def test_folders_above_a_parquet_file_add_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "score=1"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1.0]}), folder / "t.parquet")
    assert list(read_table(folder / "t.parquet").columns) == ["a"]
