"""Measured scores as a kind of run: told like an audit, about whoever made the scores."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.audit.kind import AuditKind
from evenhand.probes.reading import reader_of
from evenhand.probes.registry import probe_of
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import RunKind
from evenhand.runs.story import Step

if TYPE_CHECKING:
    from evenhand.models.protocol import Model
    from evenhand.runner.job import Executor
    from evenhand.runner.progress import Progress
    from evenhand.runs.kinds import Again
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story


class MeasuredKind(AuditKind):
    """Findings from a file; the file can be measured again, but nothing is asked."""

    name = "measure"
    resumes = False

    def story(self, run: Run, limit: int = 10) -> Story:
        told = super().story(run, limit)
        place = shlex.quote(str(run.folder))
        steps = (
            Step("Look at every row behind a number", f"evenhand view {place}"),
            Step("See every number of every finding", f"evenhand show {place} --all"),
        )
        return replace(told, title=f"{told.model}: what the scores say", steps=steps)

    def card(self, facts: Mapping[str, Any], finding: Finding) -> MetricCard:
        reader = reader_of(finding.probe)
        own = {c.metric: c for c in (reader.cards if reader else ())}
        found = own.get(finding.metric) or probe_of(facts, finding.probe).card(finding.metric)
        return found or plain_card(finding.metric)

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        work = facts["work"]
        options = [
            word
            for key, value in work["given"].items()
            if value not in ("", [], (), None, False)
            for word in (f"--{key.replace('_', '-')}", *_as_option(value))
        ]
        reader = reader_of(work["measure"])
        file = [str(work["model"])] if reader is None or reader.positional else []
        line = ["evenhand", "measure", work["measure"], *file, *options]
        return shlex.join(line), ""

    def again(self, run: Run, scratch: Path, models: Mapping[str, Model] | None = None) -> Again:
        from evenhand.measured.writing import again

        return again(run, scratch)

    def contract(self, run: Run) -> dict[str, Any]:
        return RunKind.contract(self, run)

    def resume(
        self,
        folder: Path,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
        **how: Any,
    ) -> Run:
        return RunKind.resume(self, folder, progress=progress, executor=executor, **how)


def _as_option(value: Any) -> list[str]:
    if value is True:
        return []
    return [",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]
