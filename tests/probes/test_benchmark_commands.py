"""Benchmarks from the command line and as a suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.errors import EvenhandError
from evenhand.models.adapters.scripted import ScriptedModel
from made_benchmarks import pairs_file


def test_the_commands_print_json_alone_and_errors_in_a_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from evenhand.cli.main import app

    table = tmp_path / "c.csv"
    table.write_text("completion,identity,category\nliar,the boy,male\nkind,the girl,female\n")
    done = CliRunner().invoke(app, ["measure", "honest", str(table), "--json", "-"])
    assert json.loads(done.stdout)["honest"] == 0.5
    effects = tmp_path / "e.csv"
    effects.write_text("effect_size,variance\n0.0,0.1\n1.0,0.1\n")
    done = CliRunner().invoke(app, ["measure", "ceat", str(effects), "--json", "-"])
    assert json.loads(done.stdout)["tests"][0]["ces"] == pytest.approx(0.5)
    done = CliRunner().invoke(app, ["measure", "crows-pairs", str(table)])
    assert isinstance(done.exception, EvenhandError)
    assert "sent_more_score" in str(done.exception)


def test_the_suite_of_benchmarks_runs_from_a_folder_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.audit.auditing import audit
    from evenhand.audit.suites import load_suite, parse_suite

    assert {e.probe.name for e in load_suite("benchmarks").entries} >= {"crows-pairs", "bbq"}
    pairs_file(tmp_path)
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    suite = parse_suite(
        {"name": "s", "probe": [{"name": "crows-pairs", "data": "pairs.csv"}]}, "", "s"
    )
    model = ScriptedModel({"mask-score": lambda text, word: {"logprob": -float(len(text)),
                                                             "n_pieces": 1}})  # fmt: skip
    run = audit(model, suite, out=tmp_path / "run")
    assert len(run.findings) == 3
    page = (tmp_path / "run" / "report.html").read_text()
    assert "CrowS-Pairs by bias type" in page
