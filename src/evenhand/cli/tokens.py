"""`evenhand tokens` and `evenhand context-accuracy`: where a model keeps a group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.from_settings import function, joined, option, options
from evenhand.cli.options import Device, Dtype, Json

SHOWN = 20


def command(name: str) -> Callable[..., None]:
    """The command of that name, with the settings of what it looks at."""
    from evenhand.mitigations.head.looking import ContextAccuracy, Look, Tokens
    from evenhand.models.loading.resolver import DEFAULT_MODEL

    kind: type[Look] = next(k for k in (Tokens, ContextAccuracy) if k.command == name)

    def look(model: str, **given: Any) -> None:
        _look(kind, model, **given)

    model = typer.Argument(help="A causal model (evenhand ls models).")
    out = typer.Option(help="Run folder with a report (list, plot).")
    more = [
        option("model", Annotated[str, model], DEFAULT_MODEL),
        option("out", Annotated[Path | None, out], None),
        option("dtype", Dtype, None),
        option("device", Device, None),
        option("json", Json, None),
    ]
    return function(look, joined(more, options(kind)), kind.__doc__ or "")


def _look(
    kind: Any,
    model: str,
    *,
    out: Path | None = None,
    dtype: str | None = None,
    device: str | None = None,
    json: str | None = None,
    **given: Any,
) -> None:
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.settings import filled

    asked = filled(kind, given, kind.command)
    asked.ready()
    seen = asked.look(resolve(model, options=LoadOptions(dtype=dtype, device=device)))
    result = {"model": model, **seen.as_dict()}
    if out is not None:
        result["report"] = str(seen.write(out).report)
    if output.write_json(result, json):
        return
    output.print_table(result[asked.rows][:SHOWN], f"{asked.command}: {asked.axis} on {model}")
    screen = output.console()
    for line in (seen.judgement.buys, *seen.judgement.sure):
        screen.print(line, markup=False)
    if out is not None:
        screen.print(f"Read it:   {result['report']}", markup=False)
