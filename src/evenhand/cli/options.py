"""Options that many commands have, checked before any work is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def _writable(target: str | None) -> str | None:
    """Refuse a file that cannot be written now: hours later would be a bad time to learn it."""
    if target in (None, "-"):
        return target
    from evenhand.errors import SpecError

    path = Path(target or "")
    if not target or path.is_dir():
        raise SpecError(f"--json {target!r}: expected a file, or - for standard output.")
    if not path.parent.is_dir():
        raise SpecError(f"--json {target!r}: there is no folder {str(path.parent)!r}.")
    if not os.access(path.parent, os.W_OK):
        raise SpecError(f"--json {target!r}: the folder {str(path.parent)!r} is read-only.")
    return target


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
    typer.Option("--out", metavar="DIR", help="Write a run folder with sentences and a report."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the report to FILE.")
]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16, float16.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1.")]
Chat = Annotated[
    str | None,
    typer.Option(help="auto | on | off: ask through the chat template; auto: if any."),
]
System = Annotated[
    str | None, typer.Option(metavar="TEXT|@FILE", help="System prompt of every conversation.")
]
Way = Annotated[
    str | None,
    typer.Option(help="continuation | letters | answers: how a local model says which option."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every draw: same seed, same bytes.")]
