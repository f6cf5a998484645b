"""Programs of other environments: where they are, and how they are run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "EVENHAND_HOSTS"
"""Environment variable: a folder with an environment per program, `lm-eval` and `inspect`."""


def command(environment: str, name: str) -> str:
    """A program of an environment, or a skip that says how to get it."""
    folder = Path(os.environ.get(FOLDER, ROOT / ".venv-hosts")).absolute()
    place = folder / environment / "bin" / name
    found = str(place) if place.is_file() else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} in {folder / environment} or on the path; run: make test-hosts")
    return found


def run(program: str, *words: str, cwd: Path) -> str:
    """What a program printed; offline, on one thread."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    env.pop("PYTHONPATH", None)  # its environment has what it needs
    done = subprocess.run(
        [program, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
