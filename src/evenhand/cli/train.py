"""`evenhand train NAME`: small models on open data, ready to be asked.

Options come from the settings of each training, which are imported when one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from evenhand import plugins
from evenhand.cli import output
from evenhand.cli.from_settings import function, lazy_group, option, options
from evenhand.cli.options import Json
from evenhand.cli.results import show, spelled


def _named() -> dict[str, str]:
    """Every training; its help in a line is read from itself."""
    return dict.fromkeys(plugins.places(plugins.TRAININGS), "")


def _command(name: str) -> Callable[..., None] | None:
    """The command of one training."""
    from evenhand.settings import filled

    if name not in _named():
        return None
    kind = plugins.load(plugins.TRAININGS, name, what="training")
    screen = output.console(stderr=True)

    def work(json: str | None = None, **given: Any) -> None:
        asked = filled(kind, given, f"train {name}", spelled)
        with output.RichProgress() as progress:
            done = asked.train_now(lambda text: screen.print(f"  {text}", markup=False), progress)
        if not output.write_json(done.card, json):
            for part in done.shown:
                show(part)

    known = [*options(kind, kind.positional), option("json", Json, None)]
    needed = [p for p in known if p.default is p.empty]
    return function(work, [*needed, *(p for p in known if p not in needed)], kind.__doc__)


app = typer.Typer(
    cls=lazy_group(_named, _command),
    help="Train small models on open data.",
    no_args_is_help=True,
)


@app.callback()
def train() -> None:
    """Train small models on open data."""
