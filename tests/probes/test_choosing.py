"""Probes that ask which of these: the same findings on every rung, whatever place a model likes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.probe_cases import CASES

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.registry import make_probe, probe_class, probe_names
from evenhand.requests import Choose
from evenhand.runner.ask import Ask

CHOOSING = [n for n in probe_names() if n in CASES and Choose.kind in probe_class(n).needs]
RUNGS = ("continuation", "chat continuation", "choice head", "letters", "free text")


def chooser(name: str, lean: float, rung: str, first: float = 0.0) -> ScriptedModel:
    """The case's model as one that chooses; it likes the place named first by so many nats."""
    logit = CASES[name].answers(lean)["option"]

    def choose(prompt: str, options: str) -> dict[str, Any]:
        text = prompt.replace("\n", " ")
        each = [math.exp(logit(text, o)) for o in options.split("\t")]
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
    probe = make_probe(name, case.settings(folder, case.rows))
    helpers = {k: Ask(case.helpers[spec]) for k, spec in probe.helpers().items()}
    return probe.asked_of(model.rung).run(Ask(model, helpers=helpers), 0)


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
@pytest.mark.parametrize("name", ["underspecified", "bbq"])
def test_mass_refusals_and_unread_answers_reach_items_and_record(
    tmp_path: Path, name: str, rung: str
) -> None:
    measured = run(name, chooser(name, 1.0, rung), tmp_path)
    items, told = measured.items, measured.summary
    assert told["rung"] == rung
    assert told["mass"] == pytest.approx(0.8)
    assert told["refused"] == (pytest.approx(0.15) if rung == "free text" else None)
    assert told["unread"] == pytest.approx(0.05 if rung == "free text" else 0.0)
    assert np.allclose(items["mass"].to_numpy(), 0.8)
    assert np.isnan(items["refused"].to_numpy()).all() == (rung != "free text")


def test_a_run_says_how_the_model_was_asked(tmp_path: Path) -> None:
    settings = CASES["underspecified"].settings(tmp_path, CASES["underspecified"].rows)
    suite = parse_suite({"name": "s", "probe": [{"name": "underspecified", **settings}]}, "t", "s")
    done = eh.audit(chooser("underspecified", 1.0, "free text"), suite, out=tmp_path / "run")
    facts = done.facts
    assert (facts["rung"], facts["chat"], facts["system"]) == ("free text", False, "")
    assert facts["mass"] == pytest.approx(0.8)
    assert facts["refused"] == pytest.approx(0.15)
    page = done.report.read_text()
    before, after = page.index("How it was asked"), page.index("Is there a problem")
    assert before < after
    assert "15.0% of the answers decline; 5.0% cannot be read" in page


def test_rungs_of_probes_come_from_what_they_ask() -> None:
    from evenhand.audit.catalogue import probes

    rows = {row["name"]: row["rungs"].split(", ") for row in probes()}
    assert {"chat continuation", "letters", "decision endpoint", "span"} <= {
        *rows["underspecified"]
    }
    assert "span" not in rows["bbq"]
    assert "letters" not in rows["stereoset"]
    assert rows["association"] == ["-"]
