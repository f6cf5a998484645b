"""`evenhand lexicon`: check a language pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.dressing import App
from evenhand.cli.options import Json

SHOWN = 3
"""This many texts with the same fault are shown; --json has all."""
MOST = 20.0
"""Seconds of the processor that the check of a pack may take; ours take one."""
app = App(help="Check packs of words in other languages.", no_args_is_help=True)


@app.command()
def check(
    pack: Annotated[str, typer.Argument(help="A language (es), or the folder of a pack.")],
    model: Annotated[
        str | None, typer.Option(help="Also say how well this model knows the language.")
    ] = None,
    json: Json = None,
) -> None:
    """Fill every template of a pack with every term, and name everything that is wrong.

    Exit 0 if nothing is wrong, 1 if something is. With --model, also say what the language costs
    that model in pieces and surprise, and whether it understands what it is told.
    """
    from evenhand.audit.fluency import fluency
    from evenhand.errors import SpecError
    from evenhand.strict import plain
    from evenhand.systems import Unbounded, alarmed
    from evenhand.words.packs.check import check_pack

    try:
        with alarmed(MOST):
            found = check_pack(pack)
    except Unbounded as error:
        raise SpecError(f"{pack}: one of its regular expressions does not end ({error}).") from None
    seen = None
    if model is not None:
        from evenhand.models.loading.resolver import resolve

        seen = fluency(resolve(model), pack)
    told: dict[str, Any] = {
        "language": found.language,
        "name": found.name,
        "texts": found.texts,
        "faults": [vars(fault) for fault in found.faults],
        **({"model": seen.as_dict()} if seen else {}),
    }
    if not output.write_json(plain(told), json):
        line = f"{found.name}: {found.texts:,} texts filled, {len(found.faults)} faults"
        output.console().print(line, markup=False)
        for fault in _few(found.faults):
            output.console().print(f"  {fault}", markup=False, highlight=False, soft_wrap=True)
        for key, value in (seen.as_dict() if seen else {}).items():
            if isinstance(value, float):
                output.console().print(f"  {key}: {value:.2f}", markup=False, highlight=False)
        for note in seen.notes() if seen else ():
            output.console().print(f"  {note}", markup=False, highlight=False, soft_wrap=True)
    if not found.good:
        raise typer.Exit(1)


def _few(faults: Sequence[Any]) -> Iterator[str]:
    """Every fault, but of those that say the same of a file only the first, and how many more."""
    alike: dict[tuple[str, str, str], list[Any]] = {}
    for fault in faults:
        alike.setdefault((fault.file, fault.kind, fault.says), []).append(fault)
    for (file, kind, says), found in alike.items():
        yield from map(str, found[:SHOWN])
        if len(found) > SHOWN:
            yield f"{file}: {kind}: and {len(found) - SHOWN} more: {says}"
