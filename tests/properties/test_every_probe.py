"""What must hold of every probe, whoever wrote it: checked on scripted models, probe by probe.

A new probe is checked too as soon as it is registered; its input and its model go into
`probe_cases.CASES`.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evenhand import plugins
from evenhand.audit.auditing import Audit
from evenhand.audit.marking import one_way
from evenhand.audit.suites import parse_suite
from evenhand.errors import EvenhandError
from evenhand.evidence.bundling import bundle
from evenhand.evidence.verifying import verify
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Measured
from evenhand.probes.registry import make_probe, probe_class
from evenhand.runner import ask
from evenhand.runner.ask import Ask
from evenhand.runs.absolute import shown_alone
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.runs.wording import people
from probe_cases import CASES, Case, Rows

PROBES = sorted(plugins.BUILT_IN[plugins.PROBES])
pytestmark = pytest.mark.parametrize("name", PROBES)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "SHARD_ROWS", (8, 32))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The finished audit of a probe on a model that leans so much; made once."""

    @cache
    def made(name: str, lean: float) -> Run:
        return audit(name, tmp_path_factory.mktemp(name), CASES[name].model(lean))

    return made


def audit(name: str, folder: Path, model: ScriptedModel, out: str = "run") -> Run:
    case = CASES[name]
    entry = {"name": name, **case.settings(folder, case.rows)}
    suite = parse_suite({"name": "made", "probe": [entry]}, "test", "made")
    loaded = {"scripted": model, **case.helpers}
    return Audit(suite, "scripted", folder / out, loaded=loaded).run()


@dataclass(frozen=True)
class Done:
    """What a probe measured, and how many questions it asked the model for it."""

    measured: Measured
    asked: int


def measured(name: str, folder: Path, rows: Rows) -> Done:
    """The probe on a leaning model, without a run folder."""
    case = CASES[name]
    probe, model = make_probe(name, case.settings(folder, rows)), case.model(1.0)
    helpers = {key: Ask(case.helpers[spec]) for key, spec in probe.helpers().items()}
    return Done(probe.run(Ask(model, helpers=helpers), seed=0), model.rows_scored)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is measured on the rows as they are; done once."""

    @cache
    def made(name: str) -> Done:
        return measured(name, tmp_path_factory.mktemp(name), CASES[name].rows)

    return made


def counted(run: Run) -> list[Finding]:
    return [f for f in run.findings if f.counts and f.detected]


def test_a_probe_has_a_case(name: str) -> None:
    assert isinstance(CASES.get(name), Case), f"put {name!r} into probe_cases.CASES"


def test_an_even_model_passes_and_a_leaning_one_is_found(name: str, audited: Any) -> None:
    assert not counted(audited(name, 0.0))
    assert counted(audited(name, 1.0))


def test_whoever_is_worse_off_is_one_group_or_nobody(name: str, audited: Any) -> None:
    """A harm names one group of its finding, or describes those a stereotype is about."""
    for lean in (1.0, -1.0):
        for f in audited(name, lean).findings:
            who, colon, how = f.harm.partition(": ")
            assert not (f.harm and f.difference), f.id
            if not f.detected:
                assert not f.harm, f.id
                assert not f.difference, f.id
            card = probe_class(name).card(f.metric)
            if card.relative and f.counts:
                assert {"absolute", "absolute_low", "absolute_high"} <= set(f.details), f.id
                assert bool(f.harm) <= shown_alone(f), f.id
            if not f.harm:
                continue
            groups = {*f.groups, *map(people, f.groups)}
            described = one_way(card) or "{first}: " not in card.harm
            one = who.removeprefix("speakers of ") in groups - {"the others"}
            assert one or (described and who.startswith("those ") and " and " not in who), f.harm
            assert colon, f.harm
            assert how, f.harm


def test_placebos_stay_quiet(name: str, usual: Any) -> None:
    placebos = usual(name).measured.placebos
    tests, alarms = sum(p.tests for p in placebos), sum(p.alarms for p in placebos)
    assert tests >= 100  # made of scores that were asked anyway
    assert alarms <= 0.07 * tests


def test_a_run_tells_how_often_placebos_fired(name: str, audited: Any) -> None:
    for lean in (0.0, 1.0):
        told = audited(name, lean).facts["placebos"][name]
        assert told["tests"] >= 100
        assert told["rate"] == told["detected"] / told["tests"] <= 0.07


def test_without_placebos_there_is_a_reason(name: str, tmp_path: Path) -> None:
    """The smallest input that a probe takes may be too small to be split; then it says so."""
    case = CASES[name]
    try:
        found = measured(name, tmp_path, case.rows[: max(2, len(case.rows) // 8)])
    except EvenhandError:
        return
    placebos = found.measured.placebos
    assert placebos
    assert all((p.tests > 0) != bool(p.reason) for p in placebos)


def test_the_order_of_rows_does_not_matter(name: str, usual: Any, tmp_path: Path) -> None:
    rows = CASES[name].rows
    turned = measured(name, tmp_path, [*rows[1::2], *reversed(rows[::2])])
    assert_same(name, usual(name).measured.findings, turned.measured.findings)


def test_duplicates_do_not_matter(name: str, usual: Any, tmp_path: Path) -> None:
    """Doubled rows change no value and make nothing surer, and nothing is asked twice."""
    rows = CASES[name].rows
    try:
        doubled = measured(name, tmp_path, [*rows, *rows])
    except EvenhandError:
        return
    assert doubled.asked == usual(name).asked
    assert_same(name, usual(name).measured.findings, doubled.measured.findings)


def assert_same(name: str, one: list[Finding], two: list[Finding]) -> None:
    """Equal values, within what draws in another order may move; nothing is surer than before.

    A pair of groups may be named the other way round, and a signed value then has the other sign.
    """
    known = {_key(f): f for f in one}
    assert len(known) == len(one)
    assert set(known) == {_key(f) for f in two}
    for f in two:
        was = known[_key(f)]
        turned = f.groups != was.groups and f.value * was.value < 0
        value = pytest.approx(
            -was.value if turned else was.value, rel=CASES[name].drawn, nan_ok=True
        )
        assert f.value == value, f.id
        assert f.n == was.n, f.id
        assert f.p >= 0.5 * was.p or math.isnan(was.p), f.id


def _key(finding: Finding) -> tuple[Any, ...]:
    return finding.metric, finding.attribute, frozenset(finding.groups)


def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    name: str, audited: Any, tmp_path: Path
) -> None:
    whole = audited(name, 1.0)
    stopped = CASES[name].model(1.0)
    answer, calls = stopped.answer, []
    last = min(2, whole.facts["probes"][name]["counts"]["shards"])

    def until(requests: Any, prepared: Any) -> Any:
        calls.append(1)
        if len(calls) == last:
            raise KeyboardInterrupt
        return answer(requests, prepared)

    stopped.answer = until  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        audit(name, tmp_path, stopped)
    begun = len(list((tmp_path / "run" / "scores").glob("*.parquet")))
    run = audit(name, tmp_path, CASES[name].model(1.0))
    assert begun >= last - 1
    assert run.facts["shards"]["scored_by_attempt"].get("1", 0) == begun
    assert (run.folder / "findings.json").read_bytes() == (
        whole.folder / "findings.json"
    ).read_bytes()


def test_nothing_to_ask_is_refused_or_undefined_with_a_reason(name: str, tmp_path: Path) -> None:
    try:
        found = measured(name, tmp_path, []).measured.findings
    except EvenhandError:
        return
    assert all(math.isnan(f.value) and f.reason for f in found)


def test_findings_are_strict_json_with_every_field(name: str, audited: Any) -> None:
    for lean in (0.0, 1.0):
        raw = (audited(name, lean).folder / "findings.json").read_text(encoding="utf-8")
        data = json.loads(raw, parse_constant=pytest.fail)
        assert data["findings"]
        for row in data["findings"]:
            assert list(row) == [f.name for f in fields(Finding)]
            assert row["sentence"]
            assert row["value"] is not None or row["reason"]


def test_its_bundle_is_computed_again_without_the_model(name: str, audited: Any) -> None:
    run = audited(name, 1.0)
    found = verify(bundle(run, run.folder.with_name("evidence.tar")))
    assert found.ok, found.reason


def test_the_report_says_what_was_found(name: str, audited: Any) -> None:
    run = audited(name, 1.0)
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    text = html.unescape(page)
    assert counted(run)[0].sentence in text
    probe = make_probe(name, run.facts["probes"][name]["settings"])
    assert probe.title in text
    if set(type(probe).charts()) & set(run.tables(name)):
        assert "vega-lite" in page
