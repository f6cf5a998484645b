"""Several runs of one suite, finding by finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.errors import RunError
from evenhand.record import Run


def side_by_side(runs: Sequence[Run]) -> dict[str, Any]:
    """The value and interval of each finding in every run.

    Raises:
        RunError: fewer than two runs, or runs that did not ask the same.
    """
    if len(runs) < 2:
        raise RunError("compare: give at least two run folders.")
    first = runs[0].facts["work"]
    for run in runs[1:]:
        other = run.facts["work"]
        for what in ("suite", "seed"):
            if other[what] != first[what]:
                raise RunError(
                    f"compare: {run.folder} and {runs[0].folder} differ in their {what}, so "
                    f"their findings are not about the same items. Run both with the same suite "
                    f"and seed."
                )
    names = _names(runs)
    known = [{f.id: f for f in run.findings} for run in runs]
    ids = list(dict.fromkeys(i for found in known for i in found))
    rows = []
    for place in ids:
        row: dict[str, Any] = {"finding": place}
        for name, found in zip(names, known):
            finding = found.get(place)
            row[name] = finding.value if finding else None
            row[f"{name} interval"] = f"{finding.low:.3f} to {finding.high:.3f}" if finding else "-"
        rows.append(row)
    return {"runs": [str(r.folder) for r in runs], "names": names, "findings": rows}


def _names(runs: Sequence[Run]) -> list[str]:
    """Model names, told apart by folder when they are equal."""
    models = [str(r.facts["work"]["model"]) for r in runs]
    return [m if models.count(m) == 1 else r.name for m, r in zip(models, runs)]
