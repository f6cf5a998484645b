"""The command that opens the viewer."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.calling import runnable


def view(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or one run.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 picks a free one.")] = 7860,
    browser: Annotated[bool, typer.Option(help="Open a web browser.")] = True,
) -> None:
    """Explore runs in a web browser: findings, items, comparisons, live progress.

    Serves this machine only (127.0.0.1), reads only, and sends nothing anywhere.
    """
    from evenhand.errors import RunError
    from evenhand.viewer import Server

    if not folder.is_dir():
        raise RunError(
            f"{folder}: no such folder. Give a folder of runs, or make a run with: evenhand audit"
        )
    server = Server(folder, port, runnable)
    address = server.address
    if (folder / "run.json").is_file():
        address += f"run/{folder.resolve().name}"
    output.console().print(f"Viewer:    {address}   (stop with Ctrl-C)", markup=False)
    if browser:
        webbrowser.open(address)
    server.run()
