"""Hub ids: the real loading code, on a local cache laid out as the Hub's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import SpecError

LOAD = """
import sys
from evenhand.models.loading.resolver import resolve
model = resolve(sys.argv[1])
print(model.kind, model.name)
"""


def lay_out(folder: str, cache: Path) -> None:
    home = cache / "models--someone--tiny"
    commit = "0123456789012345678901234567890123456789"
    shutil.copytree(folder, home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)


def test_a_hub_id_is_loaded_from_the_local_cache_without_a_network(
    tiny: Any, tmp_path: Path
) -> None:
    lay_out(tiny("masked"), tmp_path)
    env = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, "someone/tiny"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["masked", "someone/tiny"]


def test_a_hub_id_that_is_not_there_says_so(tmp_path: Path) -> None:
    env = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "check", "nobody/nothing"],
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 2
    assert "HF_HUB_OFFLINE=1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_revision_belongs_to_the_hub(tiny: Any) -> None:
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions

    with pytest.raises(SpecError, match="only models of the Hub have revisions"):
        resolve(tiny("masked"), revision="main")
    assert LoadOptions(revision="abc").for_others().revision is None
    assert LoadOptions(revision="abc").chosen() == {"revision": "abc"}
