"""The study command: embeddings, metrics, tasks and their correlations in one resumable run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, place
from evenhand.cli.run import Address, Where, interruptible, make_executor

if TYPE_CHECKING:
    from evenhand.study.running import Study

Folder = Annotated[
    Path | None, place("--out", help="Study folder. One with the same recipe is resumed.")
]
Pack = Annotated[
    Path | None,
    place("--pack", help="Write a small copy for coreference on another machine, then stop."),
]


def study(
    *,
    recipe: Annotated[str, typer.Argument(help="Packaged study or TOML file (e.g. kato).")],
    out: Folder = None,
    data: Annotated[
        Path | None, typer.Option(help="What {data} in the recipe's paths stands for.")
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            help="Only these stages now: corpus,vectors,intrinsic,hate_speech,coreference."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="How many stages at a time (0: in this process).", min=0)
    ] = 1,
    pack: Pack = None,
    bring: Annotated[
        Path | None,
        typer.Option(help="First take the finished coreference results of such a copy."),
    ] = None,
    plan: Annotated[bool, typer.Option(help="Say what would be done, then stop.")] = False,
    executor: Where = "local",
    address: Address = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="ray: stages at a time; default: one per CPU.")
    ] = None,
    json: Json = None,
) -> None:
    """Do intrinsic metrics predict behaviour? Train, change, measure and correlate embeddings.

    Every stage of every embedding is kept when it is finished: after Ctrl-C, or on another
    machine with a copy of the folder, `evenhand resume` does what is missing.

    Example: evenhand study kato --data DIR --out runs/kato --jobs 2
    """
    from evenhand.errors import SpecError, unknown
    from evenhand.study.folder import STAGES
    from evenhand.study.recipe import load_recipe
    from evenhand.study.running import Study

    chosen = tuple(s.strip() for s in stages.split(",")) if stages else ()
    for name in chosen:
        if name not in STAGES:
            raise SpecError(unknown("stage", name, STAGES, where="--stages"))
    made = load_recipe(recipe)
    folder = out or Path("runs") / f"study-{made.name}"
    make_executor(executor, address, workers)  # refuses what is none
    job = Study(
        made,
        folder,
        data=data,
        jobs=jobs,
        stages=chosen,
        ray_address=address,
        on_ray=executor == "ray",
        workers=workers,
    )
    if plan:
        _plan(job, json)
        return
    if pack or bring:
        from evenhand.study.travel import bring_back, slim_copy

        if pack:
            copied = slim_copy(made, folder, pack, data)
            output.console().print(f"{copied} embeddings copied to {pack}", markup=False)
            return
        assert bring is not None
        taken = bring_back(folder, bring)
        output.console(stderr=True).print(f"{taken} results taken from {bring}", markup=False)
    with interruptible(folder), output.RichProgress() as progress:
        job.progress, job.tell = progress, progress.note
        run = job.run()
    output.give(run, json)
    failures = run.facts["probes"]["study"]["summary"]["failures"] if json is None else []
    for line in failures:
        output.console(stderr=True).print(f"Failed: {line}", markup=False)
    if failures:
        raise typer.Exit(2)


def _plan(job: Study, json: str | None) -> None:
    rows = job.plan()
    if not output.write_json({"stages": rows}, json):
        output.print_table(rows, f"study {job.recipe.name}")
