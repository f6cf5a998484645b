"""The `evenhand` command. Thin: every command imports what it needs when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from evenhand import __version__, plugins
from evenhand.cli import (
    corpus,
    evidence,
    lexicon,
    look,
    measure,
    names,
    output,
    ratings,
    run,
    share,
    streams,
    study,
    train,
    words,
)
from evenhand.cli.dressing import App, Command
from evenhand.cli.from_settings import lazy_group
from evenhand.cli.probe_help import ProbeCommand
from evenhand.cli.results import task
from evenhand.errors import EvenhandError, bare

LAZY = {
    "mitigate": "Fit a mitigation, judge it on the same items before and after, and save it.",
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


GROUPS: dict[str, tuple[str | Callable[..., None] | tuple[str, typer.Typer], ...]] = {
    "Audit": (run.audit, run.probe, run.plan, run.resume),
    "Read": (look.show, look.report, share.view, share.export, share.push),
    "Decide": (look.gate, look.compare, evidence.bundle, evidence.verify),
    "Mitigate": ("mitigate", "erase"),
    "Measure": (("measure", measure.app), share.tasks),
    "Catalogue": (look.ls, look.fetch),
    "Research": (
        study.study,
        ("train", train.app),
        ("corpus", corpus.app),
        ("words", words.app),
        ("lexicon", lexicon.app),
        ("names", names.app),
        ("ratings", ratings.app),
        "tokens",
        "context-accuracy",
    ),
}
"""Commands by what they are for: functions, groups with their name, or names of lazy ones."""


def _called(entry: str | Callable[..., None] | tuple[str, typer.Typer]) -> str:
    name = entry if isinstance(entry, str) else entry[0] if isinstance(entry, tuple) else ""
    return name or str(getattr(entry, "__name__", "")).replace("_", "-")


def command_names() -> set[str]:
    """Return the names of all commands and groups."""
    return {_called(entry) for entries in GROUPS.values() for entry in entries}


app = App(
    name="evenhand",
    cls=lazy_group(
        lambda: LAZY, _lazy, {title: [*map(_called, held)] for title, held in GROUPS.items()}
    ),
    help=(
        "Discover, measure and mitigate social bias in language models and word embeddings.\n\n"
        "Start with: evenhand audit MODEL"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for entry in (entry for held in GROUPS.values() for entry in held):
    if isinstance(entry, tuple):
        app.add_typer(entry[1], name=entry[0])
    elif callable(entry):
        app.command(cls=ProbeCommand if entry is run.probe else Command)(entry)
app.command("check", hidden=True)(run.plan)  # as it was called before


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Discover, measure and mitigate social bias in language models and word embeddings."""


def main() -> None:
    """Entry point: a user's mistake is one paragraph and exit 2, a bug a traceback and exit 70."""
    streams.settle()
    output.free_stdout(False)
    try:
        app()
    except EvenhandError as error:
        from evenhand.cli.calling import runnable
        from evenhand.cli.output import clean

        # Where there is a run to resume, its command has put the folder in (`cli.run`).
        said = str(error).replace("evenhand resume RUN --", "the same command once more, with --")
        said = said.replace("evenhand resume RUN", "the same command once more")
        sys.stderr.write(f"evenhand: {bare(clean(runnable(said)))}\n")
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise_bug()
        from evenhand.cli.output import clean

        why = f"cannot be used ({error.strerror or error})"
        sys.stderr.write(f"evenhand: {bare(clean(str(error.filename)[:200]))}: {why}.\n")
        sys.exit(2)
    except MemoryError as error:
        sys.stderr.write(
            f"evenhand: not enough memory ({error or 'no more was available'}). Finished work is "
            f"kept. Ask for less (fewer resamples or pairs), or use a machine with more.\n"
        )
        sys.exit(2)
    except Exception:
        raise_bug()


def raise_bug() -> NoReturn:
    """Say what nobody foresaw, with the lines it comes from."""
    import traceback

    traceback.print_exc()
    sys.stderr.write("evenhand: this is a bug in evenhand; please report the lines above.\n")
    sys.exit(70)
