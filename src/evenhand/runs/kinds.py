"""Kinds of run: an audit, a study, the judgement of a mitigation.

`run.json` says which (`kind`). Whatever treats runs differently by kind (story, cards, charts,
command, JSON, resume) asks the kind; nothing else asks what a run is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import plugins
from evenhand.errors import RunError
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.controls import CAN, CANNOT, NOBODY_CAN, Control, stored
from evenhand.runs.facts import read_facts
from evenhand.runs.finding import Finding

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.models.protocol import Model
    from evenhand.runner.job import Executor
    from evenhand.runner.progress import Progress
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story

AUDIT = "audit"


@dataclass(frozen=True)
class Again:
    """A run computed once more, from what its folder kept.

    Attributes:
        run: the new run, in a folder of its own.
        files: what it rests on beside run.json, findings and tables: by its place in the folder,
            bytes or a file.
        shards: for each model that was asked, those of the files that hold its scores.
    """

    run: Run
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    shards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class RunKind:
    """What a kind of run knows about its folders. The defaults fit a run without probes."""

    name: str = AUDIT
    resumes: bool = False
    """Whether `resume` writes a finished run again from what it kept."""

    def recognises(self, facts: Mapping[str, Any]) -> bool:
        """Whether a folder of an older version, which does not say it, is of this kind."""
        return False

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

    def controls(self, facts: Mapping[str, Any]) -> dict[str, Control]:
        """Return which of a run's probes can judge the model (`runs.controls`)."""
        return stored(facts)

    def contract(self, run: Run) -> dict[str, Any]:
        """The run as one JSON object (`--json`)."""
        facts = run.facts
        parts = {label: entry.get("summary") for label, entry in facts["probes"].items()}
        return {
            "run": str(run.folder),
            "kind": self.name,
            "status": facts["status"],
            "summary": next(iter(parts.values())) if len(parts) == 1 else parts,
            "findings": [f.as_dict() for f in run.findings],
        }

    def resume(
        self,
        folder: Path,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
        **how: Any,
    ) -> Run:
        """Do what is left of a run that was interrupted."""
        raise RunError(
            f"{folder}: a run of kind {self.name!r} cannot be resumed. Give the command that made "
            f"it once more: {self.command(read_facts(folder))[0]}"
        )

    def again(self, run: Run, scratch: Path, models: Mapping[str, Model] | None = None) -> Again:
        """The findings once more from stored scores, without the model and without torch.

        Args:
            run: a finished run; it is not changed.
            scratch: an empty folder for the new one.
            models: by what was typed for them: models to ask for scores that are missing.

        Raises:
            RunError: the run keeps nothing that its findings could be computed from.
        """
        raise RunError(
            f"{run.folder}: a run of kind {self.name!r} keeps no scores from which its findings "
            f"could be computed again, so it cannot be bundled as evidence."
        )

    def mark(self, facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Finding]:
        """Findings of a folder written before findings said themselves whether they count."""
        return list(findings)

    def instead_of_comparing(self, run: Run) -> str:
        """What to do where runs of this kind cannot be set side by side; "" where they can."""
        return ""


def kind_of(facts: Mapping[str, Any]) -> RunKind:
    """The kind of a run, from its run.json; folders of older versions are recognised too."""
    named = facts.get("kind")
    if named is not None:
        return _made(str(named))
    found = (_made(name) for name in plugins.places(plugins.KINDS))
    return next((kind for kind in found if kind.recognises(facts)), _made(AUDIT))


def cannot_judge(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the probes of a run that cannot judge the model, each with the reason.

    If some cannot and none can, a probe that reports nothing about the answers cannot either: it
    would vouch for a model that no other probe could judge.
    """
    controls = kind_of(facts).controls(facts)
    unable = {label: c.reason for label, c in controls.items() if c.verdict == CANNOT}
    if unable and not any(c.verdict == CAN for c in controls.values()):
        skipped = {label for label, entry in facts["probes"].items() if "skipped" in entry}
        rest = controls.keys() - unable.keys() - skipped
        unable |= {label: NOBODY_CAN for label in controls if label in rest}
    return unable


def _made(name: str) -> RunKind:
    kind: RunKind = plugins.load(plugins.KINDS, name, what="kind of run", where="run.json")()
    return kind


def resume(
    folder: str | Path,
    *,
    progress: Progress | None = None,
    executor: Executor | None = None,
    **how: Any,
) -> Run:
    """Resume a run that was interrupted or killed; finished work is not repeated.

    Args:
        folder: the run folder, of an audit or a study.
        progress: is told how far the work has got.
        executor: where the work is done, e.g. `RayExecutor`; this process by default.
        how: of an audit: other limits of speed and spending, e.g. max_cost=2.0; and model, the
            address of the run's server where this user has not named it before.
    """
    from evenhand.runs.record import Run

    run = Run.open(folder)
    return kind_of(run.facts).resume(run.folder, progress=progress, executor=executor, **how)
