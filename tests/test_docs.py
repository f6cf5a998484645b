"""The pages name things that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {p.stem for p in (ROOT / "src" / "evenhand").iterdir() if p.name[0] not in "_."}
GONE = {"measures", "scorers", "contexts", "wordsets"}
"""Rooms that there were."""
NAME = re.compile(r"`(?:evenhand\.)?([a-z_]+(?:\.\w+)+)")
FILES = {"py", "json", "toml", "html", "parquet", "md", "csv"}
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def exists(dotted: str) -> bool:
    """Whether a name below `evenhand` is a module or something in one."""
    parts = f"evenhand.{dotted}".split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_name_of_ours_on_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {n for n in NAME.findall(text) if n.split(".")[-1] not in FILES}
    wrong = sorted(n for n in named if n.split(".")[0] in ROOMS | GONE and not exists(n))
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_test_file_on_a_page_exists(page: Path) -> None:
    known = {p.name for p in (ROOT / "tests").rglob("*.py")}
    named = set(re.findall(r"\btest_[a-z_]+\.py", page.read_text(encoding="utf-8")))
    assert named <= known
    paths = re.findall(r"`((?:tests|src|benchmarks|recipes|docs)/[\w./-]+\w)`", page.read_text())
    assert [p for p in paths if not (ROOT / p).exists()] == []
