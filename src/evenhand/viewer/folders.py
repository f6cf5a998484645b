"""The run folders that are shown, found by listing: no part of a request becomes a path."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenhand.errors import EvenhandError, RunError
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.viewer.items import ItemTable

OPEN_TABLES = 16
T = TypeVar("T")
Cache = OrderedDict[tuple[Path, int], T]


@dataclass(frozen=True)
class Line:
    """One run in the list."""

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
    """Runs directly below a folder, or the one run that the folder is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.single = (root / "run.json").is_file()
        self._lock = threading.Lock()
        self._findings: Cache[list[Finding]] = OrderedDict()
        self._tables: Cache[ItemTable] = OrderedDict()

    def runs(self) -> dict[str, Run]:
        """Run folders by name, newest first, damaged ones too.

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
        """The run of that name.

        Raises:
            RunError: it is not among the listed ones.
        """
        found = self.runs().get(name)
        if found is None:
            raise RunError(f"no run of that name below {self.root}.")
        return found

    def findings(self, run: Run) -> list[Finding]:
        """Findings of a run, read once per change; none while it has not finished."""
        path = run.folder / "findings.json"
        if not path.is_file():
            return []
        return self._kept(self._findings, path, lambda: Run(run.folder).findings, 4 * OPEN_TABLES)

    def items(self, run: Run, probe: str, table: str = "items") -> ItemTable:
        """One table of a run, kept open.

        Raises:
            RunError: the run has no such probe or table.
        """
        path = run.tables(probe).get(table) if probe in run.probes else None
        if path is None:
            raise RunError(f"run {run.name} has no such table.")
        return self._kept(self._tables, path, lambda: ItemTable(path), OPEN_TABLES)

    def _kept(self, cache: Cache[T], path: Path, make: Callable[[], T], most: int) -> T:
        """What was made of a file, made again when the file has changed."""
        key = (path, path.stat().st_mtime_ns)
        with self._lock:
            if key not in cache:
                cache[key] = make()
                while len(cache) > most:
                    cache.popitem(last=False)
            cache.move_to_end(key)
            return cache[key]

    def line(self, run: Run) -> Line:
        """What the list says about a run; a damaged one is listed as such."""
        try:
            facts: dict[str, Any] = run.facts
            name = audited_name(facts)
            silent = cannot_judge(facts)
            counting = counted(self.findings(run))
            tested = [f for f in counting if f.probe not in silent]
            done = facts.get("status") == "finished"
            return Line(
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
            return Line(run.folder.resolve().name, "?", "?", "damaged", "", None, None)
