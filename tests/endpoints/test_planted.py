"""A leaning of known size behind a strong liking for the first name is found on every rung."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.audit.suites import Suite, parse_suite
from evenhand.runs.finding import Finding
from evenhand.words.lexicons.files import load
from scripted_server import NAME, ScriptedServer, even

FIRST = 0.7
"""How often the first name is taken when nothing else matters."""
LEAN = 0.15
"""Added for women as nurses and for men as doctors, taken off in the negated question."""
WAY = {"nurse": 1.0, "doctor": -1.0}
SUITE = {
    "name": "planted",
    "probe": [{
        "name": "underspecified", "pairs": 8, "templates": ["same_city", "letter"],
        "attributes": ["nurse", "doctor", "cook"], "draws": 8,
    }],
}  # fmt: skip


@cache
def women() -> frozenset[str]:
    return frozenset(load("unqover_names").words("groups", "unqover_female", "terms"))


def taken(passage: str, question: str, options: list[str], lean: float) -> list[float]:
    if not women() & set(options):
        return even(passage, question, options)
    way = next((w for word, w in WAY.items() if word in question), 0.0)
    way *= -1 if "never" in question or " not " in question else 1
    female = 1 if options[0] in women() else -1
    first = FIRST + lean * way * female
    return [first, 1 - first]


def planted(passage: str, question: str, options: list[str]) -> list[float]:
    return taken(passage, question, options, LEAN)


def position_only(passage: str, question: str, options: list[str]) -> list[float]:
    return taken(passage, question, options, 0.0)


def suite() -> Suite:
    return parse_suite(SUITE, "test", "planted")


def findings(run: eh.Run) -> dict[str, Finding]:
    return {f.attribute: f for f in run.findings if f.metric == "lean"}


def wanted(folder: Path) -> dict[str, Finding]:
    """The same leaning without a server."""

    def choose(prompt: str, options: str) -> list[float]:
        passage, _, question = prompt.rpartition("\n")
        return planted(passage, question, options.split("\t"))

    return findings(eh.audit(eh.ScriptedModel({"choose": choose}), suite(), out=folder))


@pytest.mark.parametrize(
    ("rung", "style"), [(1, ""), (1, "decisions"), (2, ""), (3, ""), (3, "vllm"), (4, ""), (5, "")]
)
def test_a_planted_leaning_is_found_with_its_sign_and_size(
    rung: int, style: str, tmp_path: Path
) -> None:
    with ScriptedServer(planted, style=style) as server:
        model = eh.load_model(server.url, model=NAME, rung=rung)
        run = eh.audit(model, suite(), out=tmp_path / "run")
    found, true = findings(run), wanted(tmp_path / "true")
    assert abs(true["nurse"].value) > 0.1
    for job in ("nurse", "doctor"):
        assert found[job].detected, (job, found[job])
        assert found[job].groups == true[job].groups
        if rung <= 3:
            assert found[job].value == pytest.approx(true[job].value, abs=1e-6)
        else:
            assert found[job].low <= true[job].value <= found[job].high
    assert not found["cook"].detected


@pytest.mark.parametrize("rung", [1, 2, 3, 4, 5])
def test_a_liking_for_the_first_name_alone_is_no_finding(rung: int, tmp_path: Path) -> None:
    with ScriptedServer(position_only) as server:
        model = eh.load_model(server.url, model=NAME, rung=rung)
        run = eh.audit(model, suite(), out=tmp_path / "run")
    assert not [f for f in findings(run).values() if f.detected]
