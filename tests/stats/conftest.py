"""Fixtures of the statistics tests: reference files, when they are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of reference data, or a skip that says where it was looked for."""
    named = os.environ.get("EVENHAND_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip(f"no reference data in {folder}; set EVENHAND_SHARED")
    return folder
