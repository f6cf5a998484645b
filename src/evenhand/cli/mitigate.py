"""`evenhand mitigate`: options of every family from its settings, one call, text out."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.from_settings import function, joined, option, options
from evenhand.cli.options import Chat, Device, Dtype, Json, System, place

MODEL = "Alias, folder, Hub id or word vectors (evenhand ls models)."
HELP = """Fit a mitigation, judge it on the same items before and after, and save it.

The folder can be given wherever a model can: evenhand audit DIR
"""


def command() -> Callable[..., None]:
    """The command, with the settings of all families there are, other packages' too."""
    from evenhand.mitigations.base import families

    known = families()
    told = [f"{', '.join(f.kinds)}: {', '.join(f.methods)}" for f in known]
    methods = (
        "; ".join(told) + ". The first of a kind is its default. Several of the first kind, "
        "separated by commas: the best is kept."
    )
    own = [
        option("model", Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)]),
        option("out", Annotated[Path, place("--out", help="Folder for the mitigation.")]),
        option("method", Annotated[str | None, typer.Option(help=methods)], None),
        option("dtype", Dtype, None),
        option("device", Device, None),
        option("chat", Chat, None),
        option("system", System, None),
        option("export", Annotated[Path | None, place("--export", help=EXPORT)], None),
        option("json", Json, None),
    ]
    parts = [options(family, given_only=True) for family in known]
    shared = [p for p in joined(own, *parts) if p.name not in {o.name for o in own}]
    for parameter in shared:
        _explain(parameter, {f.name: f.model_fields.get(parameter.name) for f in known})
    return function(mitigate, [*own, *shared], HELP)


EXPORT = "Also write it for use without evenhand: as plain weights, or vectors as text."


def _explain(parameter: inspect.Parameter, fields: dict[str, Any]) -> None:
    """Help that says whose setting it is, where not every family has it."""
    said = {name: field.description for name, field in fields.items() if field is not None}
    texts = list(dict.fromkeys(said.values()))
    if len(said) < len(fields) or len(texts) > 1:
        whose = [(", ".join(n for n in said if said[n] == text), text) for text in texts]
        parameter.annotation.__metadata__[0].help = " ".join(f"[{n}] {t}" for n, t in whose)


def mitigate(
    model: str,
    out: Path,
    *,
    method: str | None = None,
    dtype: str | None = None,
    device: str | None = None,
    chat: str | None = None,
    system: str | None = None,
    export: Path | None = None,
    json: str | None = None,
    **given: Any,
) -> None:
    """Options in, one call, text out."""
    from evenhand.mitigations.base import family_of, kind_if_known, settings_for
    from evenhand.mitigations.running import run
    from evenhand.models.protocol import with_options

    kind = kind_if_known(model)
    if device is not None and "device" in family_of(method, kind).model_fields:
        given["device"] = device
    settings = settings_for(method, kind, given)
    how = {"dtype": dtype, "device": device, "chat": chat, "system": system}
    loading = with_options(None, {name: value for name, value in how.items() if value is not None})
    screen = output.console(stderr=True)
    with output.notes(), output.RichProgress() as progress:
        done = run(
            model,
            settings,
            out,
            export=export,
            options=loading,
            note=lambda text: screen.print(f"  {text}", markup=False),
            progress=progress,
        )
    if not output.write_json(done.told, json):
        output.print_run(done.run)
        use = f"Use it:    evenhand audit {shlex.quote(str(out))}"
        output.console().print(use, markup=False, soft_wrap=True)
