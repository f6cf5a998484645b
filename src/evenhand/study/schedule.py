"""Doing the stages of a study in order, several at a time, each in a process of its own.

A process per stage keeps memory apart, uses the cores without sharing an interpreter, and when
one is killed nothing else is lost: it is tried once more, then reported. On a cluster the same
stages are Ray tasks on a shared folder.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evenhand.errors import EvenhandError

ATTEMPTS = 2
PAUSE = 0.1


@dataclass(frozen=True)
class Task:
    """One stage of one cell (the cell is empty for what all cells share)."""

    cell: str
    stage: str
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.cell}/{self.stage}"


@dataclass
class Failure:
    """A stage that could not be done, and what it said."""

    task: Task
    message: str


class Lane(Protocol):
    """Something that works on one task at a time."""

    def poll(self) -> str | None:
        """None while working, "" when done, otherwise what went wrong."""

    def stop(self) -> None:
        """Give up the work under way."""


class ProcessLane:
    """A task in a child process."""

    def __init__(self, folder: Path, task: Task, threads: int) -> None:
        self.log = folder / "logs" / f"{task.key.strip('/').replace('/', '.')}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8"}
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[name] = str(threads)
        program = [sys.executable, "-m", "evenhand.study.worker"]
        command = [*program, str(folder), task.cell, task.stage]
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def poll(self) -> str | None:
        code = self.child.poll()
        if code is None:
            return None
        if code == 0:
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
        return f"{how}: {said} (log: {self.log})"

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(10)


class OwnLane:
    """A task in this process, done at once: for small studies and for looking into one."""

    def __init__(self, folder: Path, task: Task) -> None:
        from evenhand.study.worker import work

        self.said = ""
        try:
            work(str(folder), task.cell, task.stage)
        except EvenhandError as error:
            self.said = str(error)

    def poll(self) -> str | None:
        return self.said

    def stop(self) -> None:
        """Nothing is under way."""


class RayLane:
    """A task on a Ray cluster whose nodes see the folder."""

    def __init__(self, folder: Path, task: Task, ray: Any, gpus: float = 0.0) -> None:
        from evenhand.study.worker import work

        self.ray = ray
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=3)(work)
        self.reference = remote.remote(str(folder), task.cell, task.stage)

    def poll(self) -> str | None:
        ready, _ = self.ray.wait([self.reference], timeout=0)
        if not ready:
            return None
        try:
            self.ray.get(self.reference)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"
        return ""

    def stop(self) -> None:
        self.ray.cancel(self.reference, force=True)


@dataclass
class Schedule:
    """Tasks, how to start one, and how many at a time."""

    start: Callable[[Task], Lane]
    width: int
    failures: list[Failure] = field(default_factory=list)

    def run(self, tasks: Sequence[Task], done: Callable[[Task], bool]) -> Iterator[Task]:
        """Do what is left; gives each task as it finishes, and keeps failures.

        A task whose needs failed is not started. The cost of looking is small against a stage's:
        one pass over the waiting tasks ten times a second.
        """
        finished = {t.key for t in tasks if done(t)}
        waiting = [t for t in tasks if t.key not in finished]
        lost: set[str] = set()
        tries: dict[str, int] = {}
        working: dict[str, tuple[Task, Lane]] = {}
        try:
            while waiting or working:
                waiting = self._drop(waiting, lost)
                for task in [t for t in waiting if set(t.needs) <= finished]:
                    if len(working) < self.width:
                        working[task.key] = task, self.start(task)
                        waiting.remove(task)
                for key, (task, lane) in list(working.items()):
                    said = lane.poll()
                    if said is None:
                        continue
                    del working[key]
                    if said == "":
                        finished.add(key)
                        yield task
                        continue
                    tries[key] = tries.get(key, 0) + 1
                    if tries[key] < ATTEMPTS and "killed" in said:
                        waiting.insert(0, task)
                    else:
                        lost.add(key)
                        self.failures.append(Failure(task, said))
                if working:
                    time.sleep(PAUSE)
        finally:
            for _, lane in working.values():
                lane.stop()

    def _drop(self, waiting: list[Task], lost: set[str]) -> list[Task]:
        kept: list[Task] = []
        for task in waiting:
            missing = sorted(set(task.needs) & lost)
            if missing:
                lost.add(task.key)
                self.failures.append(Failure(task, f"needs {missing[0]}, which failed"))
            else:
                kept.append(task)
        return kept
