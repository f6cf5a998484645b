"""p, q, interval and verdict of one finding agree, in every probe and whatever the model does.

Before correction p <= 0.05 exactly when the 95 % interval leaves the ideal out; over a suite a
finding is detected exactly when the interval at the level for picked findings leaves it out.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import probe_cases
from evenhand import plugins
from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.audit.verdicts import decided
from evenhand.errors import ModelError, SpecError
from evenhand.exports import export
from evenhand.probes.base import Measured
from evenhand.probes.registry import make_probe
from evenhand.runner.ask import Ask
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.stats.selection import hierarchical, picked_level

RATE = 0.05
PROBES = sorted(plugins.BUILT_IN[plugins.PROBES])
MODELS = ((0.0, ""), (0.0, "b"), (0.0, "c"), (0.05, "d"), (0.15, "e"), (0.3, "f"), (1.0, ""))
"""Even, noisy and planted models: how far each leans, and which noise it has."""
CONTEXT = {"gamma", "gamma_group", "gamma_term"}
"""UnQover's own tables: exact p of flips beside an interval over names, no verdict."""
QUIET = re.compile(r"\b[Nn]ot?\b.*\bdetected\b")
HEDGES = re.compile(r"\b(may|might|perhaps|possibly|seems?|hint|tends?)\b")
pytestmark = pytest.mark.parametrize("name", PROBES)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a probe finds in a model, without a run folder; made once."""

    @cache
    def made(name: str, lean: float, salt: str) -> Measured:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                probe_cases, "noise",
                lambda *parts: zlib.crc32("|".join([salt, *parts]).encode()) / 2**31 - 1,
            )  # fmt: skip
            case = probe_cases.CASES[name]
            folder = tmp_path_factory.mktemp(name)
            probe = make_probe(name, case.settings(folder, case.rows))
            helpers = {key: Ask(case.helpers[spec]) for key, spec in probe.helpers().items()}
            return probe.run(Ask(case.model(lean), helpers=helpers), seed=0)

    return made


def leaves_out(low: float, high: float, ideal: float) -> bool:
    return not low <= ideal <= high


def with_p(findings: list[Finding]) -> list[Finding]:
    return [f for f in findings if f.p == f.p]


def test_p_and_interval_agree_before_correction(name: str, measured: Any) -> None:
    for lean, salt in MODELS:
        found = with_p(measured(name, lean, salt).findings)
        assert found, (lean, salt)
        for f in found:
            assert (f.p <= RATE) == leaves_out(f.low, f.high, f.ideal), f
            assert f.q != f.q or f.q >= f.p * (1 - 1e-9), f


def test_the_verdict_and_the_picked_interval_agree(name: str, measured: Any) -> None:
    for lean, salt in MODELS:
        claims = measured(name, lean, salt)
        mine = [replace(f, model="m", probe=name) for f in claims.findings]
        rows = decided(mine, "m", RATE, unlisted={name: claims.unlisted})
        [family] = hierarchical([[*(f.p for f in with_p(mine) if not f.control), *claims.unlisted]])
        picked = max(1, int((family.q <= RATE).sum()))
        level = picked_level(picked, int((family.q == family.q).sum()))
        for f in with_p(rows):
            assert f.detected == (f.q <= RATE), f
            assert not f.detected or leaves_out(f.low, f.high, f.ideal), f
            if f.error > 0 and not f.control:
                shown = Estimate(f.value, f.error, f.freedom).at(level)
                assert f.detected == leaves_out(shown.low, shown.high, f.ideal), f
            if f.detected is False:
                assert not leaves_out(f.low, f.high, f.ideal) or f.p <= RATE, f


def test_tables_agree(name: str, measured: Any) -> None:
    """The same in every table with p and an interval that the probe writes."""
    for lean, salt in MODELS:
        claims = measured(name, lean, salt)
        [ideal] = {f.ideal for f in with_p(claims.findings)}
        for table, content in claims.tables.items():
            ends = [c for c in content.column_names if c in ("low", "effect_size_low", "ss_low")]
            if table in CONTEXT or "p" not in content.column_names:
                continue
            for row in content.to_pylist() if ends else ():
                low, high = row[ends[0]], row[ends[0].replace("low", "high")]
                if row["p"] is not None and row["p"] == row["p"]:
                    assert (row["p"] <= RATE) == leaves_out(low, high, ideal), (table, row)


def test_sentences_fit_the_verdict(name: str, measured: Any) -> None:
    """The hedge is the verdict; n has units; examples are typical, and stand only with a claim."""
    for lean, salt in MODELS:
        claims = measured(name, lean, salt)
        mine = [replace(f, model="m", probe=name) for f in claims.findings]
        for f in with_p(decided(mine, "m", RATE, unlisted={name: claims.unlisted})):
            assert bool(QUIET.search(f.sentence)) is not f.detected, f.sentence
            assert not HEDGES.search(f.sentence), f.sentence
            assert f.n > 0, f
            assert f.units, f
            assert f.generalises_over, f
            assert f.detected or not f.examples, f
            assert all(example["typical"] for example in f.examples), f
            assert (f.shrunken == f.shrunken) == bool(f.detected), f


def test_published_rules_say_what_the_verdict_is_too(name: str, tmp_path: Path) -> None:
    case = probe_cases.CASES[name]
    for lean in (0.0, 1.0):
        try:
            probe = make_probe(name, {**case.settings(tmp_path, case.rows), "as_published": True})
            helpers = {key: Ask(case.helpers[spec]) for key, spec in probe.helpers().items()}
            found = probe.run(Ask(case.model(lean), helpers=helpers), seed=0).findings
        except (ModelError, SpecError):  # the released rules need another input
            return
        for f in decided([replace(f, model="m", probe=name) for f in found], "m", RATE):
            if f.detected is not None:
                assert bool(QUIET.search(f.sentence)) is not f.detected, f.sentence


def test_files_say_what_the_verdict_is(name: str, tmp_path: Path) -> None:
    """findings.json and the exported table carry the verdict and the sentence that fits it."""
    case = probe_cases.CASES[name]
    entry = {"name": name, **case.settings(tmp_path, case.rows)}
    suite = parse_suite({"name": "made", "probe": [entry]}, "test", "made")
    loaded = {"scripted": case.model(0.15), **case.helpers}
    run = Audit(suite, "scripted", tmp_path / "run", loaded=loaded).run()
    rows = json.loads((run.folder / "findings.json").read_text())["findings"]
    text = export(run, "csv")["findings.csv"].decode()
    lines = {line["id"]: line for line in csv.DictReader(io.StringIO(text))}
    assert rows
    for row in rows:
        assert not row["otherwise"]
        if row["detected"] is False:
            said = lines[row["id"]]
            assert QUIET.search(row["sentence"]), row["sentence"]
            assert said["detected"] == "False"
            assert said["sentence"] == row["sentence"]
        if row["detected"]:
            assert leaves_out(row["low"], row["high"], row["ideal"]), row
