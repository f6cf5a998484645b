"""Verdicts hold: the calibration bench in small, and nothing that yields a verdict left out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.calibrated import covered
from benchmarks.calibration import Row, calibrate, known

import evenhand
from evenhand.plugins import BUILT_IN, PROBES

REPETITIONS = 10
CORRECTS = re.compile(
    r"(?<!def )\b(benjamini_hochberg|hierarchical|over_families|with_q)\(|(?<!class )\bTest\("
)
OUTSIDE = {"stats", "compare"}
"""Rooms whose corrections every path goes through."""
BASES = {"evenhand.probes.shared.contrast"}  # a t test over pairs
ROOT = Path(evenhand.__file__).parent


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {name: calibrate(name, REPETITIONS) for name in known()}


@pytest.mark.parametrize("name", known())
def test_fair_models_are_called_even_and_planted_effects_are_found(
    rows: dict[str, Row], name: str
) -> None:
    """Of ten repetitions, so wide: each bound is passed by chance in 1 of 10,000 cases or fewer."""
    row = rows[name]
    assert row.false_alarms <= 0.4
    assert not row.coverage < 0.6
    assert row.any_detection <= 0.4
    assert not row.power < 0.3


def test_all_paths_together_are_as_often_right_as_they_say(rows: dict[str, Row]) -> None:
    """Over the paths alarms, coverage, detections and power are near 0.05, 0.95, 0.05 and 0.80."""
    mean = np.nanmean(
        [(r.false_alarms, r.coverage, r.any_detection, r.power) for r in rows.values()], axis=0
    )
    assert 0.03 <= mean[0] <= 0.07
    assert 0.93 <= mean[1] <= 0.97
    assert mean[2] <= 0.08
    assert 0.7 <= mean[3] <= 0.9


def test_every_probe_has_a_row() -> None:
    rows = {name.partition(",")[0] for name in known()}
    assert set(BUILT_IN[PROBES]) <= rows  # others may be made by examples


def test_every_module_that_corrects_p_values_is_gone_through() -> None:
    found = {
        "evenhand." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in ROOT.rglob("*.py")
        if file.parent.name not in OUTSIDE and CORRECTS.search(file.read_text(encoding="utf-8"))
    }
    assert found - BASES == covered()
