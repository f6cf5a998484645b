"""`evenhand probe NAME --help` tells every setting, with something to type."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evenhand.cli.probe_help import told
from evenhand.cli.run import parse_settings
from evenhand.probes.registry import probe_class, probe_names
from in_process import evenhand


@pytest.mark.parametrize("name", probe_names())
def test_every_setting_has_a_type_a_default_and_an_example_that_can_be_typed(name: str) -> None:
    probe = probe_class(name)
    text = told(probe)
    assert probe.title in " ".join(text.split())
    for setting in probe.model_fields:
        if setting == "as_published":
            continue
        assert f"\n  {setting} (" in text
        line = next(row for row in text.splitlines() if row.startswith(f"      --set {setting}="))
        value = parse_settings([shlex.split(line)[1]])[setting]
        held = {n: "x" for n, f in probe.model_fields.items() if f.is_required()}
        probe.model_validate({**held, setting: value})


def test_a_named_probe_changes_the_help_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    own = evenhand("probe", "decision", "--help", cwd=tmp_path)
    assert own.returncode == 0
    assert "--set names=8" in own.stdout
    assert "the smallest useful list has 4 terms per group" in " ".join(own.stdout.split())
    for words in (["probe", "--help"], ["probe", "decisoin", "--help"]):
        usual = evenhand(*words, cwd=tmp_path)
        assert usual.returncode == 0
        assert "Run one probe on a model" in usual.stdout
