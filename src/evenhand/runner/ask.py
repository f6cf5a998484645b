"""`ask`: the only door to a model.

    asker = Ask(model, run_folder)
    scores = asker(requests)          # scores in the row order of the requests
    for start, scores in asker.stream(requests):   # the same, one shard in memory at a time
        ...

Duplicates are asked once, rows are scored in shards, each finished shard is on disk before the
next begins, and finished shards are never scored again. While the device works on one shard, the
next is made and tokenised in a second thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import ModelError, RunError
from evenhand.models.protocol import Model
from evenhand.requests import TYPES, Column, LazyRequests, Requests, Scores
from evenhand.runner.job import Counts, Executor, Job, shard_key
from evenhand.runner.local import LocalExecutor
from evenhand.runner.plan import EagerPlan, LazyPlan, Shard, make_plan
from evenhand.runner.progress import Progress, Silent
from evenhand.runner.store import ShardStore

SHARDS_WANTED = 48
SHARD_ROWS = (256, 8_192)
DEVICE_SHARD_ROWS = (8_192, 65_536)
"""On a GPU: many inputs of one length make full batches, and a shard still takes about a second."""


class Ask:
    """Asks one model, keeping its scores below one run folder.

    Args:
        folder: the run folder, below which `scores/` and `requests/` go (None: memory only).
        attempt: number of this attempt at the run.
        progress: is told how far the work has got.
        shard_rows: rows per shard; by default a share of the whole that keeps a crash cheap.
        executor: where shards are scored; this process by default.
        store: where score shards are kept instead of the run folder: a URL that fsspec knows.
        read_only: the store is only read.
        helpers: doors to further models, by the name under which a probe asks for them.
    """

    def __init__(
        self,
        model: Model,
        folder: Path | None = None,
        *,
        attempt: int = 1,
        progress: Progress | None = None,
        shard_rows: int | None = None,
        helpers: Mapping[str, Ask] | None = None,
        executor: Executor | None = None,
        store: str | None = None,
        read_only: bool = False,
    ) -> None:
        self.model = model
        self.answers = model.answers
        self.counts = Counts()
        self.progress = progress or Silent()
        place = store or (folder / "scores" if folder else None)
        self.store = ShardStore(place, attempt, read_only=read_only) if place else None
        self._requests = folder / "requests" if folder else None
        if folder:
            model.keep_below(folder)
        self._shard_rows = shard_rows
        self._helpers = dict(helpers or {})
        self._executor = executor or LocalExecutor()
        self._fingerprint = ""

    def describe(self) -> dict[str, Any]:
        """Facts about the model."""
        return self.model.describe()

    def helper(self, name: str) -> Ask:
        """The door to a second model; its scores are kept in the same run folder."""
        if name not in self._helpers:
            raise ModelError(
                f"no {name} is given, and model {self.model.name!r} cannot do its work. Name one "
                f"with: --set {name}=MODEL"
            )
        return self._helpers[name]

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores:
        """Scores of every row, in row order.

        Raises:
            ModelError: the model cannot answer this kind, or gave NaN where a number is due.
        """
        plan = self._plan(requests)
        collected = _Collector(plan.size, TYPES[requests.kind])
        for shard, columns in self._shards(plan, label or requests.kind):
            collected.add(shard, columns)
        return collected.scores()

    def stream(
        self, requests: Requests | LazyRequests, label: str = ""
    ) -> Iterator[tuple[int, Scores]]:
        """Scores of consecutive rows, shard by shard, each with the number of its first row.

        Together they are what calling gives. Memory: a shard or two, however many rows there
        are; shards that a cluster finishes out of turn wait on disk. A list that is in memory
        itself comes in one piece.
        """
        if not isinstance(requests, LazyRequests):
            yield 0, self(requests, label)
            return
        plan, kind = self._plan(requests), TYPES[requests.kind]
        turn = 0
        early: dict[int, _Waiting] = {}
        for shard, columns in self._shards(plan, label or requests.kind):
            start = int(shard.rows[0])
            if start != turn:
                early[start] = _Waiting(self, shard, columns)
                continue
            yield start, _spread(shard.source, columns, kind)
            turn += len(shard.rows)
            while turn in early:
                waiting = early.pop(turn)
                yield turn, _spread(waiting.source, waiting.columns(kind), kind)
                turn += len(waiting.source)

    def _plan(self, requests: Requests | LazyRequests) -> EagerPlan | LazyPlan:
        require(self.model, requests.kind)
        rows = self._shard_rows or shard_rows(len(requests), device=self.model.on_gpu)
        return make_plan(requests, rows)

    def _shards(
        self, plan: EagerPlan | LazyPlan, label: str
    ) -> Iterator[tuple[Shard, dict[str, Column]]]:
        """Every shard with its answers, counted and shown to whoever watches."""
        self.progress.start(label, plan.distinct, 0)
        job = Job(self.model, plan, self.store, self._requests, self.counts)
        self._fingerprint = job.fingerprint
        for shard, columns in self._executor.run(job):
            self.progress.advance(len(shard.requests))
            yield shard, columns
        self.progress.finish()
        self.counts.rows += plan.size
        self.counts.distinct += plan.distinct
        self.counts.shards += plan.count


def shard_rows(size: int, *, device: bool = False) -> int:
    """Rows per shard: about 48 shards, none tiny and none so large that a crash costs much.

    >>> shard_rows(1_000), shard_rows(100_000), shard_rows(11_000_000)
    (256, 2083, 8192)
    >>> shard_rows(1_000, device=True), shard_rows(11_000_000, device=True)
    (8192, 65536)
    """
    least, most = DEVICE_SHARD_ROWS if device else SHARD_ROWS
    return min(most, max(least, size // SHARDS_WANTED))


def require(model: Model, kind: str) -> None:
    """Raise a clear error when the model cannot answer this request kind."""
    if kind not in model.answers:
        raise ModelError(
            f"model {model.name!r} ({model.kind}) cannot answer {kind!r}; it answers "
            f"{', '.join(sorted(model.answers))}. Use a model of another kind, or see which "
            f"probes fit it with: evenhand ls probes"
        )


class _Waiting:
    """A shard finished before its turn: its place, and its answers on disk where there is one."""

    def __init__(self, ask: Ask, shard: Shard, columns: dict[str, Column]) -> None:
        self.source = shard.source
        self._store = ask.store
        self._key = shard_key(ask._fingerprint, shard.requests) if ask.store else ""
        self._columns = None if ask.store else columns

    def columns(self, kind: type[Requests]) -> dict[str, Column]:
        if self._columns is not None or self._store is None:
            return self._columns or {}
        found = self._store.read(self._key, kind)
        if found is None:
            raise RunError(
                f"{self._store.folder}: shard {self._key} was finished and is gone or damaged. "
                f"Score it again with: evenhand resume RUN"
            )
        return found


def _spread(source: np.ndarray, columns: dict[str, Column], kind: type[Requests]) -> Scores:
    """The answers of a shard in the order of its rows."""
    spread: dict[str, Column] = {}
    for name, type_name in kind.outputs.items():
        number = {"float": np.float64, "int": np.int32}.get(type_name)
        values = columns[name]
        spread[name] = np.asarray(values, number)[source] if number else [values[i] for i in source]
    return Scores(spread)


class _Collector:
    """Puts shard answers into the row order of the request."""

    def __init__(self, size: int, kind: type[Requests]) -> None:
        self._columns: dict[str, Any] = {}
        for name, type_name in kind.outputs.items():
            number = {"float": np.float64, "int": np.int32}.get(type_name)
            self._columns[name] = np.empty(size, dtype=number) if number else [None] * size

    def add(self, shard: Shard, columns: dict[str, Column]) -> None:
        for name, target in self._columns.items():
            values = columns[name]
            if isinstance(target, np.ndarray):
                target[shard.rows] = np.asarray(values)[shard.source]
            else:
                for row, source in zip(shard.rows, shard.source):
                    target[row] = values[source]

    def scores(self) -> Scores:
        return Scores(self._columns)
