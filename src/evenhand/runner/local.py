"""The local executor: one shard after the other, the next one prepared meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from evenhand.requests import Column
from evenhand.runner.job import Job, shard_key
from evenhand.runner.plan import Shard


@dataclass
class _Ready:
    """A shard on its way to the device: stored answers, or inputs prepared for scoring."""

    shard: Shard
    key: str
    columns: dict[str, Column] | None
    prepared: Any


class LocalExecutor:
    """Scores shards in this process; a second thread makes and tokenises the next one."""

    def run(self, job: Job) -> Iterator[tuple[Shard, dict[str, Column]]]:
        """Each shard with its answers: read when finished before, else scored and stored."""
        with ThreadPoolExecutor(1) as ahead:
            pending: Future[_Ready] | None = None
            for index in range(job.plan.count):
                ready = pending.result() if pending else self._make_ready(job, index)
                if index + 1 < job.plan.count:
                    pending = ahead.submit(self._make_ready, job, index + 1)
                columns = ready.columns
                if columns is None:
                    columns = job.score(ready.key, ready.shard.requests, ready.prepared)
                else:
                    job.counts.shards_reused += 1
                yield ready.shard, columns

    def _make_ready(self, job: Job, index: int) -> _Ready:
        shard = job.plan.shard(index)
        key = shard_key(job.model, shard.requests)
        stored = job.store.read(key, type(shard.requests)) if job.store else None
        prepared = None if stored is not None else job.model.prepare(shard.requests)
        return _Ready(shard, key, stored, prepared)
