"""Running a study into a folder, and resuming it where it stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import RunError
from evenhand.runner.cluster import RayExecutor
from evenhand.runner.job import Executor
from evenhand.runner.progress import Progress, Silent
from evenhand.runs.kinds import Again
from evenhand.runs.record import Run, RunWriter, environment, now
from evenhand.study import analysis, claims
from evenhand.study.folder import VECTORS, StudyFolder
from evenhand.study.grid import Cell, cells
from evenhand.study.inputs import Fingerprint, read_inputs, require_unchanged, write_inputs
from evenhand.study.points import INTRINSIC, columns_of, points_table, runs_table
from evenhand.study.recipe import Recipe, files_of, inputs_of, parse_recipe, place
from evenhand.study.schedule import Lane, OwnLane, ProcessLane, RayLane, Schedule, Task

CORPUS = Task("", "corpus")
KIND = "study"


@dataclass
class Study:
    """A recipe in a folder; each call of `run` does what is left.

    Attributes:
        stages: which stages to work on now (all when empty); what is missing stays missing, so
            a task that needs a GPU can be done later, or on another machine that sees a copy of
            the folder.
        jobs: stages at a time on this machine, each in a process; 0: in this process.
        workers: stages at a time on a Ray cluster; None: one per CPU.
        tell: gets what a reader of the results must know of the data.
    """

    recipe: Recipe
    folder: Path
    data: Path | None = None
    _: KW_ONLY
    jobs: int = 1
    stages: tuple[str, ...] = ()
    progress: Progress = field(default_factory=Silent)
    ray_address: str | None = None
    on_ray: bool = False
    workers: int | None = None
    tell: Callable[[str], None] | None = None

    def run(self) -> Run:
        """Do what is left, then correlate what is there and write findings and report.

        Raises:
            RunError: the folder holds another study, or data have changed since it read them.
        """
        self._require_files()
        from evenhand.report.build import prepared

        render, writer = prepared(Study), RunWriter(self.folder)
        with writer.held():
            facts = self._begin()
            with writer.working(facts):
                failures = self._stages(facts)
            self._conclude(writer, facts, failures)
            run = Run.open(self.folder)
            writer.page(render(run))
        return run

    @property
    def place(self) -> StudyFolder:
        return StudyFolder(self.folder)

    @property
    def tasks(self) -> list[Task]:
        """Every stage of every cell, with what it waits for."""
        found = [CORPUS]
        for cell in cells(self.recipe):
            before = f"{cell.base}/{VECTORS}" if cell.base else CORPUS.key
            found.append(Task(cell.name, VECTORS, (before,)))
        for stage in (INTRINSIC, *self.recipe.tasks):
            for cell in cells(self.recipe):
                found.append(Task(cell.name, stage, (f"{cell.name}/{VECTORS}",)))
        return found

    def done(self, task: Task) -> bool:
        settings = self.recipe.settings_of(task.stage)
        return self.place.done(task.cell or "corpus", task.stage, settings)

    def plan(self) -> list[dict[str, Any]]:
        """Per stage: how many there are and how many are finished.

        Raises:
            SpecError, DataError, RunError: as `run` does before it begins.
        """
        self._require_files()
        self._earlier()
        self._inputs()
        rows = []
        for stage in dict.fromkeys(t.stage for t in self.tasks):
            own = [t for t in self.tasks if t.stage == stage]
            seconds = [
                self.place.read(t.cell or "corpus", stage).get("seconds")
                for t in own
                if self.done(t)
            ]
            known = [s for s in seconds if s is not None]
            mean = sum(known) / len(known) if known else None
            left = len(own) - len(seconds)
            rows.append(
                {
                    "stage": stage,
                    "all": len(own),
                    "finished": len(seconds),
                    "left": left,
                    "seconds each": mean,
                    "seconds left": mean * left if mean is not None else None,
                }
            )
        return rows

    def _require_files(self) -> None:
        """Refuse a missing file before hours are spent."""
        for path in files_of(self.recipe, self.stages):
            place(path, self.data)

    def _earlier(self) -> dict[str, Any] | None:
        """The facts of earlier attempts; refuses a folder that holds another study."""
        path = self.folder / "run.json"
        if not path.is_file():
            return None
        facts = Run.open(self.folder).facts
        old = parse_recipe(facts["work"].get("recipe") or {}, f"{path}")
        if old.vectors_of() != self.recipe.vectors_of():
            raise RunError(
                f"{self.folder}: holds other embeddings (another corpus, training or grid). "
                f"Choose another folder with: --out DIR"
            )
        return facts

    def _inputs(self) -> tuple[dict[str, Fingerprint], list[str]]:
        """Fingerprints of all that is read now, and the stages whose data nobody recorded.

        Data may change as long as no finished result rests on them: those of the corpus are below
        every result, those of a task below its own.
        """
        known = read_inputs(self.folder)
        inputs: dict[str, Fingerprint] = {}
        unrecorded = []
        for stage, paths in inputs_of(self.recipe).items():
            if self.stages and stage not in self.stages:
                inputs |= {name: known[name] for name in paths if name in known}
                continue
            tasks = [t for t in self.tasks if stage in (t.stage, "corpus")]
            finished = sum(self.done(t) for t in tasks)
            if finished:
                inputs |= require_unchanged(self.folder, self.recipe, self.data, stage, finished)
                unrecorded += [] if known.keys() >= set(paths) else [stage]
            else:
                inputs |= {name: Fingerprint.of(place(name, self.data)) for name in paths}
        return inputs, unrecorded

    def _begin(self) -> dict[str, Any]:
        facts = self._earlier()
        inputs, unrecorded = self._inputs()
        write_inputs(self.folder, inputs)
        if facts is None:
            return self._fresh()
        notes = list(facts.get("notes", ()))
        if unrecorded:
            notes.append(
                f"Attempt {int(facts['attempts']) + 1}: earlier attempts did not record what the "
                f"data were for {', '.join(unrecorded)}. They are recorded from now on, and "
                "finished results are taken to rest on them as they are now."
            )
            if self.tell is not None:
                self.tell(f"{self.folder}: {notes[-1]}")
        return {
            "kind": KIND,
            **facts,
            "work": self.identity(),
            "status": "running",
            "attempts": int(facts["attempts"]) + 1,
            **({"notes": notes} if notes else {}),
        }

    def _fresh(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "status": "running",
            "work": self.identity(),
            "models": {},
            "probes": {},
            "attempts": 1,
            "started": now(),
            "environment": environment(),
            "timings": {},
        }

    def again(self, failures: Sequence[str]) -> Run:
        """Findings once more from what the stages left behind, as evidence: no report, no lock."""
        self._conclude(RunWriter(self.folder), self._fresh(), failures)
        return Run.open(self.folder)

    def identity(self) -> dict[str, Any]:
        """The whole recipe. Embeddings must be the same in all attempts; tasks may be added."""
        rate = self.recipe.false_discovery_rate
        return {
            "model": self.recipe.name,
            "seed": self.recipe.seed,
            "suite": {"name": self.recipe.name, "false_discovery_rate": rate, "probe": []},
            "recipe": self.recipe.model_dump(mode="json"),
            "data": str(self.data) if self.data else None,
        }

    def _stages(self, facts: dict[str, Any]) -> list[str]:
        tasks = [t for t in self.tasks if not self.stages or t.stage in self.stages]
        kept = {t.key for t in tasks}
        tasks = [Task(t.cell, t.stage, self._needs(t, kept)) for t in tasks]
        start, width = self._starter()
        schedule = Schedule(start, width)
        ready = sum(self.done(t) for t in tasks)
        self.progress.start(f"study {self.recipe.name}", len(tasks), ready)
        for _ in schedule.run(tasks, self.done):
            self.progress.advance(1)
        self.progress.finish()
        return [f"{f.task.key.strip('/')}: {f.message}" for f in schedule.failures]

    def _needs(self, task: Task, kept: set[str]) -> tuple[str, ...]:
        """Needs that are worked on now; the others must be finished already."""
        outside = [n for n in task.needs if n not in kept]
        for key in outside:
            cell, _, stage = key.rpartition("/")
            if not self.place.done(cell or "corpus", stage, self.recipe.settings_of(stage)):
                raise RunError(
                    f"{self.folder}: stage {task.stage!r} needs {key.strip('/')!r}, which is not "
                    f"finished. Run the study without --stages first."
                )
        return tuple(n for n in task.needs if n in kept)

    def _starter(self) -> tuple[Callable[[Task], Lane], int]:
        """How a stage is started, and how many at a time."""
        if self.on_ray:
            ray = RayExecutor(address=self.ray_address).connect()
            width = self.workers or int(ray.cluster_resources().get("CPU", 1))
            return lambda task: RayLane(self.folder.resolve(), task, ray), width
        if self.jobs == 0:
            return lambda task: OwnLane(self.folder, task), 1
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        return lambda task: ProcessLane(self.folder, task, threads), self.jobs

    def _conclude(self, writer: RunWriter, facts: dict[str, Any], failures: Sequence[str]) -> None:
        grid = cells(self.recipe)
        runs = runs_table(self.place, grid, self.recipe.tasks)
        writer.table("study", "items", runs)
        writer.table("study", "points", points_table(runs))
        path = self.folder / "probes" / "study" / "items.parquet"
        pairs, known = analysis.analyse(path, columns_of(runs), self.recipe)
        writer.table("study", "correlations", analysis.as_table(pairs, analysis.PAIR))
        writer.table("study", "reliability", analysis.as_table(known, analysis.TRUST))
        rate = self.recipe.false_discovery_rate
        writer.findings(claims.judged(claims.findings(pairs, known), rate))
        missing = [t.key.strip("/") for t in self.tasks if not self.done(t)]
        facts["probes"] = {"study": self._entry(grid, missing, failures)}
        facts["models"] = {self.recipe.name: {"name": self.recipe.name, "kind": KIND}}
        facts["status"] = "finished" if not missing else "interrupted"
        facts["finished"] = now()
        writer.facts(facts)

    def _entry(
        self, grid: Sequence[Cell], missing: Sequence[str], failures: Sequence[str]
    ) -> dict[str, Any]:
        stages = len(self.tasks)
        return {
            "probe": "study",
            "title": self.recipe.title or "Intrinsic metrics against behaviour",
            "paper": "Kato and Miyao (2024)",
            "model": self.recipe.name,
            "as_published": self.recipe.correlation.scipy_stream,
            "settings": {},
            "counts": {"cells": len(grid), "stages": stages, "finished": stages - len(missing)},
            "summary": {
                "embeddings": len(grid),
                "stages_finished": stages - len(missing),
                "stages": stages,
                "missing": list(missing)[:50],
                "failures": list(failures),
                "lexicons": ["kato_word_sets"],
            },
        }


def run_study(
    recipe: Recipe,
    *,
    out: str | Path,
    data: str | Path | None = None,
    jobs: int = 1,
    stages: Sequence[str] = (),
    progress: Progress | None = None,
    on_ray: bool = False,
    ray_address: str | None = None,
    workers: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Run:
    """Run a study, or resume one, and give its run folder.

    Args:
        out: the folder; one that holds the same study is resumed.
        data: what `{data}` in the recipe's paths stands for.
        jobs: stages at a time, each in a process of its own; 0: one by one in this process.
        stages: only these (`corpus`, `vectors`, `intrinsic`, `hate_speech`, `coreference`).
        progress: is told how far the work has got.
        on_ray, ray_address, workers: stages as tasks of a Ray cluster (started here without an
            address), this many at a time.
        tell: gets what a reader of the results must know of the data.

    Raises:
        RunError: the folder holds another study, or data have changed since it read them.
    """
    place = Path(data) if data else None
    return Study(
        recipe,
        Path(out),
        place,
        jobs=jobs,
        stages=tuple(stages),
        progress=progress or Silent(),
        ray_address=ray_address,
        on_ray=on_ray,
        workers=workers,
        tell=tell,
    ).run()


def resume(
    folder: str | Path, *, progress: Progress | None = None, executor: Executor | None = None
) -> Run:
    """Resume a study: recipe and data folder are in its run.json."""
    work = Run.open(folder).facts["work"]
    recipe = parse_recipe(work["recipe"], f"{folder}/run.json")
    if executor is not None and not isinstance(executor, RayExecutor):
        raise RunError(
            f"{folder}: a study trains one embedding at a time in each process and cannot use "
            f"several devices. Resume it without --devices, or with: --executor ray"
        )
    return run_study(
        recipe,
        out=folder,
        data=work.get("data"),
        progress=progress,
        on_ray=executor is not None,
        ray_address=executor.address if executor else None,
        workers=executor.workers if executor else None,
        tell=getattr(progress, "note", None),
    )


def again(run: Run, scratch: Path) -> Again:
    """See `RunKind.again`. What a study rests on are the numbers of its finished stages."""
    facts = run.facts
    recipe = parse_recipe(facts["work"]["recipe"], f"{run.folder}/run.json")
    study, held = Study(recipe, scratch), StudyFolder(run.folder)
    files: dict[str, bytes | Path] = {}
    for task in study.tasks:
        path = held.result(task.cell or "corpus", task.stage)
        name = path.relative_to(run.folder).as_posix()
        if path.is_file():
            files[name] = path
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, scratch / name)
    told = facts["probes"].get(KIND, {}).get("summary", {})
    return Again(study.again(told.get("failures", ())), files)
