"""The underspecified probe on designs too large to hold: sums, examples and items on the way.

Cells are taken in blocks of whole pairs as their scores arrive. What is kept: the sums of
`streamed.CellSums`, sums by [term, attribute, template] for the tables behind charts, the
loudest cells of every claim, and a temporary file of items on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.metrics import unqover
from evenhand.probes.base import Asker
from evenhand.probes.underspecified.asking import Answers, Asking
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design
from evenhand.probes.underspecified.numbers import Sampling
from evenhand.probes.underspecified.streamed import CellSums
from evenhand.probes.underspecified.tables import items_table
from evenhand.probes.underspecified.tables_summed import TableSums

if TYPE_CHECKING:
    from evenhand.probes.underspecified.probe import Underspecified

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
BLOCK_CELLS = 16_384
KEPT = 4
LAST = np.iinfo(np.int64).max


class Streamed:
    """Everything a run says of a design that was never in memory as a whole."""

    def __init__(self, probe: Underspecified, ask: Asker, way: Asking, design: Design, seed: int):
        self.design = design
        self.names = probe.cells(design.head(0), np.empty((0, 2)))
        self.sums = CellSums(self.names, Sampling(probe.resamples, seed=seed))
        self.tables = TableSums(self.names)
        self.examples = Loudest(self.names)
        self._spool = Spool()
        self._neither = [0.0, 0]
        for start, stop, answers in blocks(probe, ask, way, design):
            cells = probe.cells(design, answers.scores, np.arange(start, stop))
            self.sums.add(cells)
            self.tables.add(cells)
            self.examples.add(cells, start)
            shares = answers.neither
            neither = None if shares is None else shares.reshape(-1, INPUTS_PER_CELL)
            if neither is not None:
                self._neither[0] += float(np.nansum(neither))
                self._neither[1] += int((~np.isnan(neither)).sum())
            self._spool.add(items_table(cells, neither))
        self.neither = self._neither[0] / self._neither[1] if self._neither[1] else None
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


class Loudest:
    """The cells that speak loudest for every claim, either way round.

    Claims are about attributes where there are groups, else about terms and about terms with
    attributes. `pick` gives the same cells as sorting all of them would.
    """

    def __init__(self, names: Cells) -> None:
        self.names = names
        width = len(names.attributes)
        sizes = {"attribute": width}
        if names.group_of_term is None:
            terms = len(names.terms)
            sizes = {"term": terms, "both": terms * width}
        self.best = {
            (place, way): _Best(size) for place, size in sizes.items() for way in (1, -1, 0)
        }

    def add(self, cells: Cells, start: int) -> None:
        """Look at some cells; `start` is the number of the first."""
        c = unqover.comparative(cells.scores)
        number = np.arange(start, start + len(c))
        if self.names.group_of_term is not None:
            self._see("attribute", cells.attribute, c, number, cells.scores)
            return
        ends = np.concatenate([cells.first, cells.second])
        both = np.concatenate([c, -c]), np.tile(number, 2), np.tile(cells.scores, (2, 1, 1, 1))
        self._see("term", ends, *both)
        width = len(self.names.attributes)
        self._see("both", ends * width + np.tile(cells.attribute, 2), *both)

    def _see(self, place: str, key: Codes, c: Floats, number: Codes, scores: Floats) -> None:
        for way in (1, -1, 0):
            value = np.where(np.isnan(c), -np.inf, c * way)
            self.best[place, way].add(key, value, number, scores)

    def pick(self, term: str | None, attribute: str | None, sign: float) -> tuple[Codes, Floats]:
        """Numbers and scores [k, 2, 2, 2] of the cells behind one claim."""
        names = self.names
        if term is None:
            place, key = "attribute", names.attributes.index(str(attribute))
        elif attribute is None:
            place, key = "term", names.terms.index(term)
        else:
            place = "both"
            key = names.terms.index(term) * len(names.attributes)
            key += names.attributes.index(attribute)
        return self.best[place, int(sign)].of(key)


class _Best:
    """The largest few of each key; of equal ones the earlier."""

    def __init__(self, size: int) -> None:
        self.value = np.full((size, KEPT), -np.inf)
        self.number = np.full((size, KEPT), LAST)
        self.scores = np.full((size, KEPT, 8), np.nan)

    def add(self, key: Codes, value: Floats, number: Codes, scores: Floats) -> None:
        hopeful = (value > self.value[key, -1]) | (self.number[key, -1] == LAST)
        at = np.flatnonzero(hopeful)
        if not len(at):
            return
        touched = np.unique(key[at])
        old = (np.repeat(touched, KEPT), *(a[touched].ravel() for a in (self.value, self.number)))
        keys, values, numbers = (
            np.concatenate([a, b[at]]) for a, b in zip(old, (key, value, number), strict=True)
        )
        eight = np.concatenate([self.scores[touched].reshape(-1, 8), scores[at].reshape(-1, 8)])
        order = np.lexsort((numbers, -values, keys))
        begins = np.searchsorted(keys[order], touched)
        first = order[begins[:, None] + np.arange(KEPT)]
        self.value[touched], self.number[touched] = values[first], numbers[first]
        self.scores[touched] = eight[first]

    def of(self, key: int) -> tuple[Codes, Floats]:
        there = self.number[key] != LAST
        return self.number[key][there], self.scores[key][there].reshape(-1, 2, 2, 2)


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
