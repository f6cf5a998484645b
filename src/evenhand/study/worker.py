"""One stage of one cell in a process of its own: python -m evenhand.study.worker DIR CELL STAGE."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from evenhand.errors import EvenhandError
from evenhand.study.folder import StudyFolder
from evenhand.study.grid import cells
from evenhand.study.inputs import require_unchanged
from evenhand.study.recipe import parse_recipe
from evenhand.study.stages import STAGES, Bench


def work(folder: str, cell: str, stage: str) -> None:
    """Do the stage and keep its numbers; nothing happens when they are there already."""
    place = StudyFolder(Path(folder))
    job = json.loads((place.root / "run.json").read_text(encoding="utf-8"))["work"]
    recipe = parse_recipe(job["recipe"], f"{folder}/run.json")
    if place.done(cell or "corpus", stage, recipe.settings_of(stage)):
        return
    data = Path(job["data"]) if job.get("data") else None
    chosen = {c.name: c for c in cells(recipe)}.get(cell)
    require_unchanged(place.root, recipe, data, stage)
    started = time.monotonic()
    values = STAGES[stage](Bench(recipe, place, data, chosen))
    values["settings"] = recipe.settings_of(stage)
    values["seconds"] = round(time.monotonic() - started, 2)
    place.write(cell or "corpus", stage, values)


def main() -> None:
    """The last line of a failed stage says why; it becomes the study's message."""
    try:
        work(*sys.argv[1:4])
    except EvenhandError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
