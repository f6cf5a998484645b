"""A run that failed on its settings does not stand in the way of the corrected one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.audit.auditing import audit
from evenhand.audit.suites import parse_suite
from evenhand.errors import EvenhandError, RunError


def suite(**settings: Any) -> Any:
    probe = {"name": "underspecified", "pairs": 4, "attributes": ["nurse"], "resamples": 50}
    return parse_suite({"name": "s", "probe": [{**probe, **settings}]}, "test", "s")


def test_the_corrected_command_may_use_the_same_folder(tiny: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(EvenhandError, match="unknown template 'lettr'"):
        audit(tiny("span"), suite(templates=["lettr"]), out=folder)
    found = audit(tiny("span"), suite(templates=["letter"]), out=folder)
    assert found.facts["status"] == "finished"
    assert found.facts["attempts"] == 1
    with pytest.raises(RunError, match="holds a run with another suite"):
        audit(tiny("span"), suite(templates=["swing"]), out=folder)
