"""A design that cannot reach significance says so before it runs, with the smallest that can."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evenhand import plugins
from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.probes.registry import make_probe
from evenhand.requests import TYPES
from evenhand.runs.kinds import kind_of
from probe_cases import CASES, JOBS, PEOPLE, SETS, Rows

PROBES = sorted(plugins.BUILT_IN[plugins.PROBES])
FEW_WORDS = [row for key in "xyab" for row in [r for r in SETS if r[0] == key][:2]]
SMALL: dict[str, tuple[Rows | None, dict[str, Any]]] = {
    "underspecified": (None, {"terms": 3}),
    "divergence": (("gender_identity",), {}),
    "association": (FEW_WORDS, {}),
    "seat": (FEW_WORDS, {}),
    "ceat": (FEW_WORDS, {}),
    "discovery": (None, {"context_count": 2}),
    "name-study": (None, {"names": 3}),
    "generation": (CASES["generation"].rows[:4], {}),
    "stereoset": (JOBS[:3], {}),
    "crows-pairs": (CASES["crows-pairs"].rows[:4], {}),
    "bbq": (CASES["bbq"].rows[:8], {}),
    "winobias": (CASES["winobias"].rows[:4], {}),
    "winogender": (JOBS[:3], {}),
    "gest": (CASES["gest"].rows[::10], {}),
    "labour": (JOBS[:3], {}),
    "ranking": (None, {"names": 3}),
    "matched-guise": (CASES["matched-guise"].rows[:3], {}),
    "decision": (JOBS[:3], {"names": 1}),
    "implicit": ([row for row in CASES["implicit"].rows if row[-1][-1] in "abc"], {}),
    "honest": ([*PEOPLE[:2], *PEOPLE[-2:]], {}),
    "counterfactual": (CASES["counterfactual"].rows[:3], {}),
}
SMALLEST = re.compile(r"(with|take|see|sees|ask) .*\d|\d rows .* see smaller")


@pytest.mark.parametrize("name", PROBES)
def test_a_design_that_is_too_small_says_so(name: str, tmp_path: Path) -> None:
    rows, settings = SMALL[name]
    case = CASES[name]
    given = {**case.settings(tmp_path, case.rows if rows is None else rows), **settings}
    probe = make_probe(name, given)
    notes = probe.limits()
    assert notes
    assert all(SMALLEST.search(note) for note in notes), notes
    assert set(notes) <= set(probe.preview(frozenset(TYPES) - {"divergence"}, 0).notes)


@pytest.mark.parametrize("name", sorted({*PROBES} - {"divergence"}))
def test_the_usual_design_of_the_cases_is_large_enough(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    probe = make_probe(name, case.settings(tmp_path, case.rows))
    assert [note for note in probe.limits() if "situations" not in note] == []


def test_an_audit_tells_it_first_and_keeps_it(tmp_path: Path) -> None:
    case = CASES["crows-pairs"]
    entry = {"name": "crows-pairs", **case.settings(tmp_path, case.rows[:4])}
    suite = parse_suite({"name": "made", "probe": [entry]}, "test", "made")
    model, told = case.model(1.0), []
    job = Audit(suite, "scripted", tmp_path / "run", loaded={"scripted": model})
    job.tell = lambda note: told.append((note, model.rows_scored))
    run = job.run()
    ((note, asked),) = told
    assert asked == 0
    assert "too few writers" in note
    assert any("too few" in line for line in kind_of(run.facts).story(run).sure)
