"""Judged mitigations as a kind of run: what they buy, what they cost, how sure that is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import RunError, SpecError
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import Again, RunKind
from evenhand.runs.record import Run
from evenhand.runs.story import Place, Step, Story, Verdict, audited_name, quiet_parts, rate_of
from evenhand.runs.wording import defined

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.mitigations.base import Mitigation
    from evenhand.models.protocol import Model

QUESTIONS = (
    "Does the mitigation lower the measured gap?",
    "What does it cost?",
    "How sure is that?",
    "What next?",
)
OLDER = {"tradeoff": "mitigate", "tokens": "tokens", "context_accuracy": "context-accuracy"}
"""Parts of folders that do not say their kind, and the commands that wrote them."""


class MitigationKind(RunKind):
    """What a mitigation buys and costs. A gap that fell speaks for no model: none counts.

    The family told its story when it judged, and it is kept in run.json; so a folder can be read
    where the package that made it is not installed.
    """

    name = "mitigation"

    def recognises(self, facts: Mapping[str, Any]) -> bool:
        parts = {entry.get("probe") for entry in facts["probes"].values()}
        return bool(parts) and parts <= set(OLDER)

    def story(self, run: Run, limit: int = 10) -> Story:
        facts, found = run.facts, run.findings
        name = audited_name(facts)
        (entry,) = facts["probes"].values()
        told = entry.get("summary", {}).get("told", {})
        hits = tuple(f for f in found if f.detected)
        return Story(
            title=f"{name}: what the mitigation buys and costs",
            model=name,
            problem=str(told.get("buys") or (found and found[0].sentence) or "Nothing was judged."),
            clearest="",
            where=tuple(map(Place, told.get("costs") or ["Not recorded."])),
            sure=tuple(told.get("sure") or ["A smaller gap here says nothing about other gaps."]),
            steps=tuple(_steps(run)),
            verdicts=(Verdict(name, "mitigation", True, len(found), hits),),
            strongest=hits[:limit],
            quiet=quiet_parts(facts, found, self.card),
            undefined=tuple(f for f in found if not defined(f.value)),
            rate=rate_of(facts),
            questions=tuple(told.get("questions") or QUESTIONS),
            noun="change",
            kind="mitigation",
            intro="Measured on the same items, before and after.",
            rated=False,
        )

    def card(self, facts: Mapping[str, Any], finding: Finding) -> MetricCard:
        family = _family(facts)
        cards = {card.metric: card for card in (family.cards if family else ())}
        return cards.get(finding.metric) or super().card(facts, finding)

    def charts(self, facts: Mapping[str, Any], label: str) -> Mapping[str, Builder]:
        family = _family(facts)
        return family.charts() if family else {}

    def lexicons(self, facts: Mapping[str, Any]) -> list[str]:
        return [name for entry in facts["probes"].values() for name in entry.get("lexicons", ())]

    def command(self, facts: Mapping[str, Any]) -> tuple[str, str]:
        work = facts["work"]
        ((label, entry),) = facts["probes"].items()
        if work.get("command"):
            family = _family(facts)
            words, settings = work["command"], entry.get("settings", {})
            return shlex.join(family.command_today(words, settings) if family else words), ""
        line = ["evenhand", OLDER.get(label, label), str(work["model"])]
        for name in ("method", "axis"):
            line += [f"--{name}", str(entry["settings"][name])] if name in entry["settings"] else []
        return shlex.join(line), ""

    def resume(self, folder: Path, **options: Any) -> Run:
        """Return a finished run; refuse an interrupted one, since fitting is not saved."""
        run = Run.open(folder)
        if run.status == "finished":
            return run
        raise RunError(
            f"{folder}: this judgement of a mitigation is {run.status!r} and cannot be resumed. "
            f"Give the command once more, with a new folder: {self.command(run.facts)[0]}"
        )

    def again(self, run: Run, scratch: Path, models: Mapping[str, Model] | None = None) -> Again:
        from evenhand.mitigations.running import again

        return again(run, scratch, models or {})

    def instead_of_comparing(self, run: Run) -> str:
        steps = "; ".join(step.command for step in _steps(run)[:-1])
        steps = steps or "evenhand audit MODEL --out before, then evenhand compare before after"
        return (
            f"{run.folder} is the judgement of a mitigation, which holds its own before and after. "
            f"To set two models side by side, audit both with one suite: {steps}"
        )


def _family(facts: Mapping[str, Any]) -> type[Mitigation] | None:
    """Return the family that judged, or None if its package is not installed."""
    from evenhand.mitigations.base import family

    (entry,) = facts["probes"].values()
    try:
        return family(str(entry.get("family", "head")))
    except SpecError:
        return None


def _steps(run: Run) -> list[Step]:
    """Return next steps: audit both models, or compare the audits that exist already."""
    place = shlex.quote(str(run.folder))
    model = shlex.quote(str(run.facts["work"]["model"]))
    proof = [p / "proof" for p in (run.folder, run.folder.parent)]
    made = next((p for p in proof if (p / "before").is_dir() and (p / "after").is_dir()), None)
    steps = []
    if made is not None:
        one, two = (shlex.quote(str(made / name)) for name in ("before", "after"))
        why = "Compare both models, question by question"
        steps.append(Step(why, f"evenhand compare {one} {two} --html change.html"))
    elif run.folder.name == "run":
        there = shlex.quote(str(run.folder.parent))
        steps = [
            Step("Audit the mitigated model", f"evenhand audit {there} --out after"),
            Step(
                "Audit the model before it, with the same questions",
                f"evenhand audit {model} --out before",
            ),
            Step("Set them side by side", "evenhand compare before after --html change.html"),
        ]
    return [*steps, Step("Look at every number behind it", f"evenhand view {place}")]
