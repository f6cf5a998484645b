"""Pages as Zensical takes them: copies of `docs/` and of the project's own files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the project's root that are pages too."""
OUTSIDE = ("examples", "recipes")
"""Folders that pages link to; their files are copied as they are."""


def relinked(text: str, page: Path) -> str:
    """Links of a page of `docs/` to files beside `docs/`, as they are from the staged page.

    >>> relinked("[a](../examples/x.sh) [b](../CHANGELOG.md#new)", Path("scale.md"))
    '[a](examples/x.sh) [b](changelog.md#new)'
    >>> relinked("[b](gate.md#errors), [c](../../CHANGELOG.md)", Path("papers/liang.md"))
    '[b](gate.md#errors), [c](../changelog.md)'
    """
    up = "../" * len(page.parts)

    def moved(found: re.Match[str]) -> str:
        return f"]({up[3:]}{BESIDE.get(found[1], found[1])}"

    return re.sub(rf"\]\({re.escape(up)}(\w[\w./-]*)", moved, text)


def stage(target: Path) -> None:
    """Fill an empty folder with all pages that are written by hand."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.ipynb", "*.md"))
    for page in sorted(DOCS.rglob("*.md")):
        inside = page.relative_to(DOCS)
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        (target / inside).write_text(relinked(page.read_text("utf-8"), inside), encoding="utf-8")
    for source, name in BESIDE.items():
        text = (ROOT / source).read_text("utf-8")
        (target / name).write_text(re.sub(r"\]\(docs/", "](", text), encoding="utf-8")
    for folder in OUTSIDE:
        shutil.copytree(ROOT / folder, target / folder, ignore=shutil.ignore_patterns("__py*"))
