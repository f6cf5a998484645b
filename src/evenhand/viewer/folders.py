"""What the viewer reads: run folders, pages of their item tables, the progress of running audits.

Run folders are found by listing, so that no part of a request becomes a path. Item tables may have
any size: matches are counted once per filter and row group, in a scan that reads the filtered
columns only; a page then reads the row groups that it touches.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, reduce
from itertools import accumulate
from operator import and_
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types

from evenhand.errors import EvenhandError, RunError
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge
from evenhand.runs.record import LOCK, Run
from evenhand.runs.story import audited_name
from evenhand.systems import is_locked

PAGE = 50
CACHED_FILTERS = 64
VALUES = 200
ANY = "any"
SEARCH = "search"

Row = dict[str, Any]
Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """Rows of one page, the number of all matches, and the number of rows of the table."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    number: int
    matches: int
    total: int

    @property
    def more(self) -> bool:
        """True if another page follows."""
        return self.matches > self.number * PAGE


class ItemTable:
    """One Parquet file, read row group by row group; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = file = ds.dataset(path, format="parquet")
        self._groups = [g for part in file.get_fragments() for g in part.split_by_row_group()]
        self._sizes = [group.row_groups[0].num_rows for group in self._groups]
        self._counts = lru_cache(CACHED_FILTERS)(self._count)
        self.columns = tuple(file.schema.names)
        self.text_columns = tuple(f.name for f in file.schema if _is_text(f.type))
        self._coded = {f.name for f in file.schema if types.is_dictionary(f.type)}
        self.total = sum(self._sizes)

    def page(self, filters: Mapping[str, str], number: int = 1) -> Page:
        """Return the rows of page `number` that pass all filters.

        Args:
            filters: column=value; `any` asks for the value in some text column, `search` for
                text contained in one, ignoring case. Unknown columns are ignored.
        """
        key = self._key(filters)
        counts = self._counts(key)
        start, rows = (number - 1) * PAGE, list[Row]()
        for group, count, end in zip(self._groups, counts, accumulate(counts)):
            first = start + len(rows) - (end - count)
            if first < count and len(rows) < PAGE:
                rows += self._read(group, key).slice(first, PAGE - len(rows)).to_pylist()
        return Page(self.columns, tuple(rows), number, sum(counts), self.total)

    def values(self) -> dict[str, list[str]]:
        """Return values to choose from per text column: those of statistics and three groups."""
        return self._values

    def stream(self, filters: Mapping[str, str]) -> Iterator[list[list[Any]]]:
        """Yield all matching rows, one row group at a time, for downloads."""
        key = self._key(filters)
        for group in self._groups:
            if rows := self._read(group, key).to_pylist():
                yield [list(row.values()) for row in rows]

    def _key(self, filters: Mapping[str, str]) -> Key:
        """Return the filters that this table has columns for, in a fixed order."""
        allowed = (*self.text_columns, ANY, SEARCH)
        return tuple(sorted((k, v) for k, v in filters.items() if v and k in allowed))

    def _count(self, key: Key) -> list[int]:
        """Return the number of matches in each row group."""
        if not key:
            return self._sizes
        spread = {ANY, SEARCH} & dict(key).keys()
        needed = [*self.text_columns] if spread else [name for name, _ in key]
        counts = Counter[int]()
        dataset = ds.FileSystemDataset(self._groups, self._file.schema, self._file.format)
        for batch in dataset.scanner(columns=needed, filter=self._bounds(key)).scan_batches():
            mask = self._mask(batch.record_batch, key)
            counts[batch.fragment.row_groups[0].id] += mask.true_count
        return [counts[group.row_groups[0].id] for group in self._groups]

    def _read(self, group: ds.Fragment, key: Key) -> pa.Table:
        """Return the matching rows of a row group."""
        table = group.to_table(filter=self._bounds(key))
        masks = [self._mask(batch, key) for batch in table.to_batches()]
        return table.filter(pa.chunked_array(masks, pa.bool_())) if key else table

    def _bounds(self, key: Key) -> pc.Expression | None:
        """Return the condition by which a scan skips row groups: columns that are not coded."""
        plain = {*self.text_columns} - self._coded
        conditions = [pc.field(k) == v for k, v in key if k in plain]
        return reduce(and_, conditions) if conditions else None

    def _mask(self, batch: pa.RecordBatch, key: Key) -> pa.BooleanArray:
        """Return which rows of a batch pass all filters."""
        mask = pa.repeat(True, len(batch))
        for name, value in key:
            columns = self.text_columns if name in (ANY, SEARCH) else (name,)
            some = [_matches(batch.column(c), value, exact=name != SEARCH) for c in columns]
            mask = pc.and_(mask, reduce(pc.or_, some))
        return mask

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        values: dict[str, set[str]] = {name: set() for name in self.text_columns}
        for group in self._groups:
            bounds = group.row_groups[0].statistics or {}
            for name in self.text_columns:
                values[name].update(bounds.get(name, {}).values())
        last = len(self._groups) - 1
        for k in sorted({0, last // 2, last} & {*range(last + 1)}):
            for batch in self._groups[k].to_table(columns=[*self.text_columns]).to_batches():
                for name in self.text_columns:
                    column = batch.column(name)
                    texts = column.dictionary if name in self._coded else pc.unique(column)
                    values[name].update(texts.slice(0, VALUES).to_pylist())
        return {name: sorted(map(str, filter(None, v)))[:VALUES] for name, v in values.items()}


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _matches(column: pa.Array, value: str, *, exact: bool) -> pa.BooleanArray:
    """Return which cells equal or contain a value; match a coded column by its distinct values."""
    coded = types.is_dictionary(column.type)
    texts = column.dictionary if coded else column
    hits = pc.equal(texts, value) if exact else pc.match_substring(texts, value, ignore_case=True)
    return pc.fill_null(hits.take(column.indices) if coded else hits, False)


class Progress:
    """Counter of stored inputs; reads each shard file once, since shards never change."""

    def __init__(self) -> None:
        self._rows: dict[Path, int] = {}
        self._plans: dict[Path, int | None] = {}
        self._begun: dict[Path, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def of(self, run: Run) -> dict[str, Any]:
        """Return status, probes done, inputs stored and planned, seconds left (None if unknown)."""
        facts = run.facts
        wanted = [str(p.get("label") or p["name"]) for p in facts["work"]["suite"]["probe"]]
        inputs, shards, newest = self._stored(run.folder / "scores")
        status = str(facts.get("status", "?"))
        if status == "running" and not is_locked(run.folder / LOCK):
            status = "stopped"
        done = [label for label in wanted if label in facts.get("probes", {})]
        seconds = _seconds_since(str(facts.get("started", "")))
        planned = self._planned(run, facts)
        return {
            "status": status,
            "probes": wanted,
            "done": done,
            "now": next((p for p in wanted if p not in done), ""),
            "inputs": inputs,
            "planned": planned,
            "left": self._left(run, inputs, planned) if status == "running" else None,
            "shards": shards,
            "seconds": round(seconds, 1),
            "quiet_seconds": round(time.time() - newest, 1) if newest else None,
        }

    def _stored(self, folder: Path) -> tuple[int, int, float]:
        total, shards, newest = 0, 0, 0.0
        if not folder.is_dir():
            return 0, 0, 0.0
        with self._lock:
            for entry in os.scandir(folder):
                if not entry.name.endswith(".parquet"):
                    continue
                path = Path(entry.path)
                with contextlib.suppress(OSError, ValueError):  # damaged, or just taken away
                    if path not in self._rows:
                        self._rows[path] = int(pq.read_metadata(path).num_rows)
                    newest = max(newest, entry.stat().st_mtime)
                    total += self._rows[path]
                    shards += 1
        return total, shards, newest

    def _left(self, run: Run, inputs: int, planned: int | None) -> float | None:
        """Return the seconds left at the pace since the first call.

        Inputs stored before that call may stem from an earlier attempt.
        """
        now = time.monotonic()
        then, before = self._begun.setdefault(run.folder, (now, inputs))
        if planned is None or inputs <= before or inputs > planned:
            return None
        return round((now - then) * (planned - inputs) / (inputs - before), 1)

    def _planned(self, run: Run, facts: dict[str, Any]) -> int | None:
        """Return the number of inputs that the suite's probes will ask, or None if unknown."""
        if str(facts["work"]["model"]) not in facts.get("models", {}):
            return None  # not loaded yet: ask again
        if run.folder not in self._plans:
            self._plans[run.folder] = None
            with contextlib.suppress(Exception):  # a hint; never in the way of the page
                self._plans[run.folder] = planned(facts)
        return self._plans[run.folder]


def planned(facts: dict[str, Any]) -> int:
    """Return the number of first requests of all probes of a suite."""
    from evenhand.audit.suites import parse_suite

    work = facts["work"]
    suite = parse_suite(work["suite"], "run.json", work["suite"]["name"])
    total = 0
    for entry in suite.entries:
        answers = frozenset(facts["models"][entry.model or work["model"]]["answers"])
        if entry.probe.lacks(answers):
            continue
        total += len(entry.probe.preview(answers, int(work["seed"])).requests)
    return total


def _seconds_since(started: str) -> float:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return 0.0


CACHED_TABLES = 16
T = TypeVar("T")
Cache = OrderedDict[tuple[Path, int], T]


@dataclass(frozen=True)
class RunLine:
    """One run in the list of runs."""

    name: str
    model: str
    suite: str
    status: str
    started: str
    detected: int | None
    tests: int | None
    inconclusive: int = 0
    """Findings of probes that cannot judge the model, beside these tests."""


class Folders:
    """Run folders directly below a folder, or the one run that the folder is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.single = (root / "run.json").is_file()
        self._lock = threading.Lock()
        self._findings: Cache[list[Finding]] = OrderedDict()
        self._tables: Cache[ItemTable] = OrderedDict()

    def runs(self) -> dict[str, Run]:
        """Return runs by name, newest first, including damaged ones.

        Links that lead out of the folder are not followed.
        """
        if self.single:
            return {self.root.resolve().name: Run.unread(self.root)}
        if not self.root.is_dir():
            return {}
        root = self.root.resolve()
        places = [p for p in root.glob("*/run.json") if p.resolve().is_relative_to(root)]
        found = [(p.stat().st_mtime, self.root / p.parent.name) for p in places]
        newest = sorted(found, key=lambda x: (-x[0], x[1].name))
        return {p.name: Run.unread(p) for _, p in newest}

    def run(self, name: str) -> Run:
        """Return the run of that name.

        Raises:
            RunError: it is not among the listed ones.
        """
        found = self.runs().get(name)
        if found is None:
            raise RunError(f"no run of that name below {self.root}.")
        return found

    def findings(self, run: Run) -> list[Finding]:
        """Return the findings of a run, read once per change; [] until it has finished."""
        path = run.folder / "findings.json"
        if not path.is_file():
            return []
        return self._cached(
            self._findings, path, lambda: Run(run.folder).findings, 4 * CACHED_TABLES
        )

    def items(self, run: Run, probe: str, table: str = "items") -> ItemTable:
        """Return one table of a run, from a cache.

        Raises:
            RunError: the run has no such probe or table.
        """
        path = run.tables(probe).get(table) if probe in run.probes else None
        if path is None:
            raise RunError(f"run {run.name} has no such table.")
        return self._cached(self._tables, path, lambda: ItemTable(path), CACHED_TABLES)

    def _cached(self, cache: Cache[T], path: Path, make: Callable[[], T], most: int) -> T:
        """Return the cached object of a file; make a new one if the file has changed."""
        key = (path, path.stat().st_mtime_ns)
        with self._lock:
            if key not in cache:
                cache[key] = make()
                while len(cache) > most:
                    cache.popitem(last=False)
            cache.move_to_end(key)
            return cache[key]

    def line(self, run: Run) -> RunLine:
        """Return the line of a run in the list; a damaged run has the status "damaged"."""
        try:
            facts: dict[str, Any] = run.facts
            name = audited_name(facts)
            silent = cannot_judge(facts)
            counting = counted(self.findings(run))
            tested = [f for f in counting if f.probe not in silent]
            done = facts.get("status") == "finished"
            return RunLine(
                run.folder.resolve().name,
                name,
                str(facts["work"]["suite"]["name"]),
                str(facts.get("status", "?")),
                str(facts.get("started", ""))[:16].replace("T", " "),
                sum(bool(f.detected) for f in tested) if done else None,
                len(tested) if done else None,
                len(counting) - len(tested),
            )
        except (EvenhandError, KeyError, TypeError, ValueError, OSError):
            return RunLine(run.folder.resolve().name, "?", "?", "damaged", "", None, None)
