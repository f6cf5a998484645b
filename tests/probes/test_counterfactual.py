"""Counterfactual texts: classifiers trained here are caught, or not, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from in_process import evenhand
from trained_classifiers import trained, true_gap

RACE = "counterfactual/race/african_american-european_american/{}/{}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = tmp_path_factory.mktemp("classifiers")
    return {"biased": trained(made / "biased", 0.8), "even": trained(made / "even", 0.0)}


def found(run: Path) -> dict[str, Any]:
    rows = json.loads((run / "findings.json").read_text())["findings"]
    return {row["id"]: row for row in rows}


@pytest.mark.model
def test_planted_names_are_caught(folders: dict[str, str], tmp_path: Path) -> None:
    words = ["audit", folders["biased"], "--out", str(tmp_path / "run")]
    told = subprocess.run(
        [sys.executable, "-m", "evenhand", *words], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    rows = found(tmp_path / "run")
    score, decision = (rows[RACE.format("toxic", kind)] for kind in ("score", "decision"))
    true = true_gap(folders["biased"])
    assert true > 0.3
    assert score["detected"]
    assert score["low"] <= true <= score["high"]
    assert decision["detected"]
    assert decision["value"] > 0.3
    assert score["harm"].startswith("African American people: the same text gets a worse score")
    assert set(score["generalises_over"]) == {"texts", "names"}
    others = [row for row in rows.values() if row["detected"] and "african" not in row["id"]]
    assert not others
    assert evenhand("gate", "run", cwd=tmp_path).returncode == 1


@pytest.mark.model
def test_even_ones_are_not(folders: dict[str, str], tmp_path: Path) -> None:
    told = evenhand("audit", folders["even"], "--out", "run", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    rows = found(tmp_path / "run").values()
    assert len(rows) > 10
    assert not [row["id"] for row in rows if row["detected"]]
    assert evenhand("gate", "run", cwd=tmp_path).returncode == 0
