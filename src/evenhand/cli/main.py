"""The `evenhand` command. Thin: every command imports what it needs when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from evenhand import __version__, plugins
from evenhand.cli import (
    corpus,
    evidence,
    export,
    look,
    measure,
    names,
    ratings,
    run,
    study,
    train,
    view,
    words,
)
from evenhand.cli.from_settings import lazy_group
from evenhand.cli.probe_help import ProbeCommand
from evenhand.cli.results import task
from evenhand.errors import EvenhandError, bare

LAZY = {
    "mitigate": "Fit a mitigation, judge it on the same items before and after, save it.",
    "erase": "Erase a label from features (INLP or LEACE) and judge it.",
    "tokens": "List the tokens nearest to a group's words.",
    "context-accuracy": "How well a linear classifier reads a group from hidden states.",
}
"""Commands whose options come from settings classes, which are imported when one is asked for."""


def _lazy(name: str) -> Callable[..., None] | None:
    from evenhand.cli import mitigate

    return (
        mitigate.command()
        if name == "mitigate"
        else task(plugins.places(plugins.TASKS), name, name)
    )


app = typer.Typer(
    name="evenhand",
    cls=lazy_group(lambda: LAZY, _lazy),
    help=(
        "Discover, measure and mitigate social bias in language models and word embeddings.\n\n"
        "Start with: evenhand audit"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

COMMANDS: tuple[Callable[..., None], ...] = (
    run.audit,
    run.probe,
    run.check,
    run.plan,
    run.resume,
    look.show,
    look.compare,
    look.gate,
    look.report,
    look.ls,
    look.fetch,
    export.export,
    evidence.bundle,
    evidence.verify,
    view.view,
    study.study,
)
for command in COMMANDS:
    app.command(cls=ProbeCommand if command is run.probe else None)(command)
app.add_typer(measure.app, name="measure")
app.add_typer(train.app, name="train")
app.add_typer(names.app, name="names")
app.add_typer(ratings.app, name="ratings")
app.add_typer(corpus.app, name="corpus")
app.add_typer(words.app, name="words")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Discover, measure and mitigate social bias in language models and word embeddings."""


def main() -> None:
    """Entry point: a user's mistake is one paragraph and exit 2, a bug a traceback and exit 70."""
    try:
        app()
    except EvenhandError as error:
        from evenhand.cli.output import clean

        # Where there is a run to resume, its command has put the folder in (`cli.run`).
        said = str(error).replace("evenhand resume RUN", "the same command once more")
        sys.stderr.write(f"evenhand: {bare(clean(said))}\n")
        sys.exit(2)
    except MemoryError as error:
        sys.stderr.write(
            f"evenhand: not enough memory ({error or 'no more could be had'}). Finished work is "
            f"kept. Ask for less (fewer resamples or pairs), or use a machine with more.\n"
        )
        sys.exit(2)
    except Exception:
        import traceback

        traceback.print_exc()
        sys.stderr.write("evenhand: this is a bug in evenhand; please report the lines above.\n")
        sys.exit(70)
