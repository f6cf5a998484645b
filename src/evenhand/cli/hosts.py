"""Commands for other programs: tasks for lm-eval, results for the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output


def tasks(
    folder: Annotated[Path, typer.Argument(help="Where to write; for --include_path of lm_eval.")],
    suite: Annotated[str, typer.Option(help="A suite or TOML file.")] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
) -> None:
    """Write a suite's probes as tasks of lm-eval (lm-evaluation-harness).

    Run them with lm_eval --include_path FOLDER --log_samples --output_path OUT, and measure its
    samples with evenhand measure log. Inspect has the probes as tasks already: evenhand/NAME.
    """
    from evenhand.integrations.lm_eval.folder import write_tasks

    written = write_tasks(folder, suite, seed)
    screen = output.console()
    for name, documents in written.tasks.items():
        screen.print(f"{name}  {documents:,} documents", markup=False)
    for label, why in written.left_out.items():
        screen.print(f"left out: {label}: {output.clean(why)}", markup=False, soft_wrap=True)
    screen.print(
        f"Run them with: lm_eval --model hf --model_args pretrained=MODEL --include_path {folder} "
        f"--tasks {written.group} --log_samples --output_path OUT",
        markup=False,
        soft_wrap=True,
    )


def push(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    to: Annotated[str, typer.Option(help="OWNER/NAME of a model repository of the Hub.")],
    dry_run: Annotated[
        Path | None, typer.Option(help="Write the files to this folder and upload nothing.")
    ] = None,
    card: Annotated[
        Path | None, typer.Option(help="Merge into this card instead of the repository's.")
    ] = None,
    pr: Annotated[
        bool, typer.Option("--pr", help="Open a pull request instead of committing.")
    ] = False,
) -> None:
    """Upload a run's results to a model repository: card, evaluation results, findings.

    An existing card keeps everything that is not evenhand's. --dry-run needs no network.
    """
    from evenhand.integrations.hub import push as upload
    from evenhand.opening import read_text, understood
    from evenhand.runner.files import output_errors
    from evenhand.runs.record import Run

    existing = read_text(card, "a model card") if card else None
    with understood(run), output_errors(dry_run or run):
        done = upload(Run.open(run), to, folder=dry_run, existing=existing, pr=pr)
    screen = output.console()
    doing = "Would upload" if dry_run else "Uploaded"
    for name, raw in done.files.items():
        screen.print(f"{doing}  {name}  {len(raw):,} bytes", markup=False)
    where = f"to {to}; written below {dry_run}" if dry_run else f"to {to}: {done.url}"
    screen.print(f"{doing}  {where}", markup=False, soft_wrap=True)
