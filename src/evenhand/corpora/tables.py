"""Read score tables: CSV, JSON lines or Parquet, into named columns.

Text columns are coded (`Labels`: the distinct values and one integer per row), numbers are float64,
flags are bool. Rows are counted from 1, without the header. Case is kept.

Arrow takes what follows a closing quote in CSV for part of the cell; here it is rejected:

    "so it is",1        fine
    "so "it is,1        where does the cell end? rejected, with its line
    5" long,1           fine: a quote inside a cell that began without one

So is a cell that is never closed. A file without quotes cannot have the fault; others are read a
second time, by the strict reader of Python.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.opening import BLOCK, json_lines, opened, read_json
from evenhand.writing import SUFFIX

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

DATA_FOLDER = "EVENHAND_DATA"
"""Environment variable: a second folder in which relative paths of benchmarks are looked up."""
IN_MEMORY = "the table"
"""Source name of a table that was not read from a file."""
FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def find_data(path: str | Path, what: str) -> Path:
    """Return the path of a benchmark file or folder: as passed, or below EVENHAND_DATA.

    Args:
        path: absolute, relative to here, or relative to EVENHAND_DATA.
        what: what the file is, for the error message if it is missing.
    """
    if not str(path):
        raise DataError(
            f"{what}: no file is given, and the benchmark is not part of this package. Name your "
            f"copy, for example: --data FILE (or --set data=FILE)"
        )
    given = Path(path).expanduser()
    folder = os.environ.get(DATA_FOLDER)
    for place in (given, *([Path(folder).expanduser() / given] if folder else [])):
        if place.exists():
            return place
    also = f", nor below {folder}" if folder else f"; {DATA_FOLDER} is not set"
    raise DataError(
        f"{what}: {str(path)!r} is not here{also}. The benchmark is not part of this package: name "
        f"your copy with --data, or set {DATA_FOLDER} to the folder that holds it."
    )


@dataclass(frozen=True, slots=True)
class Labels:
    """A text column: `values[codes[k]]` is the text of row k. Values are sorted."""

    values: tuple[str, ...]
    codes: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str]:
        return (self.values[code] for code in self.codes)

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]


@dataclass(frozen=True)
class Table:
    """Table in memory whose columns are read by name and kind."""

    columns: dict[str, Any]
    source: str
    n_rows: int

    def has(self, name: str) -> bool:
        """Return True if the table has the column."""
        return name in self.columns

    def require(self, names: Iterable[str]) -> None:
        """Raise if a column is missing, or if there are no rows; name all missing columns."""
        lost = [name for name in names if name not in self.columns]
        if lost:
            near = get_close_matches(lost[0], self.columns, n=1)
            meant = f" The nearest is {near[0]!r}." if near else ""
            what = "there is" if self.source == IN_MEMORY else "the file has"
            raise DataError(
                f"{self.source}: {what} no column {lost[0]!r}.{meant} Missing: "
                f"{', '.join(lost)}. Columns found: {', '.join(self.columns)}."
            )
        if not self.n_rows:
            raise DataError(f"{self.source}: the table has a header but no rows.")

    def labels(self, name: str) -> Labels:
        """Return a text column, coded; raise if a cell is empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        empty = pc.or_kleene(pc.is_null(column), pc.equal(column.cast(pa.string()), ""))
        self._no_gaps(name, np.asarray(pc.fill_null(empty, True)))
        values = column.dictionary.to_pylist()
        order = sorted(range(len(values)), key=values.__getitem__)
        rank = np.empty(len(values), np.int64)
        rank[order] = np.arange(len(values))
        codes = rank[np.asarray(column.indices, np.int64)]
        return Labels(tuple(values[k] for k in order), codes)

    def texts(self, name: str, instead: str) -> list[str]:
        """Return a text column, or `instead` in every row if there is no such column."""
        return list(self.labels(name)) if self.has(name) else [instead] * self.n_rows

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers; empty cells become NaN; raise if a cell is text."""
        import pyarrow as pa

        column = self._column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        try:
            values = column.cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = pa.array([self._number(name, *pair) for pair in enumerate(column.to_pylist())])
        array = values.to_numpy(zero_copy_only=False) if len(values) else np.empty(0)
        return np.asarray(array, np.float64)

    def flags(self, name: str) -> npt.NDArray[np.bool_]:
        """Return a column of true/false, 1/0 or yes/no, whatever their case."""
        import pyarrow as pa

        column = self._column(name)
        if pa.types.is_floating(column.type):
            with contextlib.suppress(pa.ArrowInvalid):  # 0.5 is neither: refused below, as it is
                column = column.cast(pa.int64())
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        labels = Table({name: column}, self.source, self.n_rows).labels(name)
        known = [FLAGS.get(value.strip().lower()) for value in labels.values]
        if None in known:
            row = int(np.flatnonzero(labels.codes == known.index(None))[0])
            raise DataError(
                f"{self.source}, row {row + 1}, column {name}: {labels[row]!r} is not a yes or no. "
                "Accepted: true or false, 1 or 0, yes or no."
            )
        return np.asarray(known, np.bool_)[labels.codes]

    def scores(self, name: str) -> Floats:
        """Return numbers in [0, 1] without gaps; raise with the row of the first other value.

        A float32 softmax may overshoot by its rounding, so 1e-6 beyond the bounds is accepted.
        """
        values = self.numbers(name)
        self._no_gaps(name, np.isnan(values), "has no score (empty or NaN)")
        wrong = np.flatnonzero((values < -1e-6) | (values > 1 + 1e-6))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{self.source}, row {row + 1}, column {name}: the score '{values[row]:g}' is "
                f"outside 0 to 1 ({len(wrong)} such rows). Scores are probabilities; "
                "convert logits or log-probabilities first."
            )
        return values

    def _column(self, name: str) -> Any:
        self.require([name])
        return self.columns[name]

    def _number(self, name: str, row: int, value: Any) -> float | None:
        if value is None or value == "":
            return math.nan
        try:
            return float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{self.source}, row {row + 1}, column {name}: {value!r} is not a number."
            ) from None

    def _no_gaps(self, name: str, gaps: npt.NDArray[np.bool_], what: str = "is empty") -> None:
        if gaps.any():
            rows = np.flatnonzero(gaps)
            raise DataError(
                f"{self.source}, row {int(rows[0]) + 1}, column {name}: {what}; {len(rows)} of "
                f"{self.n_rows} rows are like this. Fill them in, or leave those rows out."
            )


def from_columns(columns: dict[str, Sequence[Any] | npt.NDArray[Any]], source: str) -> Table:
    """Return a table of lists or arrays."""
    made = {name: _arrow(values) for name, values in columns.items()}
    lengths = {name: len(column) for name, column in made.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{source}: the columns differ in length: {lengths}.")
    return Table(made, source, next(iter(lengths.values()), 0))


def in_memory(value: Any) -> Table | None:
    """A DataFrame (pandas, polars), an Arrow table, columns by name or a list of rows; else None.

    >>> in_memory({"group": ["women", "men"], "score": [0.2, 0.4]}).numbers("score").tolist()
    [0.2, 0.4]
    >>> in_memory([{"group": "women"}, {"group": "men"}]).n_rows
    2
    """
    if isinstance(value, Table):
        return value
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__"):
        return _of_frame(value)
    if isinstance(value, Mapping):
        return from_columns({str(k): v for k, v in value.items()}, IN_MEMORY)
    rows = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if rows and value and all(isinstance(row, Mapping) for row in value):
        names = dict.fromkeys(name for row in value for name in row)
        return from_columns({str(k): [row.get(k) for row in value] for k in names}, IN_MEMORY)
    return None


def _of_frame(frame: Any) -> Table:
    """Return the columns of a DataFrame, without its index."""
    import pyarrow as pa

    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    if len(set(names)) < len(names):
        raise DataError(f"{IN_MEMORY}: a column name occurs twice: {', '.join(names)}.")
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):  # columns of mixed values
        own: dict[str, Any] = {str(name): list(frame[name]) for name in frame.columns}
        return from_columns(own, IN_MEMORY)
    return Table({name: _usual(table.column(name)) for name in names}, IN_MEMORY, table.num_rows)


def _usual(column: Any) -> Any:
    """Convert a column to the types of files: texts to strings, categories to their values."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = (pa.types.is_large_string, pa.types.is_string_view)
    return column.cast(pa.string()) if any(f(column.type) for f in texts) else column


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def read_table(
    path: str | Path | Table, text: Sequence[str] = (), needed: Sequence[str] = ()
) -> Table:
    """Read a table; the format follows from the name, else from the first bytes.

    Args:
        path: .csv or .tsv, .jsonl, .ndjson or .json, or .parquet; packed files are unpacked. A
            table that is in memory already stays as it is.
        text: columns that are text whatever they look like, so that a name such as "NA" or "007"
            stays what it is. In CSV, every column that is not a number is text anyway.
        needed: columns that must be there, and have rows.
    """
    table = path if isinstance(path, Table) else _read(Path(path).expanduser(), text)
    if needed:
        table.require(needed)
    return table


def _read(path: Path, text: Sequence[str]) -> Table:
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {what}. Pass a CSV, JSON lines or Parquet file.")
    kind = _kind(path)
    if kind == "parquet":
        columns, n_rows = _read_parquet(path)
    elif kind == "json":
        return from_columns(_read_json(path), str(path))
    else:
        columns, n_rows = _read_csv(path, "\t" if kind == "tsv" else ",", text)
    return Table(columns, str(path), n_rows)


def _kind(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in SUFFIX]
    named = {
        ".csv": "csv",
        ".tsv": "tsv",
        ".parquet": "parquet",
        ".pq": "parquet",
        ".jsonl": "json",
        ".ndjson": "json",
        ".json": "json",
    }
    if suffixes and suffixes[-1] in named:
        return named[suffixes[-1]]
    with opened(path) as file:
        head = file.read(4096).lstrip()
    if head[:4] == b"PAR1":
        return "parquet"
    return "json" if head[:1] in (b"{", b"[") else "csv"


def _read_parquet(path: Path) -> tuple[dict[str, Any], int]:
    from evenhand.arrays import read_parquet

    table = read_parquet(path)
    if len(set(table.column_names)) < table.num_columns:
        raise DataError(f"{path}: a column name occurs twice: {', '.join(table.column_names)}.")
    return {name: table.column(name) for name in table.column_names}, table.num_rows


def _is_text(name: str) -> bool:
    """Return True if a column can have that name: lone surrogates cannot be encoded."""
    return name.encode(errors="replace").decode() == name


def _read_csv(path: Path, delimiter: str, text: Sequence[str]) -> tuple[dict[str, Any], int]:
    import pyarrow as pa
    from pyarrow import csv

    text = [name for name in text if _is_text(name)]
    coded = pa.dictionary(pa.int32(), pa.string())
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(text, coded),
        strings_can_be_null=False,
        true_values=[],
        false_values=[],
        timestamp_parsers=["no dates"],
    )
    try:
        with opened(path) as file:
            table = csv.read_csv(file, parse_options=parse, convert_options=options)
        names = table.column_names  # which may be no UTF-8
        check_quotes(path, delimiter)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty. Its first line names columns.") from error
        raise DataError(f"{path}: is not a readable CSV file ({error}).") from error
    if len(set(names)) < len(names):
        raise DataError(f"{path}: a column name occurs twice: {', '.join(names)}.")
    for name in names:
        _check_text(path, name, table.column(name))
    return {name: table.column(name) for name in names}, table.num_rows


def _check_text(path: Path, name: str, column: Any) -> None:
    """Reject bytes that are not text, which Arrow passes on unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        texts = pa.chunked_array([c.dictionary for c in column.chunks], pa.string())
    else:
        texts = column
    wrong = ""
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        wrong = "bytes that are not UTF-8"
    elif pa.types.is_string(texts.type):
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            wrong = "bytes that are not UTF-8"
        if not wrong and pc.any(pc.match_substring(texts, "\0")).as_py():
            wrong = "a NUL byte"
    if wrong or "\0" in name:
        raise DataError(
            f"{path}, column {name!r}: holds {wrong or 'a NUL byte'}, so it is not text. Convert "
            f"it first, e.g. with: iconv -f latin1 -t utf-8 {path}"
        )


def _read_json(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        whole = path.suffix.lower() == ".json" and file.read(64).lstrip()[:1] == b"["
    rows: list[dict[str, Any]] = []
    numbered = enumerate(read_json(path), 1) if whole else json_lines(path, "one object per line")
    for number, row in numbered:
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected an object, found {row!r}.")
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def check_quotes(path: Path, delimiter: str) -> None:
    """Reject a CSV file in which text follows a closing quote."""
    with opened(path) as file:
        while piece := file.read(BLOCK):
            if b'"' in piece:
                break
    if piece:
        _read_strictly(path, delimiter)


def _read_strictly(path: Path, delimiter: str) -> None:
    with opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
        before = csv.field_size_limit(1 << 30)
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                pass
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: is not a readable CSV file ({error}). Inside a "
                f'cell with quotes around it, write "" for a quote.'
            ) from error
        finally:
            csv.field_size_limit(before)
            text.detach()
