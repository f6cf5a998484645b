"""Paging through a Parquet table of any size: only the columns and row groups that are needed.

A filter first looks at the row groups' statistics and skips those that cannot match, then reads
the filter columns of the others one group at a time until the page is full or the time for one
request is used up. What was counted is remembered, so the next request goes on from there. At
most one row group per column is in memory: about 10 MB for 100,000 rows of 13 columns.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as types

PAGE = 50
SECONDS = 0.2
KEPT = 64
SPARSE = 200
KEPT_ROWS = 500
VALUES = 200
ANY = "any"
SEARCH = "search"

Row = dict[str, Any]


@dataclass
class Tally:
    """How far a filter has been counted: matches per row group, and where if they are few.

    Rows already read for a page are kept too, by their place among all matches.
    """

    counts: list[int] = field(default_factory=list)
    places: dict[int, np.ndarray] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Page:
    """Rows of one page and what is known about the rest."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    number: int
    matches: int
    searched: float
    total: int

    @property
    def partial(self) -> bool:
        """Whether rows of this page are known to be there but were not read in time."""
        wanted = min(self.number * PAGE, self.matches) - (self.number - 1) * PAGE
        return len(self.rows) < wanted

    @property
    def complete(self) -> bool:
        return self.searched >= 1

    @property
    def more(self) -> bool:
        return not self.complete or self.matches > self.number * PAGE


class ItemTable:
    """One Parquet file, opened once; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._own = threading.local()
        self._own.file = pq.ParquetFile(path)
        self._metadata = self._own.file.metadata
        schema = self._own.file.schema_arrow
        self.columns = tuple(schema.names)
        self.text_columns = tuple(f.name for f in schema if _is_text(f.type))
        self.number_columns = tuple(
            f.name for f in schema if types.is_floating(f.type) or types.is_integer(f.type)
        )
        self.total = int(self._metadata.num_rows)
        self.groups = int(self._metadata.num_row_groups)
        self._tallies: OrderedDict[tuple[tuple[str, str], ...], Tally] = OrderedDict()
        self._values: dict[str, list[str]] | None = None

    def page(self, filters: Mapping[str, str], number: int = 1, seconds: float = SECONDS) -> Page:
        """The rows of page `number` that pass all filters.

        Args:
            filters: column=value; `any` asks for the value in some text column, `search` for
                text contained in one, without regard to case.
            seconds: time after which counting stops; the answer then says how much was searched.
        """
        known = tuple(sorted(self.known(filters).items()))
        tally = self._tally(known)
        stop = time.monotonic() + 1.5 * seconds
        with tally.lock:
            self._count(tally, dict(known), seconds)
            wanted = range((number - 1) * PAGE, number * PAGE)
            rows = tuple(self._rows(tally, dict(known), wanted, stop))
            counts = tuple(tally.counts)
        searched = len(counts) / self.groups if self.groups else 1.0
        return Page(self.columns, rows, number, sum(counts), searched, self.total)

    def values(self) -> dict[str, list[str]]:
        """Values to choose from per text column: those in statistics and in three row groups."""
        if self._values is None:
            self._values = self._some_values()
        return self._values

    def stream(self, filters: Mapping[str, str]) -> Iterator[list[list[Any]]]:
        """All matching rows, one row group at a time, for downloads."""
        known = self.known(filters)
        for group in range(self.groups):
            keep = self._matches(group, known)
            if keep is not None and not len(keep):
                continue
            table = self._file().read_row_group(group)
            if keep is not None:
                table = table.take(pa.array(keep))
            yield [list(row.values()) for row in table.to_pylist()]

    def _file(self) -> pq.ParquetFile:
        """This thread's reader; the footer is shared."""
        if not hasattr(self._own, "file"):
            self._own.file = pq.ParquetFile(self.path, metadata=self._metadata)
        return self._own.file

    def known(self, filters: Mapping[str, str]) -> dict[str, str]:
        """Those of the filters that this table understands."""
        allowed = (*self.text_columns, ANY, SEARCH)
        return {k: v for k, v in filters.items() if v and k in allowed}

    def _tally(self, key: tuple[tuple[str, str], ...]) -> Tally:
        with self._lock:
            tally = self._tallies.pop(key, None) or Tally()
            self._tallies[key] = tally
            while len(self._tallies) > KEPT:
                self._tallies.popitem(last=False)
        return tally

    def _count(self, tally: Tally, filters: dict[str, str], seconds: float) -> None:
        """Count on, group by group, while there is time."""
        if not filters:
            sizes = [self._metadata.row_group(g).num_rows for g in range(self.groups)]
            tally.counts[:] = sizes
            return
        stop = time.monotonic() + seconds
        while len(tally.counts) < self.groups:
            if time.monotonic() > stop:
                break
            keep = self._matches(len(tally.counts), filters)
            assert keep is not None
            if len(keep) <= SPARSE:
                tally.places[len(tally.counts)] = keep
            tally.counts.append(len(keep))

    def _rows(
        self, tally: Tally, filters: dict[str, str], wanted: range, stop: float
    ) -> Iterator[Row]:
        """Rows by their place among the matches; reads one row group at least, more in time."""
        before, read = 0, 0
        for group, count in enumerate(tally.counts):
            first = max(wanted.start - before, 0)
            last = min(wanted.stop - before, count)
            if first < last:
                here = range(before + first, before + last)
                if any(place not in tally.rows for place in here):
                    if read and time.monotonic() > stop:
                        return
                    read += 1
                    if len(tally.rows) > KEPT_ROWS:
                        tally.rows.clear()
                    tally.rows.update(zip(here, self._read(tally, group, filters, first, last)))
                yield from [tally.rows[place] for place in here]
            before += count
            if before >= wanted.stop:
                return

    def _read(
        self, tally: Tally, group: int, filters: dict[str, str], first: int, last: int
    ) -> list[Row]:
        """The matches number `first` to `last` of one row group."""
        keep = tally.places[group] if group in tally.places else self._matches(group, filters)
        places = np.arange(first, last) if keep is None else keep[first:last]
        start = int(places[0])
        part = self._file().read_row_group(group).slice(start, int(places[-1]) - start + 1)
        rows: list[Row] = part.take(pa.array(places - start)).to_pylist()
        return rows

    def _matches(self, group: int, filters: Mapping[str, str]) -> np.ndarray | None:
        """Places within a row group that pass; None when there is no filter."""
        if not filters:
            return None
        exact = {k: v for k, v in filters.items() if k not in (ANY, SEARCH)}
        if any(not self._possible(group, k, v) for k, v in exact.items()):
            return np.empty(0, np.int64)
        spread = ANY in filters or SEARCH in filters
        needed = list(self.text_columns) if spread else list(exact)
        table = self._file().read_row_group(group, columns=needed)
        keep = np.ones(table.num_rows, bool)
        for name, value in exact.items():
            keep &= _mask(table.column(name), value, exact=True)
        for name, is_exact in ((ANY, True), (SEARCH, False)):
            if name in filters:
                some = np.zeros(table.num_rows, bool)
                for column in needed:
                    some |= _mask(table.column(column), filters[name], exact=is_exact)
                keep &= some
        return np.flatnonzero(keep)

    def _possible(self, group: int, column: str, value: str) -> bool:
        """Whether the row group's statistics allow the value."""
        found = self._statistics(group, column)
        return found is None or found[0] <= value <= found[1]

    def _statistics(self, group: int, column: str) -> tuple[str, str] | None:
        facts = self._metadata.row_group(group).column(self.columns.index(column))
        known = facts.statistics
        if known is None or not known.has_min_max or not isinstance(known.min, str):
            return None
        return known.min, known.max

    def _some_values(self) -> dict[str, list[str]]:
        found: dict[str, set[str]] = {name: set() for name in self.text_columns}
        for group in sorted({0, self.groups // 2, self.groups - 1} & set(range(self.groups))):
            table = self._file().read_row_group(group, columns=list(self.text_columns))
            for name in self.text_columns:
                for chunk in table.column(name).chunks:
                    some = chunk.dictionary if types.is_dictionary(chunk.type) else pc.unique(chunk)
                    found[name].update(str(v) for v in some.slice(0, VALUES).to_pylist() if v)
        for name in self.text_columns:
            for group in range(self.groups):
                found[name].update(self._statistics(group, name) or ())
        return {k: sorted(v)[:VALUES] for k, v in found.items()}


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _mask(column: pa.ChunkedArray, value: str, *, exact: bool) -> np.ndarray:
    """Which rows equal (or contain) the value; dictionaries are searched once, not row by row."""
    parts = []
    for chunk in column.chunks:
        if types.is_dictionary(chunk.type):
            hits = _hits(chunk.dictionary, value, exact=exact)
            codes = chunk.indices.fill_null(len(hits)).to_numpy(zero_copy_only=False)
            parts.append(np.append(hits, False)[codes])
        else:
            parts.append(_hits(chunk, value, exact=exact))
    return np.concatenate(parts) if parts else np.empty(0, bool)


def _hits(values: pa.Array, value: str, *, exact: bool) -> np.ndarray:
    if exact:
        found = pc.equal(values, value)
    else:
        found = pc.match_substring(values, value, ignore_case=True)
    hits: np.ndarray = found.fill_null(False).to_numpy(zero_copy_only=False)
    return hits
