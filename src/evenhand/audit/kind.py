"""Audits as a kind of run: what their probes know is asked of the probes."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.audit.marking import marked
from evenhand.audit.story import model_words
from evenhand.audit.suites import load_suite, suite_names
from evenhand.audit.toml import suite_toml
from evenhand.errors import EvenhandError, SpecError
from evenhand.probes.base import Probe
from evenhand.probes.registry import make_probe, probe_of
from evenhand.runs.card import MetricCard
from evenhand.runs.controls import Control, control_of, stored
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import AUDIT, Again, RunKind
from evenhand.runs.story import audited_name

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.models.protocol import Model
    from evenhand.runner.job import Executor
    from evenhand.runner.progress import Progress
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story


class AuditKind(RunKind):
    """A suite of probes on a model."""

    name = AUDIT
    resumes = True

    def story(self, run: Run, limit: int = 10) -> Story:
        from evenhand.audit.story import tell

        return tell(run, self, limit)

    def card(self, facts: Mapping[str, Any], finding: Finding) -> MetricCard:
        return probe_of(facts, finding.probe).card(finding.metric)

    def charts(self, facts: Mapping[str, Any], label: str) -> Mapping[str, Builder]:
        return probe_of(facts, label).charts()

    def lexicons(self, facts: Mapping[str, Any]) -> list[str]:
        found: list[str] = []
        for entry in facts["probes"].values():
            if not entry.get("skipped"):
                found += _lexicons(entry)
        return list(dict.fromkeys(found))

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        """A packaged suite is named; one that was changed or sampled to a budget comes as TOML."""
        work = facts["work"]
        suite = work["suite"]
        options = ["--seed", str(work.get("seed", 0))]
        for flag, key in (("--as", "as"), ("--dtype", "dtype")):
            if work.get(key):
                options += [flag, str(work[key])]
        for key, value in work.get("options", {}).items():
            options += [f"--{key.replace('_', '-')}", str(value)]
        name, text = (suite["name"], "") if _packaged(suite) else ("suite.toml", suite_toml(suite))
        line = ["evenhand", "audit", *model_words(work), "--suite", name, *options]
        return shlex.join(line), text

    def controls(self, facts: Mapping[str, Any]) -> dict[str, Control]:
        """Return the stored verdicts; those of older folders follow from their summaries."""
        known = stored(facts)
        return {
            label: known.get(label)
            or control_of(probe_of(facts, label).answering(entry.get("summary") or {}))
            for label, entry in facts["probes"].items()
            if not entry.get("skipped")
        }

    def contract(self, run: Run) -> dict[str, Any]:
        """Summaries, controls, findings, and the lists of rows that probes add."""
        out = super().contract(run)
        out["controls"] = {k: c.as_dict() for k, c in self.controls(run.facts).items()}
        for label, entry in run.facts["probes"].items():
            own = probe_of(run.facts, label).rows is not Probe.rows
            if own and not entry.get("skipped"):  # items may be millions: read when needed
                out |= make_probe(entry["probe"], entry["settings"]).rows(run.table(label, "items"))
        return out

    def resume(
        self,
        folder: Path,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
        **how: Any,
    ) -> Run:
        from evenhand.audit.auditing import resume

        return resume(folder, progress=progress, executor=executor, **how)

    def again(self, run: Run, scratch: Path, models: Mapping[str, Model] | None = None) -> Again:
        from evenhand.audit.again import again

        return again(run, scratch, models or {})

    def mark(self, facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Finding]:
        audited = audited_name(facts)
        return [marked(f, probe_of(facts, f.probe), audited) for f in findings]


def _lexicons(entry: Mapping[str, Any]) -> list[str]:
    """Lexicons behind one probe; it may list them itself in its summary."""
    listed = entry["summary"].get("lexicons")
    if isinstance(listed, list):
        return [str(name) for name in listed]
    with contextlib.suppress(SpecError):
        return make_probe(entry["probe"], entry["settings"]).lexicons()
    return []


def _packaged(suite: Mapping[str, Any]) -> bool:
    with contextlib.suppress(EvenhandError):
        return suite["name"] in suite_names() and load_suite(suite["name"]).as_dict() == suite
    return False
