"""Whether a folder has room for a run: free, left behind by a run of ours, or somebody's.

Scores are worth hours and are named by their questions, so what a run left behind is used again
and never written over by mistake: a run is resumed where its scores are, or is refused with both
places named.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from evenhand.errors import EvenhandError, RunError
from evenhand.runner.files import disk_errors
from evenhand.runner.places import settled
from evenhand.runner.store import ShardStore
from evenhand.runs.facts import NAME
from evenhand.writing import require_place

HIDDEN = {"Thumbs.db", "desktop.ini"}
"""What systems put into folders without a dot in front."""
SCORES = {"calls", "scores", "requests"}
OURS = SCORES | {"probes", "exports", "findings.json", "findings.parquet", "report.html"}


def default_folder(model: str, suite: str) -> Path:
    """runs/<time>-<model>-<suite>"""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    last = (re.split(r"[/\\]", name.rstrip("/\\"))[-1] for name in (model, suite))
    names = (re.sub(r"[^\w.-]+", "-", name) for name in last)
    return Path("runs") / "-".join((stamp, *names))


def claimed(folder: Path) -> Path:
    """A new folder of that name, or with a number behind it when somebody was faster.

    Making it is what claims it, so two runs of one second never get the same.
    """
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            found = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
            try:
                found.mkdir()
            except FileExistsError:
                continue
            return found
    raise AssertionError  # counting does not end


def require_room(folder: Path) -> None:
    """Refuse a folder without run.json that holds anything but what a run of ours leaves.

    Hidden files say nothing about a folder. Scores without their run.json (it was damaged and
    moved away) are welcome.
    """
    seen = {p.name for p in folder.iterdir()} - HIDDEN
    seen = {name for name in seen if not name.startswith((".", NAME))}
    if seen and not (seen & SCORES and seen <= OURS):
        raise RunError(
            f"{folder}: the folder is not empty and holds no run (it holds "
            f"{min(seen - OURS or seen)!r}). Choose another with: --out DIR (out=DIR)"
        )


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written or made, before a model is loaded for it."""
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "read-only or forbidden" if there.is_dir() else "a file"
        raise RunError(
            f"{folder}: cannot be written ({str(there)!r} is {why}). Choose another folder."
        )
    require_place(folder)


def place_of(store: str, folder: Path) -> str:
    """A run's own place below a store."""
    return f"{store}/{folder.resolve().name}/scores"


def kept_at(folder: Path, facts: Mapping[str, Any]) -> str | None:
    """Where a run keeps its scores when that is not its folder."""
    store = facts["work"].get("store")
    return facts.get("scores") or (place_of(settled(store), folder) if store else None)


def elsewhere(folder: Path, facts: Mapping[str, Any], store: str | None) -> str:
    """The refusal of a run that keeps its scores in another place; empty when it is the same."""
    theirs = facts["work"].get("store")
    if (settled(theirs) if theirs else None) == store:
        return ""
    there = kept_at(folder, facts) or str(folder / "scores")
    here = place_of(store, folder) if store else str(folder / "scores")
    option = f"with --store {shlex.quote(theirs)}" if theirs else "without --store"
    return (
        f"{folder}: holds a run that keeps its scores at {there!r}, not at {here!r}. Resume it "
        f"there with: evenhand resume {shlex.quote(str(folder))}   (or the same command {option}); "
        f"for a run of its own choose another folder with: --out DIR (out=DIR)"
    )


def nothing_lost(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Whether the run failed before any score, as by a mistake in its settings.

    Questions are written before their scores, so where a store cannot be asked, a run without
    questions has none.
    """
    if facts["status"] != "failed" or any(folder.glob("scores/*.parquet")):
        return False
    if not any(folder.glob("requests/*.parquet")):
        return True
    place = kept_at(folder, facts)
    try:
        return place is None or ShardStore(place).empty
    except EvenhandError:
        return False
