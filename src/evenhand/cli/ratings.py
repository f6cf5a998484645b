"""`evenhand ratings`: sheets for people to rate texts, and what their ratings say."""

from __future__ import annotations

import typer

from evenhand.cli.results import commands

TASKS = {
    "sheets": "evenhand.probes.generation.ratings:SheetsTask",
    "score": "evenhand.probes.generation.ratings:ScoreTask",
}

app = typer.Typer(
    cls=commands(TASKS, "ratings"),
    help="Human evaluation: blinded sheets out, ratings in.",
    no_args_is_help=True,
)
