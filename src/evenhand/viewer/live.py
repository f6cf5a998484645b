"""How far a run is, from its folder alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evenhand.runs.record import LOCK, Run
from evenhand.systems import is_locked


class Progress:
    """Counts stored inputs, each shard file once, since shards never change."""

    def __init__(self) -> None:
        self._rows: dict[Path, int] = {}
        self._plans: dict[Path, int | None] = {}
        self._begun: dict[Path, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def of(self, run: Run) -> dict[str, Any]:
        """Status, probes done, inputs stored, inputs planned and seconds left (None: unknown)."""
        facts = run.facts
        wanted = [str(p.get("label") or p["name"]) for p in facts["work"]["suite"]["probe"]]
        inputs, shards, newest = self._stored(run.folder / "scores")
        status = str(facts.get("status", "?"))
        if status == "running" and not is_locked(run.folder / LOCK):
            status = "stopped"
        done = [label for label in wanted if label in facts.get("probes", {})]
        seconds = _since(str(facts.get("started", "")))
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
        """Seconds left at the pace since this page first looked; earlier ones may have been
        another attempt's."""
        now = time.monotonic()
        then, before = self._begun.setdefault(run.folder, (now, inputs))
        if planned is None or inputs <= before or inputs > planned:
            return None
        return round((now - then) * (planned - inputs) / (inputs - before), 1)

    def _planned(self, run: Run, facts: dict[str, Any]) -> int | None:
        """Inputs that the suite's probes would ask, where they can tell beforehand."""
        if str(facts["work"]["model"]) not in facts.get("models", {}):
            return None  # not loaded yet: ask again
        if run.folder not in self._plans:
            self._plans[run.folder] = None
            with contextlib.suppress(Exception):  # a hint; never in the way of the page
                self._plans[run.folder] = planned(facts)
        return self._plans[run.folder]


def planned(facts: dict[str, Any]) -> int:
    """The number of first requests of all probes of a suite."""
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


def _since(started: str) -> float:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return 0.0
