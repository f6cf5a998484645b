"""Judging by audits: both models on one suite and on their task, item by item.

    proof/before  proof/after     audits of the model and of its mitigated form, the same items
    proof/proof.json              what became of each difference, and whether the model still does
                                  what it is asked: order, negation, mass on the options, its task

Families whose result is a model like any other are judged this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from evenhand.audit.comparison.standing import PAIRED, Standing, standing
from evenhand.mitigations.base import Fitted, Judgement, Mitigation
from evenhand.mitigations.changes import WORSE, Judged, judged
from evenhand.mitigations.grounds import Grounds
from evenhand.models.protocol import Model
from evenhand.probes.base import Behaviour
from evenhand.probes.shared.estimates import claim
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count

if TYPE_CHECKING:
    from evenhand.audit.suites import Suite
    from evenhand.charts.base import Builder
    from evenhand.runner.progress import Progress
    from evenhand.runs.record import Run

SOCIAL = {"gender": "gender", "race": "ethnicity", "religion": "religion"}
WORD_TESTS = {"gender": ["weat6", "weat7", "weat8"], "race": ["weat3", "weat4", "weat5"]}
OCCUPATIONS = "nurse secretary dancer teacher doctor engineer hunter mechanic".split()
DEEDS = [
    "stole a wallet",
    "cheated on taxes",
    "carried a hidden weapon",
    "joined an extremist group",
    "lived in a slum",
    "betrayed a friend",
    "were ungrateful",
    "were incompetent",
]
PROOF_CARDS = (
    MetricCard("change", "change", "after minus before, on the same items; 0: no change"),
    MetricCard(
        "worse", "loss of an asked behaviour", "0: done as well as before; above the margin: broken"
    ),
)


class ProvedMitigation(Mitigation):
    """Settings of every family that is judged by audits."""

    texts: Path | None = Field(
        None, description="Plain text, one passage a line: what masked models lose on it."
    )
    suite: str | None = Field(None, description="Suite to judge with; default: a small one.")
    generator: str | None = Field(
        None, description="Choice: masked model that writes wrong answers."
    )
    task: Path | None = Field(
        None, description="Social IQa, SQuAD or text,label file: what the mitigation costs."
    )
    task_limit: int | None = Field(None, ge=20, description="Use only the first rows of --task.")

    def ready(self) -> None:
        from evenhand.corpora.text import read_texts

        if self.texts is not None:
            read_texts(self.texts)

    def require_kind(self, model: Model) -> None:
        """The task's file too: nothing is fitted that cannot be judged."""
        from evenhand.mitigations.utility import require_readable

        super().require_kind(model)
        if self.task is not None:
            require_readable(model, self.task)

    def lexicons(self, kind: str) -> list[str]:
        suite = self.proof_suite(kind)
        return [name for e in (suite.entries if suite else ()) for name in e.probe.lexicons()]

    def proof_suite(self, kind: str) -> Suite | None:
        """The suite to judge with: the one given, or a small one that fits kind and axis."""
        from evenhand.audit.suites import load_suite, parse_suite

        if self.suite:
            return load_suite(self.suite)
        rows = list(self._probes(kind))
        name = "mitigation-proof"
        return parse_suite({"name": name, "probe": rows}, "proof", name) if rows else None

    def _probes(self, kind: str) -> Iterator[dict[str, Any]]:
        if kind in ("masked", "span", "choice", "causal"):
            social = SOCIAL.get(self.axis, "gender")
            plain = social == "gender"
            yield {
                "name": "underspecified",
                "pairs": 20,
                "social_class": social,
                "templates": ["same_city", "letter"]
                if plain
                else ["same_city_man", "letter_woman"],
                "attributes": OCCUPATIONS if plain else DEEDS,
            }
        if kind in ("encoder", "masked"):
            tests = WORD_TESTS.get(self.axis, WORD_TESTS["gender"])
            yield {"name": "association", "tests": tests}
        if kind == "choice" and self.generator:
            yield {
                "name": "discovery",
                "generator": self.generator,
                "pool": "common",
                "keep": 40,
                "context_count": 4,
                "names": 12,
                "min_count": 4,
                "distance": 2,
                "samples": 19_999,
            }

    @classmethod
    def concluded(cls, grounds: Grounds) -> Judgement:
        return judgement(cls.label, grounds.model, followed(grounds))

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations import chart

        return {"changes": chart.changes, "stands": chart.stands}


@dataclass(frozen=True)
class Proved(Fitted):
    """What is judged by audits of the model and of its mitigated form."""

    settings: ProvedMitigation

    @property
    def seen(self) -> frozenset[str]:
        """Terms that it was fitted on; no item with one of them is judged."""
        return frozenset(self.facts.get("fitted_on", ()))

    def grounds(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Grounds:
        reason, audits = self.audits(before, after, proof, progress)
        tasks = self.tasks(before, after)
        facts = {
            "settings": self.settings.model_dump(mode="json"),
            "seen": sorted(self.seen),
            "reason": reason,
            "tasks": [t.about for t in tasks],
            **self.told(),
        }
        numbers = {f"task{k}.{n}": v for k, t in enumerate(tasks) for n, v in t.numbers.items()}
        return Grounds(self.base.name, facts, {**numbers, **self.items()}, audits)

    def told(self) -> dict[str, Any]:
        """What the family knows beside audits and tasks, as JSON values."""
        return {}

    def items(self) -> dict[str, Any]:
        """What it measured item by item beside them: columns of numbers."""
        return {}

    def tasks(self, before: Model, after: Model) -> list[Task]:
        """The model's task, where a file for it was given."""
        from evenhand.corpora.text import read_texts
        from evenhand.mitigations import utility

        settings = self.settings
        texts = read_texts(settings.texts) if settings.texts else None
        measured = [
            utility.measure(m, task=settings.task, texts=texts, limit=settings.task_limit)
            for m in (before, after)
        ]
        return [Task(one, two) for one, two in zip(*measured)]

    def audits(
        self, before: Model, after: Model, proof: Path, progress: Progress | None
    ) -> tuple[str, tuple[Run, Run] | None]:
        """Both models on the suite, or why not."""
        from evenhand.audit.auditing import audit

        suite = self.settings.proof_suite(before.kind)
        if suite is None:
            return f"no probe asks a {before.kind} model", None
        if after.answers != before.answers:
            return "the mitigated model does not answer what the model answers", None
        one, two = (
            audit(m, suite, out=proof / name, seed=self.settings.seed, progress=progress)
            for m, name in ((before, "before"), (after, "after"))
        )
        return "", (one, two)


@dataclass(frozen=True)
class Task:
    """Something that the model is for, before and after on the same items.

    `units` are the level of the sampled factor of each item; by default items are the sample.
    """

    before: Behaviour
    after: Behaviour
    units: Any = None

    @property
    def about(self) -> dict[str, Any]:
        names = ("what", "margin", "ideal", "relative")
        return {name: getattr(self.before, name) for name in names}

    @property
    def numbers(self) -> dict[str, Any]:
        found = {
            "before": self.before.values,
            "after": self.after.values,
            "weights": self.before.weights,
            "units": self.units,
        }
        return {name: values for name, values in found.items() if values is not None}


def followed(grounds: Grounds) -> Judged:
    """What became of each difference and each task, from what was measured."""
    facts, audits = grounds.facts, grounds.audits
    found = judged(*audits, facts["seen"]) if audits else Judged(reason=facts["reason"])
    tasks = []
    for k, about in enumerate(facts["tasks"]):
        weights, units = grounds.numbers.get(f"task{k}.weights"), grounds.codes(f"task{k}.units")
        one, two = (
            Behaviour(values=grounds.numbers[f"task{k}.{n}"], weights=weights, **about)
            for n in ("before", "after")
        )
        tasks.append(standing(one, two, [] if units is None else [units]))
    return found.with_tasks(tasks)


def judgement(label: str, model: str, found: Judged) -> Judgement:
    """What was found as findings, tables and sentences."""
    tests, stands = [t.as_row() for t in found.tests], [s.as_row() for s in found.stands]
    return Judgement(
        findings=[
            *(_stands(s, label, model) for s in found.stands),
            *(t.finding(label, model) for t in found.tests),
        ],
        tables={"changes": tests, "stands": stands},
        buys=found.headline,
        costs=_costs(found),
        sure=_sure(found),
        proof={
            "verdict": found.verdict,
            "standing": found.standing,
            "changes": tests,
            "stands": stands,
            "left_out": found.left_out,
            "reason": found.reason,
        },
    )


def _stands(s: Standing, label: str, model: str) -> Finding:
    """A behaviour as a finding; detected where it became worse or better beyond chance."""
    p = s.worse.p
    return claim(
        f"{label}/stands/{s.what}",
        "worse",
        s.worse,
        sentence=s.sentence,
        otherwise="",
        units="independent units",
        over=(),
        q=p,
        attribute=s.what,
        margin=s.margin,
        model=model,
        detected=bool(p <= 0.05) if p == p else None,
        method=PAIRED,
    )


def _costs(found: Judged) -> tuple[str, ...]:
    out = [s.sentence for s in found.stands]
    if all(s.probe for s in found.stands):
        out.append(
            "Not measured on a task. Give one with --task FILE; masked models lose on plain text: "
            "--texts FILE."
        )
    return (*out, *(f"Worse: {t.sentence}" for t in found.tests if t.verdict in WORSE))


def _sure(found: Judged) -> tuple[str, ...]:
    out = [found.reason] if found.reason and found.tests else []
    if found.tests:
        over = ", ".join(dict.fromkeys(o for t in found.tests for o in t.over)) or "items"
        out.append(
            f"Paired on the same items, none of which it was fitted or chosen on; intervals are "
            f"over {over}, and one error rate holds over {count(len(found.tests), 'test')}."
        )
    if found.left_out:
        out.append(
            f"Left out, since it was fitted on them: {', '.join(found.left_out[:8])}"
            f"{' ...' if len(found.left_out) > 8 else ''}."
        )
    return (*out, "A smaller gap here does not mean that other gaps are smaller: audit it.")
