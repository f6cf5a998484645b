"""Score shards on disk or in an object store: whole or not at all, and checked when read.

A shard is one Parquet file named `<key>.<checksum>.parquet`. The key is what was asked of whom
(model fingerprint, adapter version, batch plan, rows); the checksum is the SHA-256 of the file's
bytes, so a truncated or altered file no longer matches its own name. Committing is atomic
(`files`): whoever comes second writes the same bytes, so nothing is lost. No lock and no server:
many processes and hosts can work on one folder or one bucket. Stray files beside the shards are
left alone; one that has a shard's name and is none counts as damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.errors import DataError
from evenhand.requests import Column, Requests
from evenhand.runner.files import disk_errors
from evenhand.runner.places import open_files

ARROW = {
    "float": pa.float64(),
    "int": pa.int32(),
    "string": pa.string(),
    "strings": pa.list_(pa.string()),
}
CHECKSUM_LENGTH = 24
ROW_GROUP = 100_000


class ShardStore:
    """The score shards below one folder.

    Args:
        folder: where shards live, a path or a URL that fsspec knows; made when missing.
        attempt: number of this attempt at the run, written into each shard it finishes, so that
            a finished run can show which attempt scored what.
        read_only: nothing is made, added or removed there, damaged shards included.
    """

    def __init__(self, folder: Path | str, attempt: int = 1, *, read_only: bool = False) -> None:
        self.files = open_files(folder, read_only=read_only)
        self.folder = self.files.folder
        self.attempt = attempt
        self.damaged: list[str] = []
        self.used: dict[str, str] = {}
        """By key of every shard read or written here: the attempt that scored it."""
        self._files: dict[str, list[str]] = {}
        for name in self.files.names():
            self._files.setdefault(name.split(".")[0], []).append(name)

    @property
    def place(self) -> str:
        """Where another process finds the same shards."""
        return self.files.place

    def read(self, key: str, kind: type[Requests]) -> dict[str, Column] | None:
        """The shard's columns, or None when it is absent or damaged (then it is removed, unless
        the store is only read)."""
        for name in list(self._files.get(key, ())):
            raw = self.files.read(name)
            if raw is None:
                continue
            found = _sound(name, raw, kind)
            if found is not None:
                columns, self.used[key] = found
                return columns
            self.damaged.append(name)
            self._files[key].remove(name)
            self.files.remove(name)
        return None

    def write(self, key: str, columns: Mapping[str, Column], kind: type[Requests]) -> None:
        """Commit one shard. Writing a key that is already there changes nothing."""
        table = to_table(columns, kind).replace_schema_metadata({"attempt": str(self.attempt)})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        raw = buffer.getvalue()
        name = f"{key}.{_checksum(raw)}.parquet"
        self.files.put(name, raw)
        self._files[key] = [name]
        self.used[key] = str(self.attempt)

    def raw(self, key: str) -> tuple[str, bytes | Path]:
        """Name and content of a shard that was read or written here: its file, or bytes."""
        name = self._files[key][0]
        if isinstance(self.folder, Path):
            return name, self.folder / name
        return name, self.files.read(name) or b""

    def refresh(self, key: str) -> None:
        """Look for a shard that another process has written."""
        self._files[key] = self.files.names(f"{key}.") or self._files.get(key, [])

    def __contains__(self, key: str) -> bool:
        return bool(self._files.get(key))

    @property
    def empty(self) -> bool:
        """Whether no shard is known."""
        return not any(self._files.values())


def scored_by_attempt(stores: Iterable[ShardStore]) -> dict[str, int]:
    """How many of the shards that were used each attempt scored; one key counts once.

    Shards that merely lie in the same place (of other settings, or of another run that shares a
    store) were not asked for and do not count.
    """
    used = {key: attempt for store in stores for key, attempt in store.used.items()}
    return dict(sorted(Counter(used.values()).items()))


def _checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:CHECKSUM_LENGTH]


def _sound(name: str, raw: bytes, kind: type[Requests]) -> tuple[dict[str, Column], str] | None:
    """A shard's columns and the attempt that scored it; None when the file is not what it says."""
    if _checksum(raw) != name.split(".")[1]:
        return None
    try:
        table = pq.read_table(io.BytesIO(raw))
        columns = from_table(table, kind)
    except (pa.ArrowException, DataError, OSError):
        return None
    attempt = (table.schema.metadata or {}).get(b"attempt", b"?")
    return columns, attempt.decode(errors="replace")


def write_requests(folder: Path | None, key: str, requests: Requests) -> None:
    """Keep a shard's questions beside its scores, for whoever wants to look them up.

    They can be made again from the suite, so they are not synced to disk.
    """
    if folder is None or (folder / f"{key}.parquet").exists():
        return
    columns = {name: pa.array(getattr(requests, name), pa.string()) for name in requests.columns}
    facts = {"kind": requests.kind, "options": json.dumps(requests.settings, sort_keys=True)}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{key}.{os.getpid()}.tmp"
        pq.write_table(
            pa.table(columns).replace_schema_metadata(facts), temporary, compression="zstd"
        )
        temporary.replace(folder / f"{key}.parquet")


def write_batches(reader: pa.RecordBatchReader, file: BinaryIO) -> None:
    """A Parquet file from batches, a row group at a time."""
    with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        held: list[pa.RecordBatch] = []
        for batch in reader:
            held.append(batch)
            if sum(b.num_rows for b in held) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(held), ROW_GROUP)
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held), ROW_GROUP)


def to_table(columns: Mapping[str, Column], kind: type[Requests]) -> pa.Table:
    arrays = {}
    for name, type_name in kind.outputs.items():
        values: Any = columns[name]
        if type_name == "floats":
            rows = [np.asarray(row, np.float64) for row in values]
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
            flat = _narrow(np.concatenate([np.empty(0), *rows]))
            arrays[name] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))
        else:
            arrays[name] = pa.array(values, type=ARROW[type_name])
    return pa.table(arrays)


def _narrow(values: np.ndarray) -> np.ndarray:
    """The numbers in half the space where that loses nothing, as for most vectors.

    A score read back must be the score that was given: a resumed run would else differ from one
    that was left alone.
    """
    half = values.astype(np.float32)
    return half if np.array_equal(half, values, equal_nan=True) else values


def from_table(table: pa.Table, kind: type[Requests]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name, type_name in kind.outputs.items():
        if name not in table.column_names:
            raise DataError(f"score shard lacks the column {name!r} of {kind.kind} answers.")
        column = table.column(name)
        if type_name in ("float", "int"):
            columns[name] = column.to_numpy()
        else:
            columns[name] = column.to_pylist()
    return columns
