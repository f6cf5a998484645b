"""Made-up runs to export."""

from __future__ import annotations

from pathlib import Path

import pytest

import made_runs
from evenhand.runs.record import Run


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made_runs.ordinary(Path(tmp_path_factory.mktemp("runs")) / "ordinary")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made_runs.hostile(Path(tmp_path_factory.mktemp("runs")) / "hostile")
