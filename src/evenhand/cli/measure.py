"""`evenhand measure NAME`: numbers with intervals from scores or vectors that already exist.

Every probe's readers, and those of other packages, are commands here; their settings are the
options. Nothing is imported before a command or its help is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from evenhand.cli import output
from evenhand.cli.from_settings import function, lazy_group, option, options
from evenhand.cli.options import Json

if TYPE_CHECKING:
    from evenhand.probes.reading import Shown


def _named() -> dict[str, str]:
    """Every measure with its help in a line."""
    from evenhand.probes.reading import readers

    with output.notes():
        return {name: reader.help.partition("\n")[0] for name, reader in readers().items()}


def _command(name: str) -> Callable[..., None] | None:
    """The command of one measure."""
    from evenhand.probes.reading import reader_of
    from evenhand.settings import filled

    with output.notes():
        reader = reader_of(name)
    if reader is None:
        return None

    def work(json: str | None = None, **given: Any) -> None:
        with output.notes():
            result = filled(reader, given, f"measure {name}", spelled).read()
        if output.write_json(result.as_dict(), json):
            if json != "-":
                typer.echo(f"Written: {json}", err=True)
            return
        for part in result.shown():
            show(part)

    parameters = [*options(reader, reader.positional), option("json", Json, None)]
    return function(work, parameters, reader.help)


def spelled(setting: str) -> str:
    """A setting as it stands on the command line."""
    return f"--{setting.replace('_', '-')}"


def show(part: Shown) -> None:
    """One table, or one note, for people."""
    from rich.table import Table
    from rich.text import Text

    screen = output.console()
    if not part.head:
        screen.print(Text(output.clean(part.title)), soft_wrap=True)
        return
    table = Table(
        title=Text(output.clean(part.title)), title_justify="left", box=None, pad_edge=False
    )
    for k, name in enumerate(part.head):
        numbers = k > 0 and all(row[k][:1] in "+-[<0123456789" for row in part.rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in part.rows:
        table.add_row(*(Text(output.clean(cell)) for cell in row))
    screen.print(table)


app = typer.Typer(
    cls=lazy_group(_named, _command),
    help="Numbers with intervals from scores or vectors that already exist.",
    no_args_is_help=True,
)


@app.callback()
def measure() -> None:
    """Numbers with intervals from scores or vectors that already exist."""
