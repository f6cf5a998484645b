"""Several devices of one machine: a copy of the model on each, shards in turn.

    shard 0 -> cuda:0    shard 1 -> cuda:1    shard 2 -> cuda:0 ...

Each copy is asked by a thread of its own, in the way of the local executor. A shard's scores and
key do not depend on which copy gives them, so the run equals one on a single device, and it can
be resumed with another number of devices. Copies share one Python process: for small models, whose
batches are made slower than a device answers them, `--executor ray` (a process per device) is the
better way.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import ModelError, SpecError, need
from evenhand.models.protocol import Model, ModelRecipe
from evenhand.requests import Column, Requests
from evenhand.runner.job import Counts, Job
from evenhand.runner.local import LocalExecutor
from evenhand.runner.plan import Shard, ShardPlan

DEVICE = re.compile(r"cpu|(cuda|xpu|mps)(:\d+)?")
Finished = tuple[Shard, dict[str, Column]]


def parse_devices(text: str) -> tuple[str, ...]:
    """The devices named on the command line; `all` is every GPU of this machine.

    >>> parse_devices("cuda:0, cuda:1")
    ('cuda:0', 'cuda:1')
    """
    if text.strip() == "all":
        torch: Any = need("torch", extra="hf", what="--devices all")
        count = torch.cuda.device_count()
        if not count:
            raise SpecError("--devices 'all': there is no GPU here. Leave the option out.")
        return tuple(f"cuda:{i}" for i in range(count))
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if not DEVICE.fullmatch(name):
            raise SpecError(
                f"--devices {text!r}: {name!r} is not a device. Accepted: all, or devices such as "
                "cuda:0,cuda:1"
            )
    if len({name.split(":")[0] for name in names}) > 1:
        raise SpecError(
            f"--devices {text!r}: devices of one kind only, since scores of different kinds "
            f"differ in the last digits."
        )
    return names


@dataclass
class DevicesExecutor:
    """Scores shards on several devices of this machine.

    Args:
        devices: one copy of the model on each; the model as loaded serves the first.
    """

    devices: Sequence[str]
    _copies: dict[str, list[Model]] = field(default_factory=dict)

    def run(self, job: Job) -> Iterator[Finished]:
        """Each shard with its answers, in the order in which they are finished."""
        models = self._models(job)[: max(1, job.plan.count)]
        if len(models) == 1:
            yield from LocalExecutor().run(job)
            return
        parts = [
            Job(model, _Part(job.plan, first, len(models)), job.store, job.requests_folder)
            for first, model in enumerate(models)
        ]
        yield from _together(parts)
        for part in parts:
            _add(job.counts, part.counts)

    def _models(self, job: Job) -> list[Model]:
        if job.fingerprint not in self._copies:
            recipe = job.model.recipe if job.model.dtype else None  # vectors are on no device
            others = self.devices[1:] if recipe else ()
            copies = [_copy(job, recipe, device) for device in others if recipe]
            self._copies[job.fingerprint] = [job.model, *copies]
        return self._copies[job.fingerprint]


def _copy(job: Job, recipe: ModelRecipe, device: str) -> Model:
    """The job's model once more, on another device; refused when it is not the same."""
    model = recipe.build(device=device, dtype=job.model.dtype or recipe.options.dtype)
    if model.fingerprint != job.fingerprint:
        raise ModelError(
            f"model {model.name!r} on {device!r} is not the one on the first device (its weights "
            f"changed meanwhile, or the devices differ in kind). Use one device with: --device"
        )
    return model


class _Part:
    """Every n-th shard of a plan."""

    def __init__(self, plan: ShardPlan, first: int, step: int) -> None:
        self.type: type[Requests] = plan.type
        self.size, self.distinct = plan.size, plan.distinct
        self.count = len(range(first, plan.count, step))
        self._plan, self._first, self._step = plan, first, step

    def shard(self, index: int) -> Shard:
        return self._plan.shard(self._first + index * self._step)


def _together(jobs: list[Job]) -> Iterator[Finished]:
    """What the jobs give, each running in a thread; the first error ends all of them."""
    done: queue.Queue[Finished | BaseException | None] = queue.Queue(2 * len(jobs))
    stop = threading.Event()

    def work(job: Job) -> None:
        try:
            with contextlib.closing(LocalExecutor().run(job)) as finished:
                for pair in finished:
                    if not _put(done, pair, stop):
                        return
            _put(done, None, stop)
        except BaseException as error:  # told to the thread that waits
            _put(done, error, stop)

    threads = [threading.Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    left = len(jobs)
    try:
        while left:
            got = done.get()
            if isinstance(got, BaseException):
                raise got
            if got is None:
                left -= 1
            else:
                yield got
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _put(done: queue.Queue[Any], what: Any, stop: threading.Event) -> bool:
    """Hand something over; False when nobody waits for it any more."""
    while not stop.is_set():
        with contextlib.suppress(queue.Full):
            done.put(what, timeout=0.1)
            return True
    return False


def _add(total: Counts, part: Counts) -> None:
    total.shards_scored += part.shards_scored
    total.shards_reused += part.shards_reused
    total.smaller_batches += part.smaller_batches
