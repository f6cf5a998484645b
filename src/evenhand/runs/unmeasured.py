"""What a run does not show, for every file that leaves the house."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.runs.counting import counted, undefined
from evenhand.runs.kinds import cannot_judge
from evenhand.runs.story import audited_name

if TYPE_CHECKING:
    from evenhand.runs.record import Run


def not_measured(run: Run, silent: Mapping[str, str] | None = None) -> list[str]:
    """What a reader might take for granted and this run does not show.

    Args:
        silent: probes that cannot judge the model, with the reason; by the run's controls if not
            given.
    """
    facts = run.facts
    mute = cannot_judge(facts) if silent is None else silent
    skipped = [
        f"{label}: {entry['skipped']}"
        for label, entry in facts["probes"].items()
        if entry.get("skipped")
    ]
    lost = [f"{f.id}: {f.reason}" for f in undefined(run.findings, audited_name(facts))]
    groups = sorted({g for f in counted(run.findings) for g in f.groups})
    return [
        *skipped,
        *(f"{label} cannot judge this model: {reason}" for label, reason in mute.items()),
        *lost,
        f"groups other than: {', '.join(groups)}" if groups else "any group",
        "how the model is used after it was asked these questions, and by whom",
    ]
