"""Options that many commands have, checked before any work is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output

STDOUT = 1
"""The descriptor of standard output."""


def _writable(target: str | None) -> str | None:
    """Refuse a file that cannot be written now: hours later would be a bad time to learn it."""
    if target in (None, "-"):
        return target
    from evenhand.errors import SpecError
    from evenhand.writing import destination

    if not target or Path(target).is_dir():
        raise SpecError(f"--json {target!r}: expected a file, or - for standard output.")
    path = destination(Path(target), "--json")
    if path is None:
        return str(placed(target, "--json"))
    if not path.parent.is_dir():
        raise SpecError(f"--json {target!r}: there is no folder {str(path.parent)!r}.")
    if not os.access(path.parent, os.W_OK):
        raise SpecError(f"--json {target!r}: the folder {str(path.parent)!r} is read-only.")
    placed(target, "--json")
    return target


def placed(target: Any, flag: str = "--out") -> Any:
    """Refuse a file or folder that cannot be written now, whatever the command."""
    if target not in (None, "-"):
        from evenhand.writing import descriptor_of, require_place

        require_place(Path(target), flag)
        if descriptor_of(Path(target)) == STDOUT:
            output.free_stdout()
    return target


def place(*names: str, help: str, **more: Any) -> Any:
    """An option for something to write, looked at before any work is done."""
    flag = names[0] if names else "--out"
    return typer.Option(*names, help=help, callback=lambda v: placed(v, flag), **more)


Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="Write one JSON object to FILE, or to standard output with -.",
        callback=_writable,
    ),
]
RunOut = Annotated[
    Path | None,
    place("--out", metavar="DIR", help="Write a run folder with sentences and a report."),
]
Html = Annotated[Path | None, place("--html", metavar="FILE", help="Write the report to FILE.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16, float16.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1.")]
Chat = Annotated[
    str | None,
    typer.Option(help="Ask through the chat template; auto: if there is one."),
]
System = Annotated[
    str | None, typer.Option(metavar="TEXT|@FILE", help="System prompt of every conversation.")
]
Way = Annotated[
    str | None,
    typer.Option(help="How a local model says which option it picks."),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**53, help="Seed of every draw: same seed, same bytes.")
]
