"""Finding the reference data that lies beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data: EVENHAND_SHARED, or `shared` beside the project root."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("EVENHAND_SHARED", root.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no reference data at {folder}; set EVENHAND_SHARED")
    return folder
