"""`evenhand measure NAME`: numbers with intervals from scores or vectors that already exist.

Every probe's readers, and those of other packages, are commands here; their settings are the
options. Nothing is imported before a command or its help is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from evenhand.cli import output
from evenhand.cli.from_settings import lazy_group
from evenhand.cli.results import command


def _named() -> dict[str, str]:
    """Every measure with its help in a line."""
    from evenhand.probes.reading import readers

    with output.notes():
        return {name: reader.help.partition("\n")[0] for name, reader in readers().items()}


def _command(name: str) -> Callable[..., None] | None:
    from evenhand.probes.reading import reader_of

    with output.notes():
        reader = reader_of(name)
    return None if reader is None else command(reader, f"measure {name}")


app = typer.Typer(
    cls=lazy_group(_named, _command),
    help="Numbers with intervals from scores or vectors that already exist.",
    no_args_is_help=True,
)


@app.callback()
def measure() -> None:
    """Numbers with intervals from scores or vectors that already exist."""
