"""Command-line options from a settings class, so that a setting is named and explained once.

    class Settings(BaseModel):
        table: Path = Field(description="A table of scores.")
        tests: tuple[str, ...] = Field((), description="Which tests, by comma.")
        seed: int = Field(0, ge=0, description="Seed of every draw.")

    work = function(lambda **given: run(Settings(**given)), options(Settings, ("table",)))
    app.command("name")(work)                 # NAME TABLE [--tests A,B] [--seed N]

Field names become `--kebab-case`, descriptions become help, `ge` and `le` become limits, a `bool`
a flag, a `Literal` a choice. A tuple takes texts separated by commas, and may be given again.
With `json_schema_extra={"text": True}` a field is given as text, which its validator reads (2%).
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from typer.core import TyperGroup

from evenhand.cli.calling import runnable
from evenhand.cli.foreign import refuse
from evenhand.cli.options import placed

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

SIMPLE = (bool, int, float, str, Path)
SEVERAL = (tuple, list, set, frozenset, Sequence)


def options(
    settings: type[BaseModel], positional: Sequence[str] = (), *, given_only: bool = False
) -> list[inspect.Parameter]:
    """The parameters of a command that takes these settings; the positional ones come first.

    Args:
        positional: fields that are arguments instead of options, in their order.
        given_only: an option that is not given is None instead of its default, for a command
            whose settings class depends on another option.
    """
    order = [*positional, *(name for name in settings.model_fields if name not in positional)]
    return [
        _parameter(name, settings.model_fields[name], name in positional, given_only)
        for name in order
    ]


def option(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One more parameter, annotated as typer wants it."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def joined(*parts: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters of several settings classes; of those with one name the first is kept."""
    found: dict[str, inspect.Parameter] = {}
    for parameter in (p for part in parts for p in part):
        found.setdefault(parameter.name, parameter)
    return list(found.values())


def function(
    work: Callable[..., None], parameters: Sequence[inspect.Parameter], help: str = ""
) -> Callable[..., None]:
    """A function with these parameters that typer can register.

    `work` gets what was given or has a default; texts with commas are split.
    """
    several = {p.name for p in parameters if _kind(p.annotation) == list[str]}

    def command(**values: Any) -> None:
        given = {k: v for k, v in values.items() if v is not None}
        work(**{k: _texts(v) if k in several else v for k, v in given.items()})

    command.__doc__ = help or work.__doc__
    command.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _parameter(name: str, field: FieldInfo, argument: bool, given_only: bool) -> inspect.Parameter:
    kind = _kind(field.annotation)
    default: Any = inspect.Parameter.empty
    more = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    facts: dict[str, Any] = {"help": field.description, "metavar": more.get("metavar")}
    if kind == list[str] and not argument:
        facts["metavar"] = facts["metavar"] or "A,B"
    kind = str if more.get("text") else kind
    if kind in (int, float):
        facts |= {"min": _limit(field, "ge"), "max": _limit(field, "le")}
    flag = f"--{name.replace('_', '-')}"
    if name == "out" and not argument:
        facts["callback"] = lambda value: placed(value, flag)
    if kind is bool:
        flag = f"{flag}/--no-{flag[2:]}"
    if not field.is_required():
        default = field.get_default(call_default_factory=True)
        default = list(default) if isinstance(default, tuple | frozenset) else default
        if default is None or default == [] or given_only:
            facts["show_default"] = _shown(default)
            default, kind = None, kind | None
    made = typer.Argument(**facts) if argument else typer.Option(flag, **facts)
    return option(name, Annotated[kind, made], default)


def _kind(annotation: Any) -> Any:
    """What typer reads: a simple type, a choice, or a list of texts."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in SEVERAL:
        return list[Path] if inside and inside[0] is Path else list[str]
    if origin is Literal or annotation in SIMPLE:
        return annotation
    if origin in (Union, types.UnionType):
        kinds = list(dict.fromkeys(_kind(i) for i in inside if i is not type(None)))
        known = [k for k in kinds if k is not None]
        return known[0] if len(known) == 1 else Path if known[0] is Path else str
    return None if isinstance(annotation, type) else str


def _limit(field: FieldInfo, name: str) -> Any:
    return next((getattr(m, name) for m in field.metadata if hasattr(m, name)), None)


def _shown(default: Any) -> str | bool:
    """A default for help; False: nothing worth showing."""
    if default in (None, False, "", []):
        return False
    return ",".join(map(str, default)) if isinstance(default, list) else str(default)


def _texts(values: Sequence[str]) -> tuple[str, ...]:
    """The texts meant, whether with commas or one by one.

    >>> _texts(["a, b", "c"])
    ('a', 'b', 'c')
    """
    return tuple(t.strip() for value in values for t in value.split(",") if t.strip())


def no_entries() -> Mapping[str, str]:
    """None but those that are registered."""
    return {}


def lazy_group(
    entries: Callable[[], Mapping[str, str]] = no_entries,
    load: Callable[[str], Callable[..., None] | None] = lambda name: None,
    sections: Mapping[str, Sequence[str]] | None = None,
) -> type[TyperGroup]:
    """A group whose commands are imported when one is asked for, or its help.

        typer.Typer(cls=lazy_group(lambda: {"mitigate": "Fit a mitigation."}, load))

    Args:
        entries: names of the commands with their help in a sentence; an empty one is read from the
            command itself, which imports it.
        load: the function of a command (see `function`), or None when there is none.
        sections: names under a heading each, in the order of the help; what is in none comes last.
    """

    class Lazy(TyperGroup):
        def get_help(self, ctx: Any) -> str:
            return runnable(super().get_help(ctx), installing=False)

        def list_commands(self, ctx: Any) -> list[str]:
            return [*self.commands, *(n for n in entries() if n not in self.commands)]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            found = super().get_command(ctx, cmd_name)
            return found or self._made(cmd_name)

        def _made(self, name: str) -> Any:
            from evenhand.cli.dressing import App

            work = load(name)
            if work is None:
                return None
            alone = App(rich_markup_mode=self.rich_markup_mode, add_completion=False)
            alone.command(name)(work)
            return typer.main.get_command(alone)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            said = entries()
            hidden = {name for name, command in self.commands.items() if command.hidden}
            listed = [name for name in self.list_commands(ctx) if name not in hidden]
            named = {name for names in (sections or {}).values() for name in names}
            parts = {
                **(sections or {}),
                ("More" if sections else "Commands"): [
                    name for name in listed if name not in named
                ],
            }
            wide = max(map(len, listed))
            for title, names in parts.items():
                rows = [
                    (name.ljust(wide), said.get(name) or sentence(self.get_command(ctx, name).help))
                    for name in names
                    if name in listed
                ]
                if rows:
                    with formatter.section(title):
                        formatter.write_dl(rows)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0].startswith("-"):
                refuse(args, {o for p in self.get_params(ctx) for o in p.opts})
            return list(super().parse_args(ctx, args))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            found = self.get_command(ctx, args[0])
            if found is None:  # typer suggests names of this mapping
                self.commands = dict.fromkeys(self.list_commands(ctx), self)
            elif not isinstance(found, TyperGroup):
                refuse(args[1:], {o for p in found.get_params(ctx) for o in p.opts})
            return super().resolve_command(ctx, args)

    return Lazy


def sentence(text: str | None) -> str:
    r"""The first sentence of a command's help, whole.

    >>> sentence("Do this\nor that. And more.\n\nDetails.")
    'Do this or that.'
    """
    first = " ".join((text or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s", first)[0]
