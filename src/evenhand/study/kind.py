"""Studies as a kind of run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.audit.toml import tables_toml
from evenhand.errors import SpecError
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import Again, RunKind

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.models.protocol import Model
    from evenhand.runner.job import Executor
    from evenhand.runner.progress import Progress
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story

CARDS = (
    MetricCard("spearman", "rank correlation", "from −1 to 1; 0: no relation", low=-1, high=1),
    MetricCard(
        "reliability",
        "reliability",
        "1: replicates agree; 0 or below: all spread is noise of training",
        ideal=1,
        high=1,
        higher_is_better=True,
    ),
)


class StudyKind(RunKind):
    """Embeddings, metrics and tasks, correlated. Its findings are relations: none counts."""

    name = "study"
    resumes = True

    def recognises(self, facts: Mapping[str, Any]) -> bool:
        return bool(facts["work"].get("kind") == self.name)

    def story(self, run: Run, limit: int = 10) -> Story:
        from evenhand.study.story import tell

        return tell(run, self, limit)

    def card(self, facts: Mapping[str, Any], finding: Finding) -> MetricCard:
        own = (c for c in CARDS if c.metric == finding.metric)
        return next(own, None) or super().card(facts, finding)

    def charts(self, facts: Mapping[str, Any], label: str) -> Mapping[str, Builder]:
        from evenhand.study.chart import CHARTS

        return CHARTS

    def lexicons(self, facts: Mapping[str, Any]) -> list[str]:
        entries = facts["probes"].values()
        return [n for e in entries for n in e.get("summary", {}).get("lexicons", [])]

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        """The recipe is kept whole in run.json."""
        work = facts["work"]
        data = ["--data", str(work["data"])] if work.get("data") else []
        return shlex.join(["evenhand", "study", "study.toml", *data]), tables_toml(work["recipe"])

    def resume(
        self,
        folder: Path,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
        **how: Any,
    ) -> Run:
        from evenhand.study.running import resume

        for name, value in how.items():
            raise SpecError(
                f"--{name.replace('_', '-')} {value!r}: {folder} is a study, which asks no server. "
                "Leave it out."
            )
        return resume(folder, progress=progress, executor=executor)

    def again(self, run: Run, scratch: Path, models: Mapping[str, Model] | None = None) -> Again:
        from evenhand.study.running import again

        return again(run, scratch)

    def instead_of_comparing(self, run: Run) -> str:
        points = shlex.quote(str(run.folder / "probes" / "study" / "points.parquet"))
        return (
            f"{run.folder} is a study, whose findings are relations between metrics and not about "
            "one model, so there is nothing to compare. Audits of one suite can be compared; "
            f"within a study, look at other columns with: evenhand measure correlation {points} "
            "--x COLUMN --y COLUMN --strata family"
        )
