"""Commands that take a run elsewhere: a browser, other tools' formats, lm-eval, the Hub."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.calling import runnable
from evenhand.cli.options import place


def view(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or one run.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 picks a free one.")] = 7860,
    browser: Annotated[bool, typer.Option(help="Open a web browser.")] = True,
) -> None:
    """Explore runs in a web browser: findings, items, comparisons, live progress.

    Serves this machine only (127.0.0.1), reads only, and sends nothing anywhere.
    """
    from evenhand.errors import RunError
    from evenhand.viewer import Server

    if not folder.is_dir():
        raise RunError(
            f"{folder}: no such folder. Give a folder of runs, or make a run with: evenhand audit"
        )
    server = Server(folder, port, runnable)
    address = server.address
    if (folder / "run.json").is_file():
        address += f"run/{folder.resolve().name}"
    output.console().print(f"Viewer:    {address}   (stop with Ctrl-C)", markup=False)
    if browser:
        webbrowser.open(address)
    server.run()


FORMATS = (
    "csv | parquet | lm-eval | eee | model-index | model-card | cyclonedx | junit | sarif | "
    "summary | figures"
)
Target = Annotated[
    str | None,
    place("--out", help="File or folder, or - for standard output; default: RUN/exports."),
]


def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    form: Annotated[str, typer.Option("--format", help=FORMATS)] = "csv",
    out: Target = None,
) -> None:
    """Write a run's findings in another tool's format. Needs the folder only, no model."""
    from evenhand.errors import SpecError
    from evenhand.exports import export as make
    from evenhand.exports import write
    from evenhand.opening import understood
    from evenhand.runner.files import output_errors
    from evenhand.runs.record import Run

    opened = Run.open(run)
    with understood(run):
        files = make(opened, form)
    if out == "-":
        if len(files) != 1:
            raise SpecError(
                f"export --format {form}: makes {len(files)} files, which do not fit on standard "
                f"output. Give a folder with: --out DIR"
            )
        sys.stdout.buffer.write(next(iter(files.values())))
        return
    target = Path(out) if out else opened.folder / "exports"
    with output_errors(target):
        written = write(files, target)
    for path in written:
        output.console().print(f"Wrote      {path}", markup=False, soft_wrap=True)


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
