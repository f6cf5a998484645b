"""Kinds of run: an audit, a study, the judgement of a mitigation.

`run.json` says which (`kind`). Whatever treats runs differently by kind (story, cards, charts,
command, JSON, resume) asks the kind; nothing else asks what a run is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import plugins
from evenhand.errors import RunError
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.finding import Finding

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story

AUDIT = "audit"


class RunKind:
    """What a kind of run knows about its folders. The defaults fit a run without probes."""

    name: str = AUDIT

    def story(self, run: Run, limit: int = 10) -> Story:
        """The first screen: report, viewer and terminal show the same."""
        raise NotImplementedError

    def card(self, facts: Mapping[str, Any], finding: Finding) -> MetricCard:
        """What a finding's metric is called and how it is read."""
        return plain_card(finding.metric)

    def charts(self, facts: Mapping[str, Any], label: str) -> Mapping[str, Builder]:
        """Chart builders of one part of the run by table name, in the order of the page."""
        return {}

    def lexicons(self, facts: Mapping[str, Any]) -> list[str]:
        """Lexicons that the run took its words from."""
        return []

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        """The command that does the same work again, and the file that it needs (or "")."""
        raise NotImplementedError

    def contract(self, run: Run) -> dict[str, Any]:
        """The run as one JSON object (`--json`)."""
        facts = run.facts
        return {
            "run": str(run.folder),
            "kind": self.name,
            "status": facts["status"],
            "summary": {k: v.get("summary") for k, v in facts["probes"].items()},
            "findings": [f.as_dict() for f in run.findings],
        }

    def resume(self, folder: Path, **options: Any) -> Run:
        """Do what is left of a run that was interrupted."""
        raise RunError(f"{folder}: a run of kind {self.name!r} cannot be resumed.")

    def mark(self, facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Finding]:
        """Findings of a folder written before findings said themselves whether they count."""
        return list(findings)


def kind_of(facts: Mapping[str, Any]) -> RunKind:
    """The kind of a run, from its run.json; folders of older versions are recognised too."""
    name = str(facts.get("kind") or facts.get("work", {}).get("kind") or AUDIT)
    kind: RunKind = plugins.load(plugins.KINDS, name, what="kind of run", where="run.json")()
    return kind
