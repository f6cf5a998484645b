"""Judged mitigations as a kind of run, and the pages of single commands beside them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenhand.runs.kinds import RunKind

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story

TRADEOFF = "tradeoff"


class MitigationKind(RunKind):
    """What a mitigation buys and costs. A gap that fell speaks for no model: none counts."""

    name = "mitigation"

    def recognises(self, facts: Mapping[str, Any]) -> bool:
        """Folders without a suite of probes that are no study."""
        kinds = {entry.get("probe") for entry in facts["probes"].values()}
        return bool(kinds) and kinds <= {TRADEOFF, "tokens", "context_accuracy"}

    def story(self, run: Run, limit: int = 10) -> Story:
        from evenhand.mitigations import story

        return story.tell(run, self)

    def charts(self, facts: Mapping[str, Any], label: str) -> Mapping[str, Builder]:
        from evenhand.mitigations.head import chart, chart_context_accuracy, chart_tokens

        return {
            "points": chart.points,
            "stereoset": chart.stereoset,
            "tokens": chart_tokens.tokens,
            "accuracy": chart_context_accuracy.accuracy,
        }

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        from evenhand.mitigations.story import command

        work = facts["work"]
        (entry,) = facts["probes"].values()
        if entry["probe"] == TRADEOFF:
            return command(work, entry.get("settings") or {}), ""
        name = str(work["suite"]["name"]).replace("_", "-")
        return shlex.join(["evenhand", name, str(work["model"])]), ""

    def instead_of_comparing(self, run: Run) -> str:
        model = shlex.quote(str(run.facts["work"]["model"]))
        made = shlex.quote(str(run.folder.parent))
        return (
            f"{run.folder} is the judgement of a mitigation, which holds its own before and after. "
            f"To set two models side by side, audit both with one suite: evenhand audit {model} "
            f"--out before; evenhand audit {made} --out after; evenhand compare before after"
        )
