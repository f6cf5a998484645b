"""`ask`: the only door to a model.

    asker = Ask(model, run_folder)
    scores = asker(requests)          # scores in the row order of the requests

Duplicates are asked once, rows are scored in shards, each finished shard is on disk before the
next begins, and finished shards are never scored again. While the device works on one shard, the
next is made and tokenised in a second thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.protocol import Model
from evenhand.requests import TYPES, Column, LazyRequests, Requests, Scores
from evenhand.runner.plan import ORDER_VERSION, EagerPlan, LazyPlan, Shard, make_plan
from evenhand.runner.progress import Progress, Silent
from evenhand.runner.store import ShardStore, write_requests

SHARDS_WANTED = 48
SHARD_ROWS = (256, 8_192)


@dataclass
class Counts:
    """What the asks of one attempt did."""

    rows: int = 0
    distinct: int = 0
    shards: int = 0
    shards_scored: int = 0
    shards_reused: int = 0


class Ask:
    """Asks one model, keeping its scores below one run folder.

    Args:
        model: whom to ask.
        folder: the run folder, below which `scores/` and `requests/` go (None: memory only).
        attempt: number of this attempt at the run.
        progress: told how far the work is.
        shard_rows: rows per shard; by default a share of the whole that keeps a crash cheap.
    """

    def __init__(
        self,
        model: Model,
        folder: Path | None = None,
        *,
        attempt: int = 1,
        progress: Progress | None = None,
        shard_rows: int | None = None,
    ) -> None:
        self.model = model
        self.answers = model.answers
        self.counts = Counts()
        self.progress = progress or Silent()
        self.store = ShardStore(folder / "scores", attempt) if folder else None
        self._requests = folder / "requests" if folder else None
        self._shard_rows = shard_rows

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores:
        """Scores of every row, in row order.

        Raises:
            ModelError: the model cannot answer this kind, or gave NaN where a number is due.
        """
        kind = TYPES[requests.kind]
        require(self.model, requests.kind)
        plan = make_plan(requests, self._shard_rows or shard_rows(len(requests)))
        collected = _Collector(plan.size, kind)
        self.progress.start(label or requests.kind, plan.distinct, 0)
        for shard, columns in self._answers(plan, kind):
            collected.add(shard, columns)
            self.progress.advance(len(shard.requests))
        self.progress.finish()
        self.counts.rows += plan.size
        self.counts.distinct += plan.distinct
        return collected.scores()

    def _answers(
        self, plan: EagerPlan | LazyPlan, kind: type[Requests]
    ) -> Iterator[tuple[Shard, dict[str, Column]]]:
        """Each shard with its answers: read when finished before, else scored and stored."""
        with ThreadPoolExecutor(1) as ahead:
            pending: Future[_Ready] | None = None
            for index in range(plan.count):
                ready = pending.result() if pending else self._make_ready(plan, index)
                if index + 1 < plan.count:
                    pending = ahead.submit(self._make_ready, plan, index + 1)
                columns = ready.columns
                self.counts.shards += 1
                if columns is None:
                    columns = self.model.answer(ready.shard.requests, ready.prepared)
                    _check(self.model, ready.shard.requests, columns)
                    if self.store:
                        write_requests(self._requests, ready.key, ready.shard.requests)
                        self.store.write(ready.key, columns, kind)
                    self.counts.shards_scored += 1
                else:
                    self.counts.shards_reused += 1
                yield ready.shard, columns

    def _make_ready(self, plan: EagerPlan | LazyPlan, index: int) -> _Ready:
        shard = plan.shard(index)
        key = shard_key(self.model, shard.requests)
        stored = self.store.read(key, type(shard.requests)) if self.store else None
        prepared = None if stored is not None else self.model.prepare(shard.requests)
        return _Ready(shard, key, stored, prepared)


@dataclass
class _Ready:
    """A shard on its way to the device: stored answers, or inputs prepared for scoring."""

    shard: Shard
    key: str
    columns: dict[str, Column] | None
    prepared: Any


def shard_rows(size: int) -> int:
    """Rows per shard: about 48 shards, none tiny and none so large that a crash costs much.

    >>> shard_rows(1_000), shard_rows(100_000), shard_rows(11_000_000)
    (256, 2083, 8192)
    """
    return min(SHARD_ROWS[1], max(SHARD_ROWS[0], size // SHARDS_WANTED))


def shard_key(model: Model, requests: Requests) -> str:
    """Names a shard's scores: no score is ever reused for another model or question."""
    parts = "\n".join([model.fingerprint, ORDER_VERSION, requests.digest()])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def require(model: Model, kind: str) -> None:
    """Raise a clear error when the model cannot answer this request kind."""
    if kind not in model.answers:
        raise ModelError(
            f"model {model.name!r} ({model.kind}) cannot answer {kind!r}; it answers "
            f"{', '.join(sorted(model.answers))}. Use a model of another kind, or see which "
            f"probes fit it with: evenhand ls probes"
        )


def _check(model: Model, requests: Requests, columns: dict[str, Column]) -> None:
    """NaN scores would spoil every average silently: stop at the first one, by name."""
    if requests.kind in ("embed", "span"):
        return  # NaN means "no such word" or "no such span" there, and is counted by the probe
    for name, values in columns.items():
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            bad = np.flatnonzero(np.isnan(values))
            if len(bad):
                row = dict(zip(requests.columns, requests.rows()[int(bad[0])]))
                raise ModelError(
                    f"model {model.name!r} gave NaN for {name!r} in {len(bad)} of {len(values)} "
                    f"answers, first for {row!r}. Half precision often causes this; try again "
                    f"with: --dtype float32"
                )


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
