"""Reports of made-up runs on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import made_runs
from browsing import axe, browser, closed_pages
from evenhand.report.build import render
from evenhand.runs.record import Run

__all__ = ["axe", "browser", "closed_pages"]


def with_report(run: Run) -> Run:
    run.report.write_bytes(render(run).encode("utf-8", "backslashreplace"))
    return run


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return with_report(made_runs.ordinary(Path(tmp_path_factory.mktemp("runs")) / "ordinary"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return with_report(made_runs.hostile(Path(tmp_path_factory.mktemp("runs")) / "hostile"))
