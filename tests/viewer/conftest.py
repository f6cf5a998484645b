"""A viewer over made-up runs, served for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import made_runs
from browsing import axe, browser, closed_pages

__all__ = ["axe", "browser", "closed_pages"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two ordinary runs, a hostile one, a damaged one and something else."""
    from evenhand.report.build import render
    from evenhand.runs.record import RunWriter

    folder = Path(tmp_path_factory.mktemp("viewed"))
    for run in (
        made_runs.ordinary(folder / "first"),
        made_runs.ordinary(folder / "second", model="other-model"),
        made_runs.hostile(folder / "hostile"),
    ):
        RunWriter(run.folder).page(render(run))
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text('{"format": 1, "work"')
    (folder / "no-run").mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="session")
def address(runs: Path) -> Iterator[str]:
    pytest.importorskip("uvicorn", reason="needs the web extra")
    pytest.importorskip("starlette", reason="needs the web extra")
    from evenhand.viewer import Server

    with Server(runs) as server:
        yield server.address
