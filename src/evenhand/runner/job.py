"""One ask as work: whom, what, where the answers go. The same for every executor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.protocol import Model
from evenhand.requests import Column, Requests
from evenhand.runner import trouble
from evenhand.runner.plan import ORDER_VERSION, Shard, ShardPlan
from evenhand.runner.store import ShardStore, write_requests


@dataclass
class Counts:
    """What the asks of one attempt did."""

    rows: int = 0
    distinct: int = 0
    shards: int = 0
    shards_scored: int = 0
    shards_reused: int = 0
    smaller_batches: int = 0
    """How often memory ran out and the token budget of a batch was halved."""


@dataclass
class Job:
    """A planned ask.

    Attributes:
        store: where finished shards are kept, or None for memory only.
        requests_folder: where the questions are kept beside them.
        counts: told what was scored and what was reused.
    """

    model: Model
    plan: ShardPlan
    store: ShardStore | None = None
    requests_folder: Path | None = None
    counts: Counts = field(default_factory=Counts)

    @cached_property
    def fingerprint(self) -> str:
        """The model's, as it was when the job began."""
        return self.model.fingerprint

    def key(self, requests: Requests) -> str:
        """Names a shard's scores."""
        return shard_key(self.fingerprint, requests)

    def score(self, key: str, requests: Requests, prepared: Any) -> dict[str, Column]:
        """Ask the model for one shard, check the answers and store them."""
        return self.begin(key, requests, prepared)()

    def begin(self, key: str, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        """Start on one shard; the function given back waits for the answers and stores them."""
        finish = trouble.begin(self.model, requests, prepared, self.counts)
        return lambda: self._kept(key, requests, finish())

    def _kept(self, key: str, requests: Requests, columns: dict[str, Column]) -> dict[str, Column]:
        check_answers(self.model, requests, columns)
        if self.store:
            write_requests(self.requests_folder, key, requests)
            self.store.write(key, columns, type(requests))
        self.model.stored(requests)
        self.counts.shards_scored += 1
        return columns


class Executor(Protocol):
    """Runs the shards of a job somewhere and gives each with its answers, in any order."""

    def run(self, job: Job) -> Iterator[tuple[Shard, dict[str, Column]]]: ...


def shard_key(fingerprint: str, requests: Requests) -> str:
    """Names a shard's scores: no score is ever reused for another model or question."""
    parts = "\n".join([fingerprint, ORDER_VERSION, requests.digest()])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def check_answers(model: Model, requests: Requests, columns: dict[str, Column]) -> None:
    """NaN scores would spoil every average silently: stop at the first one, by name."""
    if requests.kind in ("embed", "span"):
        return  # NaN means "no such word" or "no such span" there, and is counted by the probe
    for name, values in columns.items():
        if name in ("refused", "unread"):
            continue  # NaN: this rung cannot see it
        if name == "probabilities":
            values = np.asarray([sum(row) for row in values], np.float64)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            bad = np.flatnonzero(np.isnan(values))
            if len(bad):
                row = dict(zip(requests.columns, requests.rows()[int(bad[0])]))
                raise ModelError(
                    f"model {model.name!r} gave NaN for {name!r} in {len(bad)} of {len(values)} "
                    f"answers, first for {row!r}. {_cure(model)}"
                )


def _cure(model: Model) -> str:
    """What to try against NaN; an object that computed in full has to be mended itself."""
    if model.dtype in ("float16", "bfloat16"):
        return "Half precision often causes this; try again with: --dtype float32"
    return "Every answer must be a number."
