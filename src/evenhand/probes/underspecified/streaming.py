"""The underspecified probe on designs too large to hold: sums, examples and items on the way.

Cells are taken in blocks of whole pairs as their scores arrive. What is kept: the sums of
`streamed.CellSums`, leans by pair and attribute, sums by [term, attribute, template] for the
tables behind charts, and a temporary file of items on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.probes.base import Asker
from evenhand.probes.underspecified.asking import TOLD, Answers, Asking
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design
from evenhand.probes.underspecified.leans import LeanSums
from evenhand.probes.underspecified.numbers import Sampling
from evenhand.probes.underspecified.refusals import Refusals
from evenhand.probes.underspecified.streamed import CellSums
from evenhand.probes.underspecified.tables import items_table
from evenhand.probes.underspecified.tables_summed import TableSums

if TYPE_CHECKING:
    from evenhand.probes.underspecified.probe import Underspecified

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
BLOCK_CELLS = 16_384


class Streamed:
    """Everything a run says of a design that was never in memory as a whole."""

    def __init__(self, probe: Underspecified, ask: Asker, way: Asking, design: Design, seed: int):
        self.design = design
        self.names = probe.cells(design.head(0), np.empty((0, 2)))
        self.sums = CellSums(self.names, Sampling(probe.resamples, seed=seed))
        self.tables = TableSums(self.names)
        self.leans = LeanSums(self.names)
        self.refusals = Refusals(self.names)
        self._spool = Spool()
        sums, counts = np.zeros(len(TOLD)), np.zeros(len(TOLD))
        for start, stop, answers in blocks(probe, ask, way, design):
            cells = probe.cells(design, answers.scores, np.arange(start, stop))
            self.sums.add(cells)
            self.tables.add(cells)
            self.leans.add(cells, start)
            told = answers.told
            sums += np.nansum(told, axis=0)
            counts += (~np.isnan(told)).sum(axis=0)
            by_cell = told.reshape(-1, INPUTS_PER_CELL, len(TOLD))
            self.refusals.add(cells, by_cell)
            self._spool.add(items_table(cells, by_cell))
        self.told = np.divide(sums, counts, out=np.full(len(TOLD), np.nan), where=counts > 0)
        self.items = self._spool.reader()


def blocks(
    probe: Underspecified, ask: Asker, way: Asking, design: Design
) -> Iterator[tuple[int, int, Answers]]:
    """Answers of whole pairs, about 16,000 cells at a time, in design order."""
    per_cell = INPUTS_PER_CELL * way.rows
    held: list[dict[str, Any]] = []
    have = start = 0
    ends = _block_ends(design)
    target = next(ends)
    for _, scores in ask.stream(way.requests(design), probe.name):
        held.append(dict(scores.columns))
        have += len(scores)
        while target is not None and have >= (target - start) * per_cell:
            joined = _joined(held)
            wanted = (target - start) * per_cell
            taken, rest = _cut(joined, wanted)
            yield start, target, way.answers(taken, design, start, target)
            held, have = [rest], have - wanted
            start, target = target, next(ends, None)  # type: ignore[assignment]


def _block_ends(design: Design) -> Iterator[int]:
    """Cell numbers at which blocks of whole pairs end."""
    begin = 0
    while begin < len(design):
        at = int(np.searchsorted(design.pair_ends, begin + BLOCK_CELLS, side="right"))
        after = int(np.searchsorted(design.pair_ends, begin, side="right"))
        begin = int(design.pair_ends[max(at - 1, after)])
        yield begin


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if len(parts) == 1:
        return parts[0]
    return {
        name: np.concatenate([p[name] for p in parts])
        if isinstance(first, np.ndarray)
        else [row for p in parts for row in p[name]]
        for name, first in parts[0].items()
    }


def _cut(columns: dict[str, Any], at: int) -> tuple[Any, dict[str, Any]]:
    from evenhand.requests import Scores

    head = {name: values[:at] for name, values in columns.items()}
    return Scores(head), {name: values[at:] for name, values in columns.items()}


class Spool:
    """Tables written to a temporary file and read back one batch at a time."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives until read back
        self._writer: Any = None

    def __del__(self) -> None:
        self._file.close()

    def add(self, table: pa.Table) -> None:
        plain = pa.table({n: _plain(table.column(n)) for n in table.column_names})
        if self._writer is None:
            self._names = {n: _dictionary(table.column(n)) for n in table.column_names}
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), plain.schema)
        self._writer.write_table(plain)

    def reader(self) -> pa.RecordBatchReader:
        """All batches in order, codes turned into texts again."""
        self._writer.close()
        self._file.seek(0)
        source = pa.ipc.open_stream(pa.PythonFile(self._file, "r"))

        def batches() -> Iterator[pa.RecordBatch]:
            yield from map(named, source)
            self._file.close()

        def named(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = [
                batch.column(i) if names is None
                else pa.DictionaryArray.from_arrays(batch.column(i), names)
                for i, names in enumerate(self._names.values())
            ]  # fmt: skip
            return pa.RecordBatch.from_arrays(columns, names=list(self._names))

        fields = [
            (name, source.schema.field(name).type if names is None
             else pa.dictionary(pa.int32(), pa.string()))
            for name, names in self._names.items()
        ]  # fmt: skip
        return pa.RecordBatchReader.from_batches(pa.schema(fields), batches())


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int32())


def _dictionary(column: pa.ChunkedArray) -> pa.Array | None:
    return column.chunk(0).dictionary if pa.types.is_dictionary(column.type) else None
