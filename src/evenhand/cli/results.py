"""Commands made of tasks: options in, one call, a result out as JSON or tables."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenhand.cli import output
from evenhand.cli.calling import runnable
from evenhand.cli.from_settings import function, lazy_group, option, options
from evenhand.cli.options import Html, Json, RunOut
from evenhand.opening import understood

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from evenhand.probes.reading import Result, Shown, Task


def command(task: type[Task], what: str) -> Callable[..., None]:
    """The command of a task; `what` it is called in messages."""
    from evenhand.probes.reading import Reader
    from evenhand.settings import filled

    reads = issubclass(task, Reader)

    def work(json: str | None = None, **given: Any) -> None:
        out, html = (given.pop(name, None) if reads else None for name in ("out", "html"))
        with output.notes():
            chosen = filled(task, given, what, spelled)
            with understood(what):
                result = chosen.work(say)
            if out or html:
                _as_run(result, out, html)
        if not output.write_json(result.as_dict(), json):
            for part in result.shown():
                show(part)
        elif json != "-":
            typer.echo(f"Written: {json}", err=True)

    parameters = [*options(task, task.positional), option("json", Json, None)]
    if reads:
        parameters += [option("out", RunOut, None), option("html", Html, None)]
    return function(work, parameters, task.help)


def _as_run(result: Result, out: Path | None, html: Path | None) -> None:
    """The result as a run folder, or as a page alone."""
    from tempfile import TemporaryDirectory

    from evenhand.measured import as_run

    if out:
        run = as_run(result, out, html)
        typer.echo(f"Report: {run.report}", err=True)
    else:
        with TemporaryDirectory() as folder:
            as_run(result, folder, html)
    if html:
        typer.echo(f"Page: {html}", err=True)


def commands(places: Mapping[str, str], group: str) -> type[TyperGroup]:
    """The group of tasks at "module:class"; each is imported when it is asked for."""
    return lazy_group(
        lambda: dict.fromkeys(places, ""), lambda name: task(places, name, f"{group} {name}")
    )


def task(places: Mapping[str, str], name: str, what: str) -> Callable[..., None] | None:
    """The command of a task at "module:class"; None when there is no such name."""
    if name not in places:
        return None
    module, _, attribute = places[name].partition(":")
    return command(getattr(importlib.import_module(module), attribute), what)


def spelled(setting: str) -> str:
    """A setting as it stands on the command line."""
    return f"--{setting.replace('_', '-')}"


def say(line: str) -> None:
    """What a long work says on its way."""
    output.console(stderr=True).print(f"  {line}", markup=False)


def show(part: Shown) -> None:
    """One table, or one note, for people."""
    from rich.table import Table
    from rich.text import Text

    screen = output.console()
    title = Text(output.clean(runnable(part.title)))
    if not part.head:
        screen.print(title, soft_wrap=True)
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for k, name in enumerate(part.head):
        numbers = k > 0 and all(row[k][:1] in "+-[<0123456789" for row in part.rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in part.rows:
        table.add_row(*(Text(output.clean(cell)) for cell in row))
    screen.print(table)
