"""Runs too large to hold: scores come in blocks of whole units, items wait on disk.

    for start, stop, scores in blocks(ask, requests, block_ends(unit_ends), label):
        sums.add(scores)                # a unit (a pair, a prompt) is never cut in two
        items.add(table)
    return Measured(findings(sums), items.found(), ...)

A probe opts in by saying how a block becomes sums, and declares `streams`. Small runs are summed in
the very same blocks: what is asked at once and what is asked piece by piece differ in nothing but
the memory they take, so that findings are equal bit for bit.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.confined import own_folder
from evenhand.probes.base import Asker
from evenhand.requests import Column, LazyRequests, Scores

HELD_ROWS = 1_000_000
"""Runs of more request rows are asked piece by piece, and their items wait on disk."""
BLOCK_ROWS = 16_384
Codes = npt.NDArray[np.integer[Any]]


def large(rows: int) -> bool:
    """Whether this many rows are too many to hold."""
    return rows > HELD_ROWS


def block_ends(unit_ends: npt.ArrayLike, size: int | None = None) -> Iterator[int]:
    """Where blocks of whole units end: about `size` rows each, one unit where it has more.

    >>> list(block_ends([2, 4, 6, 20, 21], 5))
    [4, 6, 20, 21]
    """
    ends, size = np.asarray(unit_ends, np.int64), size or BLOCK_ROWS
    begin = 0
    while len(ends) and begin < ends[-1]:
        at = int(np.searchsorted(ends, begin + size, side="right"))
        after = int(np.searchsorted(ends, begin, side="right"))
        begin = int(ends[max(at - 1, after)])
        yield begin


def blocks(
    ask: Asker, requests: LazyRequests, ends: Iterable[int], label: str = ""
) -> Iterator[tuple[int, int, Scores]]:
    """Scores of the rows from one end to the next, in order.

    Memory: a block and a shard or two; up to HELD_ROWS rows the whole list, whose equal rows are
    then asked once.
    """
    held: list[Mapping[str, Column]] = []
    have = start = 0
    turns = iter(ends)
    target = next(turns, None)
    for scores in _pieces(ask, requests, label):
        held.append(scores.columns)
        have += len(scores)
        while target is not None and have >= target - start:
            joined = _joined(held)
            wanted = target - start
            yield start, target, Scores({name: v[:wanted] for name, v in joined.items()})
            held, have = [{name: v[wanted:] for name, v in joined.items()}], have - wanted
            start, target = target, next(turns, None)


def _pieces(ask: Asker, requests: LazyRequests, label: str) -> Iterator[Scores]:
    if large(len(requests)):
        yield from (scores for _, scores in ask.stream(requests, label))
    elif requests.distinct or not len(requests):
        yield ask(requests, label)
    else:
        yield ask(requests.make(0, len(requests)), label)


def _joined(parts: Sequence[Mapping[str, Column]]) -> Mapping[str, Column]:
    if len(parts) == 1:
        return parts[0]
    return {
        name: np.concatenate([p[name] for p in parts])
        if isinstance(first, np.ndarray)
        else [row for p in parts for row in p[name]]
        for name, first in parts[0].items()
    }


class Items:
    """Tables added block by block: in memory, or in a temporary file where they are too many.

    Columns and their types are those of the first block; dictionary columns have one dictionary.
    """

    def __init__(self, *, large: bool) -> None:
        self._held: list[pa.Table] = []
        self._spool = Spool() if large else None

    def add(self, table: pa.Table) -> None:
        self._held.append(table) if self._spool is None else self._spool.add(table)

    def parts(self) -> Iterator[pa.Table]:
        """The tables as they were added."""
        if self._spool is None:
            return iter(self._held)
        return (pa.Table.from_batches([batch]) for batch in self._spool.reader())

    def found(self) -> pa.Table | pa.RecordBatchReader:
        """Everything, as a probe gives its items."""
        if self._spool is not None:
            return self._spool.reader()
        return self._held[0] if len(self._held) == 1 else pa.concat_tables(self._held)

    def rows(self, wanted: npt.ArrayLike) -> pa.Table:
        """Some rows by their numbers, in order; each number once."""
        at = np.unique(np.asarray(wanted, np.int64))
        begin = 0
        out: list[pa.Table] = []
        for part in self.parts():
            end = begin + part.num_rows
            low, high = np.searchsorted(at, [begin, end])
            if low < high or not out:
                out.append(part.take(at[low:high] - begin))
            begin = end
        return pa.concat_tables(out)


class Spool:
    """Tables in a temporary file, read back one batch at a time, as often as wanted."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="evenhand-", dir=own_folder())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = str(Path(folder) / "items.arrow")
        self._open: list[Any] = []  # the writer and its file, until something is read

    def add(self, table: pa.Table) -> None:
        plain = pa.table({n: _plain(table.column(n)) for n in table.column_names})
        if not self._open:
            self._names = {n: _dictionary(table.column(n)) for n in table.column_names}
            file = pa.OSFile(self._path, "wb")
            self._open = [pa.ipc.new_stream(file, plain.schema), file]
        for batch in plain.combine_chunks().to_batches():  # one batch a table
            self._open[0].write_batch(batch)

    def reader(self) -> pa.RecordBatchReader:
        """All batches in order, codes turned into texts again."""
        while self._open:
            self._open.pop(0).close()
        # Read, not mapped: pages of a mapped file would count as memory.
        source = pa.ipc.open_stream(pa.OSFile(self._path, "rb"))
        fields = [
            (
                name,
                source.schema.field(name).type
                if names is None
                else pa.dictionary(pa.int32(), pa.string()),
            )
            for name, names in self._names.items()
        ]
        return pa.RecordBatchReader.from_batches(pa.schema(fields), map(self._named, source))

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            batch.column(i)
            if names is None
            else pa.DictionaryArray.from_arrays(batch.column(i), names)
            for i, names in enumerate(self._names.values())
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self._names))


def coded(codes: Codes, values: pa.Array) -> pa.Array:
    """A text column as numbers of a list of texts."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int32())


def _dictionary(column: pa.ChunkedArray) -> pa.Array | None:
    return column.chunk(0).dictionary if pa.types.is_dictionary(column.type) else None
