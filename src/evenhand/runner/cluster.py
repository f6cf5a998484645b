"""The Ray executor: shards as tasks of actors that hold the model.

    driver  --rows of a shard-->  actor (holds the model)  --scores-->  shard file
    driver  <-- "done" ---------                            reads the file back

Ray runs a task at least once; a shard is committed under a name that depends on its content alone,
so doing it twice changes nothing. Together that is exactly once. An actor that dies is started
again and its tasks are repeated, as often as needed; when its node is gone and no other has room,
its shards go to the actors that are left. Every actor must have the driver's model
(same fingerprint) and as many threads, so scores are equal to local ones to the bit; one that has
another refuses, and the run stops with its message.

Only Ray's core is used (`pip install 'evenhand[ray]'`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import EvenhandError, ModelError, RunError, need
from evenhand.models.choosing import hear, heard
from evenhand.models.protocol import Model, ModelRecipe
from evenhand.requests import Column, Requests
from evenhand.runner import cluster_address, trouble
from evenhand.runner.job import Counts, Job, check_answers
from evenhand.runner.plan import Shard
from evenhand.runner.store import ShardStore, write_requests
from evenhand.systems import host

TASKS_AHEAD = 2
CPUS_PER_WORKER = 2
DEATHS = 5
"""How often each worker may die for good, with no shard finished in between, before a run stops."""


class Scorer:
    """What lives on a worker: the model, and the folder that all workers share."""

    def __init__(
        self,
        recipe: ModelRecipe | Model,
        fingerprint: str,
        folder: str,
        threads: int,
        packs: Mapping[str, Any],
    ):
        hear(packs)  # written answers are read here, not where the pack was loaded
        self.refused: EvenhandError | None = None
        try:
            self.model: Model = build(recipe, threads)
            self.store = ShardStore(folder)
            if self.model.fingerprint != fingerprint:
                raise ModelError(
                    f"its model {self.model.name!r} differs from the driver's (other weights, "
                    f"torch version or device). Use the same installation on every machine."
                )
        except EvenhandError as error:  # told by the first shard, as a task can and a start cannot
            self.refused = type(error)(f"worker on {host()}: {error}")

    def score(self, key: str, requests: Requests, attempt: int) -> tuple[str, int]:
        """Score one shard and commit it; gives the host's name and how often batches shrank."""
        if self.refused is not None:
            raise self.refused
        counts = Counts()
        prepared = self.model.prepare(requests)
        try:
            columns = trouble.begin(self.model, requests, prepared, counts)()
        except ModelError as error:
            if error.__cause__ is not None and trouble.is_lost_device(error.__cause__):
                os._exit(1)  # a broken device context never heals: let Ray start a new actor
            raise
        check_answers(self.model, requests, columns)
        self.store.attempt = attempt
        self.store.write(key, columns, type(requests))
        return host(), counts.smaller_batches


def build(recipe: ModelRecipe | Model, threads: int) -> Model:
    """The model from its recipe (what the resolver was given), or the model object itself."""
    if isinstance(recipe, Model):
        return recipe
    if threads:
        torch: Any = need("torch", extra="hf", what="loading a language model")
        torch.set_num_threads(threads)
    device = recipe.options.device  # a worker sees the devices given to it and counts them from 0
    return recipe.build(device=device.split(":")[0] if device else None)


@dataclass
class _Work:
    """Shards under way: which actor has which, and who is free."""

    ray: Any
    attempt: int = 1
    pool: list[Any] = field(default_factory=list)
    waiting: dict[Any, tuple[Shard, str, int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    lost: int = 0
    """Actors that died for good since the last finished shard."""

    def submit(self, shard: Shard, key: str, actor: int) -> None:
        task = self.pool[actor].score.remote(key, shard.requests, self.attempt)
        self.waiting[task] = (shard, key, actor)

    def take_over(self) -> None:
        """Give shards that nobody answers for to idle actors; doing one twice changes nothing."""
        for shard, key, owner in list(self.waiting.values()):
            idle = next((a for a in self.free if a != owner), None)
            asked = sum(k == key for _, k, _ in self.waiting.values())
            if idle is not None and asked < len(self.pool):
                self.free.remove(idle)
                self.submit(shard, key, idle)

    def forget(self, key: str) -> None:
        """A shard is done: whoever else works on it is not waited for."""
        self.waiting = {r: w for r, w in self.waiting.items() if w[1] != key}


@dataclass
class RayExecutor:
    """Scores shards on a Ray cluster.

    Args:
        address: of a running cluster ("auto" finds the one of this machine); None: that of
            RAY_ADDRESS, or Ray is started here.
        workers: how many actors; None for one per GPU, or on every node one per two CPUs.
        cpus, gpus: what one actor asks of its node; by default a GPU if the driver's model is
            on one.
        patience: seconds without any answer after which idle actors take over waiting shards.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1.0
    gpus: float | None = None
    patience: float = 30.0
    hosts: dict[str, int] = field(default_factory=dict)
    _pools: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _models: dict[str, Any] = field(default_factory=dict)
    """Model objects in Ray's store; kept here since a worker that is started again needs them."""

    def run(self, job: Job) -> Iterator[tuple[Shard, dict[str, Column]]]:
        """Each shard with its answers, in the order in which they are finished."""
        self.require_shared(job.store.place if job.store else None)
        assert job.store is not None
        ray = self.connect()
        work = _Work(ray, job.store.attempt)
        for index in range(job.plan.count):
            shard = job.plan.shard(index)
            key = job.key(shard.requests)
            stored = job.store.read(key, type(shard.requests))
            if stored is not None:
                job.counts.shards_reused += 1
                yield shard, stored
                continue
            if not work.pool:
                work.pool = self._pool(ray, job)
                work.free = list(range(len(work.pool))) * TASKS_AHEAD
            while not work.free:
                yield from self._finished(job, work)
            write_requests(job.requests_folder, key, shard.requests)
            work.submit(shard, key, work.free.pop(0))
        while work.waiting:
            yield from self._finished(job, work)

    def require_shared(self, place: str | None) -> None:
        """Refuse a place of scores that other processes cannot see."""
        if place is None or place.startswith("memory:"):
            raise RunError(
                "the Ray executor needs a run folder, or a store such as s3://bucket/prefix, that "
                "every worker can reach."
            )

    def _finished(self, job: Job, work: _Work) -> Iterator[tuple[Shard, dict[str, Column]]]:
        """Wait for one task, read its shard back and give it."""
        ray = work.ray
        done, _ = ray.wait(list(work.waiting), num_returns=1, timeout=self.patience)
        if not done:
            self._room(ray, job.model)
            work.take_over()
            return
        shard, key, actor = work.waiting.pop(done[0])
        try:
            host, smaller = ray.get(done[0])
        except ray.exceptions.RayActorError as error:
            if error.actor_init_failed:
                raise _not_started(error) from error
            if isinstance(error, ray.exceptions.ActorDiedError):  # for good: Ray restarts others
                work.lost += 1
                if work.lost > DEATHS * len(work.pool):
                    raise _not_started(error) from error
                work.pool[actor] = self._actor(ray, job)
            work.submit(shard, key, actor)
            return
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from error
        work.lost = 0
        work.free.append(actor)
        work.forget(key)
        self.hosts[host] = self.hosts.get(host, 0) + 1
        assert job.store is not None
        job.store.refresh(key)
        columns = job.store.read(key, type(shard.requests))
        if columns is None:
            raise RunError(
                f"shard {key} was scored on {host!r} but is not in {job.store.folder}. The run "
                f"folder (or --store) must be one that the driver and all workers share."
            )
        job.counts.shards_scored += 1
        job.counts.smaller_batches += smaller
        yield shard, columns

    def connect(self) -> Any:
        """Ray, connected to the cluster at the address (or started here)."""
        ray: Any = need("ray", extra="ray", what="the Ray executor")
        if ray.is_initialized():
            return ray
        self._pools.clear()
        self._models.clear()
        cluster_address.knock(ray, self.address)
        address = cluster_address.meant(self.address)
        here: dict[str, Any] = {}
        if address is None:
            cluster_address.start_private()
            here = {"include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="error", **here)
        except ConnectionError as error:
            raise cluster_address.nobody(address, error) from error
        except (ValueError, RuntimeError, ImportError, ray.exceptions.RayError) as error:
            raise RunError(
                f"--address {address!r}: Ray cannot connect ({trouble.first_line(error)}) Driver "
                f"and cluster need the same versions of Python and Ray; see: ray status --address "
                f"{address}"
            ) from error
        return ray

    def knock(self) -> None:
        """Raise a clear error when there is no such cluster, or it denies access."""
        ray: Any = need("ray", extra="ray", what="the Ray executor")
        cluster_address.knock(ray, self.address)

    def _pool(self, ray: Any, job: Job) -> list[Any]:
        """Actors that hold the job's model; made once per model and folder."""
        assert job.store is not None
        name = (job.fingerprint, job.store.place)
        if name not in self._pools:
            count = self._workers(ray, self._gpus(job.model))
            self._pools[name] = [self._actor(ray, job) for _ in range(count)]
        return self._pools[name]

    def _actor(self, ray: Any, job: Job) -> Any:
        assert job.store is not None
        remote = ray.remote(Scorer).options(
            max_restarts=-1,
            max_task_retries=-1,
            num_cpus=self.cpus,
            num_gpus=self._gpus(job.model),
        )
        given = self._recipe(ray, job), job.fingerprint, job.store.place, job.model.threads
        return remote.remote(*given, heard())

    def _recipe(self, ray: Any, job: Job) -> Any:
        """How a worker gets the model: by loading it, or as a copy of the object, put once."""
        if job.model.recipe is not None:
            return job.model.recipe
        if job.fingerprint not in self._models:
            try:
                self._models[job.fingerprint] = ray.put(job.model)
            except TypeError as error:
                raise ModelError(
                    f"model {job.model.name!r} is a Python object that cannot be sent to other "
                    f"machines ({trouble.first_line(error)}) Name a model that the workers can "
                    f"load, or leave out: --executor ray"
                ) from error
        return self._models[job.fingerprint]

    def _room(self, ray: Any, model: Model) -> None:
        """Say so when no node can ever hold a worker (one may still join: the run waits)."""
        gpus, nodes = self._gpus(model), _nodes(ray)
        if any(n.get("CPU", 0) >= self.cpus and n.get("GPU", 0) >= gpus for n in nodes):
            return
        have = ", ".join(f"{n.get('CPU', 0):g} CPUs {n.get('GPU', 0):g} GPUs" for n in nodes)
        warnings.warn(
            f"no node of the Ray cluster has room for a worker ({self.cpus:g} CPUs, {gpus:g} GPUs "
            f"wanted; available: {have or 'no node'}). Waiting for one to join; Ctrl-C loses "
            "nothing.",
            stacklevel=2,
        )

    def _gpus(self, model: Model) -> float:
        """GPUs of one actor: as asked, else one where the driver's model is on one."""
        if self.gpus is not None:
            return self.gpus
        return float(model.on_gpu)

    def _workers(self, ray: Any, gpus: float) -> int:
        if self.workers:
            return self.workers
        if gpus:
            return max(1, sum(int(n.get("GPU", 0) / gpus) for n in _nodes(ray)))
        cpus = [n.get("CPU", 0) for n in _nodes(ray)]
        share = max(self.cpus, CPUS_PER_WORKER)
        return max(1, sum(max(1, int(n / share)) for n in cpus if n >= self.cpus))


def _nodes(ray: Any) -> list[dict[str, float]]:
    """What each living node offers."""
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def _not_started(error: Exception) -> RunError:
    """An actor whose start failed: the last line of the worker's traceback says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return RunError(
        f"a Ray worker cannot start ({lines[-1] if lines else type(error).__name__}). Every node "
        "needs the driver's installation; finished shards are kept. Then continue with: evenhand "
        "resume RUN --executor ray"
    )
