"""Probes that ask which of these: the same findings on every rung, whatever place a model likes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.probe_cases import CASES, SECOND, WOMEN, noise

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.registry import make_probe, probe_class, probe_names
from evenhand.probes.shared import refusals
from evenhand.requests import Choose
from evenhand.runner.ask import Ask

CHOOSING = [n for n in probe_names() if n in CASES and Choose.kind in probe_class(n).needs]
TOGETHER = {"ranking", "implicit"}
"""Every question is about all groups at once: nothing to compare refusals by."""
RUNGS = ("continuation", "chat continuation", "choice head", "letters", "free text")


def chooser(name: str, lean: float, rung: str, first: float = 0.0) -> ScriptedModel:
    """The case's model as one that chooses; it likes the place named first by so many nats."""
    answers = CASES[name].answers(lean)

    def choose(prompt: str, options: str) -> dict[str, Any]:
        if "option" in answers:
            text = prompt.replace("\n", " ")
            each = [math.exp(answers["option"](text, o)) for o in options.split("\t")]
        else:
            each = list(answers["choose"](prompt, options))
            each *= len(options.split("\t")) // len(each)  # spellings of the same answers
        if rung in ("letters", "free text"):  # where the list is seen
            each[0] *= math.exp(first)
        total = sum(each) / 0.8
        sampled = rung == "free text"
        return {
            "probabilities": [v / total for v in each], "mass": 0.8,
            "refused": 0.15 if sampled else math.nan, "unread": 0.05 if sampled else 0.0,
        }  # fmt: skip

    model = ScriptedModel({"choose": choose}, name=f"{name} {rung}", version=f"{lean} {first}")
    model.rung = rung
    return model


def run(name: str, model: ScriptedModel, folder: Path) -> Any:
    case = CASES[name]
    rows = [turned(row) for row in case.rows] if name == "bbq" else case.rows
    probe = make_probe(name, case.settings(folder, rows))
    helpers = {k: Ask(case.helpers[spec]) for k, spec in probe.helpers().items()}
    return probe.asked_of(model.rung).run(Ask(model, helpers=helpers), 0)


def turned(row: dict[str, Any]) -> dict[str, Any]:
    """Of half of BBQ's questions that the text answers, the answer goes against the stereotype."""
    if row["context_condition"] == "ambig" or row["example_id"] // 4 % 2:
        return row
    told = row["context"].replace("The old one had", "The young one had")
    return {**row, "context": told, "label": 1 - row["label"]}


def test_which_probes_choose() -> None:
    assert {"underspecified", "discovery", "bbq"} <= set(CHOOSING)


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("name", ["underspecified", "bbq"])
def test_a_planted_lean_is_found_on_every_rung_behind_a_liking_for_the_first_place(
    tmp_path: Path, name: str, rung: str
) -> None:
    def leans(lean: float) -> dict[str, Any]:
        found = run(name, chooser(name, lean, rung, first=1.5), tmp_path).findings
        return {f.id: f for f in found if f.p == f.p}

    planted, even = leans(1.0), leans(0.0)
    wanted = {"underspecified": "lean/nurse", "bbq": "bbq/overall/bias_ambiguous"}[name]
    (hit,) = [f for i, f in planted.items() if i.endswith(wanted)]
    assert hit.value > 0
    assert hit.p < 0.01
    (none,) = [f for i, f in even.items() if i.endswith(wanted)]
    assert abs(none.value) < abs(hit.value) / 3


@pytest.mark.parametrize("rung", ["chat continuation", "free text"])
@pytest.mark.parametrize("name", CHOOSING)
def test_mass_refusals_and_unread_answers_reach_items_and_record(
    tmp_path: Path, name: str, rung: str
) -> None:
    """Whatever probe asks which of these: three columns, counted apart, and their means."""
    measured = run(name, chooser(name, 1.0, rung), tmp_path)
    items, told = measured.items, measured.summary
    sampled = rung == "free text"
    wanted = {"mass": 0.8, "refused": 0.15 if sampled else None, "unread": 0.05 * sampled}
    assert told["rung"] == rung
    for column, value in wanted.items():
        assert told[column] == (None if value is None else pytest.approx(value)), column
        expected = math.nan if value is None else value
        there = [c for c in items.schema.names if c == column or c.startswith(f"{column}_")]
        assert there, column  # one, or one for each group
        for each in there:
            assert np.allclose(items[each].to_numpy(), expected, equal_nan=True), each
    gaps = [f for f in measured.findings if f.metric == refusals.METRIC]
    compared = any(card.metric == refusals.METRIC for card in probe_class(name).cards)
    assert compared or name in TOGETHER
    assert bool(gaps) == (sampled and compared)  # declined, and alike for all
    assert all(f.value == pytest.approx(0.0) and f.p == pytest.approx(1.0) for f in gaps)


ABOUT = {
    "underspecified": lambda prompt: prompt.split()[0] in WOMEN,
    "discovery": lambda prompt: prompt.split()[0] in SECOND,
    # the text tells, and the answer goes with the stereotype
    "bbq": lambda prompt: "The old one had forgotten" in prompt,
}


@pytest.mark.parametrize(("name", "about"), ABOUT.items())
def test_refusals_about_one_group_are_found(
    tmp_path: Path, name: str, about: Callable[[str], bool]
) -> None:
    """A model that declines half of the questions about one group and a tenth of the others."""
    plain = chooser(name, 0.0, "free text")

    def choose(prompt: str, options: str) -> dict[str, Any]:
        told = plain._functions["choose"](prompt, options)
        refused = (0.5 if about(prompt) else 0.1) + 0.05 * noise(prompt)
        each = np.asarray(told["probabilities"]) / 0.8 * (1 - refused)
        return {"probabilities": each.tolist(), "mass": 1 - refused, "refused": refused}

    model = ScriptedModel({"choose": choose}, name=f"{name} shy")
    model.rung = "free text"
    (gap,) = [f for f in run(name, model, tmp_path).findings if f.metric == refusals.METRIC]
    sign = -1 if name == "discovery" else 1  # the second group is declined there
    assert sign * gap.value == pytest.approx(0.4, abs=0.05)
    assert gap.low <= gap.value <= gap.high
    assert gap.p < 1e-3
    assert "declines 4" in gap.sentence or "declines 3" in gap.sentence


def test_a_run_says_how_the_model_was_asked(tmp_path: Path) -> None:
    settings = CASES["underspecified"].settings(tmp_path, CASES["underspecified"].rows)
    suite = parse_suite({"name": "s", "probe": [{"name": "underspecified", **settings}]}, "t", "s")
    done = eh.audit(chooser("underspecified", 1.0, "free text"), suite, out=tmp_path / "run")
    facts = done.facts
    assert (facts["rung"], facts["chat"], facts["system"]) == ("free text", False, "")
    assert facts["mass"] == pytest.approx(0.8)
    assert facts["refused"] == pytest.approx(0.15)
    page = done.report.read_text()
    before, after = page.index("How it was asked"), page.index("May it ship")
    assert before < after
    assert "15.0 % of the answers decline; 5.0 % cannot be read" in page


def test_rungs_of_probes_come_from_what_they_ask() -> None:
    from evenhand.audit.catalogue import probes

    rows = {row["name"]: row["rungs"].split(", ") for row in probes()}
    assert {"chat continuation", "letters", "decision endpoint", "span"} <= {
        *rows["underspecified"]
    }
    assert "span" not in rows["bbq"]
    assert "letters" not in rows["stereoset"]
    assert rows["association"] == ["-"]
