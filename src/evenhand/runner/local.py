"""The local executor: one shard after the other, the next one prepared meanwhile."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from evenhand.requests import Column
from evenhand.runner.job import Job
from evenhand.runner.plan import Shard
from evenhand.runner.store import write_requests

QUICK_TURN_S = 5e-5


@dataclass
class _Ready:
    """A shard on its way to the device: stored answers, or inputs prepared for scoring."""

    shard: Shard
    key: str
    columns: dict[str, Column] | None
    prepared: Any


class LocalExecutor:
    """Scores shards in this process; a second thread makes and tokenises the next one.

    On a GPU the next shard is put in the device's queue before the answers of the last one are
    waited for, so the device goes from one to the next without a gap. Where a pass has hundreds of
    launches, shards are prepared between them, not beside them: two threads that want the
    interpreter hold each other up for longer than the work takes.
    """

    def run(self, job: Job) -> Generator[tuple[Shard, dict[str, Column]], None, None]:
        """Each shard with its answers: read when finished before, else scored and stored."""
        if job.model.alternates:
            yield from self._in_turns(job)
            return
        queue = 1 if job.model.overlaps else 0
        begun: deque[tuple[Shard, Callable[[], dict[str, Column]]]] = deque()
        with ThreadPoolExecutor(1) as ahead, _quick_turns(queue > 0):
            pending: Future[_Ready] | None = None
            for index in range(job.plan.count):
                ready = pending.result() if pending else self._make_ready(job, index)
                if index + 1 < job.plan.count:
                    pending = ahead.submit(self._make_ready, job, index + 1)
                begun.append((ready.shard, self._begin(job, ready)))
                while len(begun) > queue:
                    shard, finish = begun.popleft()
                    yield shard, finish()
            for shard, finish in begun:
                yield shard, finish()

    def _in_turns(self, job: Job) -> Generator[tuple[Shard, dict[str, Column]], None, None]:
        """One thread: a shard is queued, the next prepared, and then the first waited for."""
        begun: tuple[Shard, Callable[[], dict[str, Column]]] | None = None
        with _short_sweeps() as sweep:
            for index in range(job.plan.count):
                ready = self._make_ready(job, index)
                last, begun = begun, (ready.shard, self._begin(job, ready))
                if last is not None:
                    yield last[0], last[1]()
                sweep()
            if begun is not None:
                yield begun[0], begun[1]()

    def _begin(self, job: Job, ready: _Ready) -> Callable[[], dict[str, Column]]:
        if ready.columns is None:
            return job.begin(ready.key, ready.shard.requests, ready.prepared)
        columns = ready.columns
        job.counts.shards_reused += 1
        return lambda: columns

    def _make_ready(self, job: Job, index: int) -> _Ready:
        shard = job.plan.shard(index)
        key = job.key(shard.requests)
        stored = job.store.read(key, type(shard.requests)) if job.store else None
        if stored is not None:
            write_requests(job.requests_folder, key, shard.requests)  # where somebody removed them
        prepared = None if stored is not None else job.model.prepare(shard.requests)
        return _Ready(shard, key, stored, prepared)


@contextlib.contextmanager
def _short_sweeps() -> Iterator[Callable[[], object]]:
    """Look for garbage among what is new, when told to.

    Python's own sweeps walk over the millions of questions of a run again and again, a fifth of a
    second each time.
    """
    usual = gc.isenabled()
    gc.disable()
    try:
        yield lambda: gc.collect(1)
    finally:
        if usual:
            gc.enable()


@contextlib.contextmanager
def _quick_turns(wanted: bool) -> Iterator[None]:
    """Let Python's threads take turns quickly.

    Every call into torch gives up the interpreter; with the usual 5 ms until the tokenising
    thread hands it back, a pass of hundreds of calls would starve the device.
    """
    usual = sys.getswitchinterval()
    if wanted:
        sys.setswitchinterval(min(usual, QUICK_TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
