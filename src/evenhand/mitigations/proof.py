"""Judge by audits: both models on one suite and on their task, item by item.

    proof/before  proof/after     audits of the model and of its mitigated form, the same items
    proof/proof.json              what became of each difference, and whether the model still does
                                  what it is asked: order, negation, mass on the options, its task

The task is an asked behaviour with a margin:

    choice       accuracy on a Social IQa file          (share of questions, higher is better)
    span         F1 on a SQuAD file                     (0 to 1, higher is better)
    masked       loss of masked pieces on plain text    (nats a piece, lower is better)
    classifier   accuracy on a file with text, label    (labels as the model names them)
    encoder, masked   accuracy of a linear classifier on frozen vectors, same file

Families whose result is a model like any other are judged this way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.audit.comparison.standing import PAIRED, Standing, standing
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.mitigations.base import Fitted, Judgement, Measurements, Mitigation
from evenhand.mitigations.changes import WORSE, ChangeReport, judge_runs
from evenhand.mitigations.erase_features import standardised_logistic
from evenhand.models.protocol import Model
from evenhand.probes.base import Behaviour
from evenhand.probes.shared.estimates import claim
from evenhand.requests import Classify, Embed, Option
from evenhand.runner.ask import Ask
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
Floats = npt.NDArray[np.float64]
POINTS, NATS = 0.05, 0.10
"""Margins: five of 100 questions; a tenth of a nat a piece (perplexity up by a tenth)."""


class AuditedMitigation(Mitigation):
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
        """Refuse a model of another kind, and a task file that cannot be read."""

        super().require_kind(model)
        if self.task is not None:
            require_readable(model, self.task)

    def lexicons(self, kind: str) -> list[str]:
        suite = self.proof_suite(kind)
        return [name for e in (suite.entries if suite else ()) for name in e.probe.lexicons()]

    def proof_suite(self, kind: str) -> Suite | None:
        """Return the suite to judge with: the one given, or a small one that fits kind and axis."""
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
    def report(cls, measurements: Measurements) -> Judgement:
        return report_changes(cls.label, measurements.model, judge_measurements(measurements))

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations import chart

        return {"changes": chart.changes, "stands": chart.stands}


@dataclass(frozen=True)
class JudgedByAudits(Fitted):
    """What is judged by audits of the model and of its mitigated form."""

    settings: AuditedMitigation

    @property
    def seen(self) -> frozenset[str]:
        """Terms that were fitted on; no item with one of them is judged."""
        return frozenset(self.facts.get("fitted_on", ()))

    def measure(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Measurements:
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
        return Measurements(self.base.name, facts, {**numbers, **self.items()}, audits)

    def told(self) -> dict[str, Any]:
        """Return a family's further facts, beside audits and tasks, as JSON values."""
        return {}

    def items(self) -> dict[str, Any]:
        """Return a family's further measurements, item by item: columns of numbers."""
        return {}

    def tasks(self, before: Model, after: Model) -> list[Task]:
        """Measure the model's task if a file for it was given."""
        from evenhand.corpora.text import read_texts

        settings = self.settings
        texts = read_texts(settings.texts) if settings.texts else None
        measured = [
            measure_tasks(m, task=settings.task, texts=texts, limit=settings.task_limit)
            for m in (before, after)
        ]
        return [Task(one, two) for one, two in zip(*measured)]

    def audits(
        self, before: Model, after: Model, proof: Path, progress: Progress | None
    ) -> tuple[str, tuple[Run, Run] | None]:
        """Audit both models on the suite, or return the reason not to."""
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


def judge_measurements(measurements: Measurements) -> ChangeReport:
    """Return what became of each difference and each task."""
    facts, audits = measurements.facts, measurements.audits
    found = judge_runs(*audits, facts["seen"]) if audits else ChangeReport(reason=facts["reason"])
    tasks = []
    for k, about in enumerate(facts["tasks"]):
        weights, units = (
            measurements.numbers.get(f"task{k}.weights"),
            measurements.codes(f"task{k}.units"),
        )
        one, two = (
            Behaviour(values=measurements.numbers[f"task{k}.{n}"], weights=weights, **about)
            for n in ("before", "after")
        )
        tasks.append(standing(one, two, [] if units is None else [units]))
    return found.with_tasks(tasks)


def report_changes(label: str, model: str, found: ChangeReport) -> Judgement:
    """Return a change report as findings, tables and sentences."""
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
    """Return a behaviour as a finding, detected if it became worse or better beyond chance."""
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


def _costs(found: ChangeReport) -> tuple[str, ...]:
    out = [s.sentence for s in found.stands]
    if all(s.probe for s in found.stands):
        out.append(
            "Not measured on a task. Give one with --task FILE; masked models lose on plain text: "
            "--texts FILE."
        )
    return (*out, *(f"Worse: {t.sentence}" for t in found.tests if t.verdict in WORSE))


def _sure(found: ChangeReport) -> tuple[str, ...]:
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


def _inside(model: Any) -> Any:
    """Return a context in which the Hugging Face model below gives this model's states."""
    return getattr(model, "changed", contextlib.nullcontext)()


def choice_accuracy(model: Any, path: Path, limit: int | None = None) -> Behaviour:
    """Return right (1) or wrong (0) for every question of a Social IQa file."""
    from evenhand.train.choice import read_questions

    questions = read_questions(path, limit)
    rows = [(q.text, a) for q in questions for a in q.answers]
    request = Option([r[0] for r in rows], [r[1] for r in rows])
    logits = np.asarray(Ask(model)(request)["logit"]).reshape(-1, 3)
    hits = logits.argmax(axis=1) == np.asarray([q.right for q in questions])
    return Behaviour("choice accuracy", hits.astype(float), POINTS)


def span_f1(model: Any, path: Path, limit: int | None = None) -> Behaviour:
    """Return F1 for every question of a SQuAD file, against the best of its answers."""
    from evenhand.train import span
    from evenhand.train.squad import read_squad, token_f1

    examples = read_squad(path, limit)
    windows = span.make_windows(model.tokenizer, examples, length=384, stride=128)
    with _inside(model):
        found = span.predict(model.model, model.tokenizer, examples, windows, batch=16)
    model._unlimit_tokenizer()
    values = [max(token_f1(found.get(e.id, ""), a) for a in e.answers) for e in examples]
    return Behaviour("span F1", np.asarray(values), POINTS)


def masked_loss(model: Any, texts: list[str]) -> Behaviour:
    """Return the loss per masked piece of every text; masks are equal before and after."""
    from evenhand.train.masked import text_losses

    with _inside(model):
        found = text_losses(model.torch, model.model, model.tokenizer, texts, 128, model.device)
    model._unlimit_tokenizer()
    each = found[:, 0] / found[:, 1]
    return Behaviour("masked-LM loss", each, NATS, float("-inf"), weights=found[:, 1])


def labelled_accuracy(model: Any, path: Path, limit: int = 2_000, seed: int = 0) -> Behaviour:
    """Return right or wrong for every text of a labelled file (text, label).

    A classifier answers by itself; for other models a logistic one is fitted on frozen vectors
    of 70 % of the texts and judged on the rest.
    """
    texts, labels = _labelled(model, path, limit)
    if Classify.kind in model.answers:
        answered = np.asarray(Ask(model)(Classify(texts))["probabilities"])
        names = [str(n) for n in model.labels]
        hits = np.asarray([names[i] == y for i, y in zip(answered.argmax(axis=1), labels)])
        return Behaviour("accuracy", hits.astype(float), POINTS)
    X = np.asarray(Ask(model)(Embed(texts))["vector"], np.float64)
    return _read_task(X, np.asarray(labels), seed)


def _labelled(model: Any, path: Path, limit: int) -> tuple[list[str], list[str]]:
    """Return texts and labels of a file; a classifier must know the labels."""
    table = read_table(path, text=("text", "label"), needed=("text", "label"))
    texts, labels = list(table.labels("text"))[:limit], list(table.labels("label"))[:limit]
    names = [str(n) for n in model.labels] if Classify.kind in model.answers else labels
    strange = sorted(set(labels) - set(names))
    if strange:
        raise DataError(f"{path}: label {strange[0]!r} is none of the model's: {', '.join(names)}.")
    return texts, labels


def require_readable(model: Any, path: Path) -> None:
    """Refuse a file that the model's task cannot be measured on, before anything is fitted."""
    if model.kind == "choice":
        from evenhand.train.choice import read_questions

        read_questions(path)
    elif model.kind == "span":
        from evenhand.train.squad import read_squad

        read_squad(path)
    else:
        _labelled(model, path, 2_000)


def _read_task(X: Floats, labels: npt.NDArray[Any], seed: int) -> Behaviour:
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = int(0.7 * len(order))
    train, test = order[:cut], np.sort(order[cut:])
    if len(np.unique(labels[train])) < 2 or not len(test):
        raise DataError("--task: fewer than two labels, or too few texts. Accepted: 20 or more.")
    hits = standardised_logistic(X[train], labels[train]).predict(X[test]) == labels[test]
    return Behaviour("linear classifier accuracy", hits.astype(float), POINTS)


def measure_tasks(
    model: Any, *, task: Path | None, texts: list[str] | None, limit: int | None
) -> list[Behaviour]:
    """Measure the tasks of a model of this kind for which files were given."""
    found = []
    if task is not None:
        if model.kind == "choice":
            found.append(choice_accuracy(model, task, limit))
        elif model.kind == "span":
            found.append(span_f1(model, task, limit))
        else:
            found.append(labelled_accuracy(model, task, limit or 2_000))
    if model.kind == "masked" and texts:
        found.append(masked_loss(model, texts))
    return found
