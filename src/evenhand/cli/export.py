"""The command that hands findings to other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import place

NAMES = (
    "csv | parquet | lm-eval | eee | model-index | model-card | cyclonedx | junit | sarif | "
    "summary | figures"
)
Target = Annotated[
    str | None,
    place("--out", help="File or folder, or - for standard output; default: RUN/exports."),
]


def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    form: Annotated[str, typer.Option("--format", help=NAMES)] = "csv",
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
