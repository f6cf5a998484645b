"""What every command has, put on when it is registered: --quiet, completion, words for values.

    app = App(help="...")            # a typer.Typer
    @app.command()
    def show(run: Path, limit: int = 10) -> None: ...      # show RUN [--limit N] [--quiet]

A value is named by what it is (FILE, DIR, N), not by its Python type. Shells offer suites, models,
probes, languages and the words of a choice; where nothing is offered they complete file names.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from evenhand.cli import output
from evenhand.cli.calling import runnable
from evenhand.cli.from_settings import option


def _suites() -> Iterable[str]:
    from evenhand.audit.suites import suite_names

    return suite_names()


def _models() -> Iterable[str]:
    from evenhand.models.loading.fetch import PACKAGES

    return [*PACKAGES]


def _probes() -> Iterable[str]:
    from evenhand.probes.registry import probe_names

    return probe_names()


def _languages() -> Iterable[str]:
    from evenhand.words.packs import packs

    return [pack.language for pack in packs()]


OFFERED: dict[str, Callable[[], Iterable[str]]] = {
    "suite": _suites,
    "model": _models,
    "probe": _probes,
    "language": _languages,
}
"""By parameter; `name` of the command `probe` is a probe."""
CHOICE = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")


def offered(parameter: inspect.Parameter, metavar: str | None, command: str) -> Any:
    """The function that typer asks for completions; None where there is nothing to offer."""
    if metavar and CHOICE.fullmatch(metavar):
        words = metavar.split("|")
        return lambda: words
    named = "probe" if (command, parameter.name) == ("probe", "name") else parameter.name
    known = OFFERED.get(named)
    return None if known is None else lambda: list(known())


BY_TYPE = {Path: "PATH", int: "N", float: "NUMBER", str: "TEXT"}
BY_NAME = {
    "address": "HOST:PORT",
    "allow": "N",
    "axis": "AXIS",
    "base_url": "URL",
    "baseline": "RUN",
    "budget": "TIME",
    "chat": "auto|on|off",
    "data": "PATH",
    "device": "DEVICE",
    "devices": "DEVICES",
    "dtype": "TYPE",
    "executor": "local|ray",
    "export": "PATH",
    "form": "FORMAT",
    "html": "FILE",
    "json": "FILE|-",
    "junit": "FILE",
    "kind": "KIND",
    "load": "whole|8bit|4bit",
    "margin": "[ID=]NUMBER",
    "max_cost": "MONEY",
    "method": "METHOD",
    "model": "MODEL",
    "named": "NAME",
    "only": "ID",
    "out": "DIR",
    "policy": "FILE",
    "price_in": "MONEY",
    "price_out": "MONEY",
    "require": "undetected|within-margin",
    "sarif": "FILE",
    "seed": "N",
    "settings": "NAME=VALUE",
    "store": "URL",
    "suite": "SUITE",
    "summary": "FILE",
    "undecided": "fail|pass",
    "way": "continuation|letters|answers",
    "write": "FILE",
}
"""What a value is called whose option stands in several commands; a command's own word goes
before it."""
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print the result and errors only: no progress, no notes."),
]


class Command(TyperCommand):
    """A command whose help names each value once: FILE, not also its Python type.

    Commands in it are as this user can type them.
    """

    def get_help(self, ctx: Any) -> str:
        return runnable(super().get_help(ctx), installing=False)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        usual = formatter.write_dl

        def plainly(rows: Any, *more: Any, **how: Any) -> None:
            bare = ((re.sub(r"(?<=\S) <[^<>]*>(\.\.\.)?$", "", name), text) for name, text in rows)
            usual(list(bare), *more, **how)

        formatter.write_dl = plainly
        try:
            super().format_options(ctx, formatter)
        finally:
            formatter.write_dl = usual


class App(typer.Typer):
    """A typer application whose commands are dressed."""

    def command(self, name: str | None = None, **facts: Any) -> Callable[[Any], Any]:
        register = super().command(name, **{**facts, "cls": facts.get("cls") or Command})

        def put(work: Callable[..., None]) -> Callable[..., None]:
            register(dressed(work))
            return work

        return put


def dressed(work: Callable[..., None]) -> Callable[..., None]:
    """The same command with named values and one option more."""
    hints = get_type_hints(work, include_extras=True)
    known = inspect.signature(work).parameters.values()
    made = [
        p.replace(kind=p.KEYWORD_ONLY, annotation=hints.get(p.name, p.annotation)) for p in known
    ]
    for parameter in made:
        name_value(parameter, work.__name__)

    @functools.wraps(work)
    def command(quiet: bool = False, **given: Any) -> None:
        with output.quietly(quiet):
            work(**given)

    parameters = [*made, option("quiet", Quiet, False)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def name_value(parameter: inspect.Parameter, command: str = "") -> None:
    """Give the value a name and what a shell offers for it, where the command has given none."""
    for info in getattr(parameter.annotation, "__metadata__", ()):
        if getattr(info, "metavar", "") is None:
            argument = type(info).__name__ == "ArgumentInfo"
            word = parameter.name.upper().replace("_", "-") if argument else _word(parameter)
            info.metavar = word
        if getattr(info, "autocompletion", "") is None:
            info.autocompletion = offered(parameter, info.metavar, command)


def _word(parameter: inspect.Parameter) -> str | None:
    kinds = list(_kinds(parameter.annotation))
    if bool in kinds or any(get_origin(k) is Literal for k in kinds):
        return None
    known = BY_NAME.get(parameter.name)
    return known or next((BY_TYPE[k] for k in kinds if k in BY_TYPE), None)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The simple types that a value can have."""
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        yield annotation
    elif origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    else:
        for part in get_args(annotation):
            yield from _kinds(part)
