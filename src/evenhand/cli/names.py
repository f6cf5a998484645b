"""`evenhand names`: choose groups of names from tables, and check what else tells them apart."""

from __future__ import annotations

import typer

from evenhand.cli.results import commands

TASKS = {
    "select": "evenhand.probes.name_study:SelectTask",
    "lint": "evenhand.probes.name_study:LintTask",
    "study": "evenhand.probes.name_study:StudyTask",
}

app = typer.Typer(
    cls=commands(TASKS, "names"),
    help="Choose and check groups of first names.",
    no_args_is_help=True,
)
