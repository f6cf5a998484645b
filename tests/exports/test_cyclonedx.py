"""CycloneDX: a bill of materials that the project's own validator takes, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.exports import export
from evenhand.exports.cards import bom
from evenhand.runs.counting import counted
from evenhand.runs.record import Run


@pytest.mark.parametrize("which", ["ordinary", "hostile"])
def test_cyclonedxs_own_validator_takes_it(request: Any, which: str) -> None:
    json_ = pytest.importorskip("cyclonedx.validation.json", reason="needs cyclonedx-python-lib")
    from cyclonedx.schema import SchemaVersion

    (raw,) = export(request.getfixturevalue(which), "cyclonedx").values()
    assert json_.JsonStrictValidator(SchemaVersion.V1_6).validate_str(raw.decode()) is None


def test_it_holds_every_finding_that_counts_and_who_is_worse_off(ordinary: Run) -> None:
    (component,) = bom(ordinary)["components"]
    card = component["modelCard"]
    found = [f for f in counted(ordinary.findings) if f.value == f.value]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    assert [float(m["value"]) for m in metrics] == [f.value for f in found]
    ends = [m["confidenceInterval"]["lowerBound"] for m in metrics if "confidenceInterval" in m]
    assert ends == [repr(f.low) for f in found if f.low == f.low]
    harmed = [f for f in found if f.detected and f.harm]
    assessed = card["considerations"]["fairnessAssessments"]
    assert [row["groupAtRisk"] for row in assessed] == [f.harm.partition(":")[0] for f in harmed]
    assert all(row["groupAtRisk"] for row in assessed)
    assert any("Not measured" in t for t in card["considerations"]["technicalLimitations"])
    assert json.dumps(bom(ordinary)) == json.dumps(bom(ordinary))
