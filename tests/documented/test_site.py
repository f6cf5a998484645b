"""The site's parts that need no build: navigation, links, tutorials, and where things come from."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from doc_blocks import ROOT, pages

sys.path.append(str(ROOT))
from website import config, staging, tutorials

LINK = re.compile(r"(?<!`)\]\((?!https?:|mailto:)([^)\s]*)\)")
GENERATED = {"gallery", "api"}
"""Folders that are made while the site is built."""


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as the site makes them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"[^\w\s-]", "", h).strip().lower() for h in heads]
    return {re.sub(r"[\s]+", "-", h) for h in plain}


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    wrong = []
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.is_relative_to(ROOT / "docs"):
            if target.relative_to(ROOT / "docs").parts[0] in GENERATED:
                continue
            if target.parent.name == "tutorials":  # notebooks, which become pages
                target = target.with_suffix(".ipynb")
        headless = target.suffix == ".md" and target.exists() and anchor not in anchors(target)
        if not target.exists() or (anchor and headless):
            wrong.append(link)
    assert wrong == []


def test_every_page_stands_in_the_navigation(tmp_path: Path) -> None:
    staging.stage(tmp_path / "docs")
    told = config.toml(config.nav(tmp_path / "docs"))
    listed = set(re.findall(r'"([\w./-]+\.md)"', told))
    assert {
        p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")
    } <= listed
    (tmp_path / "docs" / "new.md").write_text("# New\n")
    assert '"new.md"' in config.toml(config.nav(tmp_path / "docs"))
    (tmp_path / "docs" / "lost").mkdir()
    (tmp_path / "docs" / "lost" / "page.md").write_text("# Lost\n")
    with pytest.raises(ValueError, match=r"stand nowhere in website/config.py: lost/page.md"):
        config.nav(tmp_path / "docs")


def test_links_to_files_beside_the_pages_are_staged() -> None:
    moved = staging.relinked("[a](../examples/x.sh) [b](../CHANGELOG.md#new)", Path("scale.md"))
    assert moved == "[a](examples/x.sh) [b](changelog.md#new)"
    assert staging.relinked("[c](../../CHANGELOG.md)", Path("papers/liang.md")) == (
        "[c](../changelog.md)"
    )
    assert staging.relinked("[b](gate.md#errors)", Path("papers/x.md")) == "[b](gate.md#errors)"


def test_nothing_is_fetched_by_a_reader() -> None:
    told = tomllib.loads((ROOT / "website" / "zensical.toml").read_text())["project"]
    assert told["theme"]["font"] is False
    assert set(told["plugins"]) == {"mkdocstrings"}  # offline search would load a script
    for path in (ROOT / "website" / "assets").iterdir():
        assert "http" not in path.read_text(encoding="utf-8")


def test_docstrings_become_markdown() -> None:
    pytest.importorskip("griffe", reason="needs the docs extra")
    from website import docstrings

    made = docstrings.fenced("Twice.\n>>> 1 + 1\n2\n\nEnd.").split("\n")
    assert made == ["Twice.", "", "```pycon", ">>> 1 + 1", "2", "```", "", "End."]
    made = docstrings.parted("    low, high: the interval.")
    assert made == "    low: the interval.\n    high: the interval."


@pytest.mark.parametrize("path", tutorials.notebooks(), ids=lambda p: p.stem)
def test_tutorials_were_executed_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in held["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error"]
    said = "".join("".join(o.get("text", [])) for o in outputs)
    assert "/tmp/" not in said
    assert "\x1b" not in said
    assert "May it ship?" in said
    pytest.importorskip("nbformat", reason="needs the docs extra")
    page = tutorials.as_markdown(path, tmp_path)
    assert page.startswith("# ")
    assert page.count("```python") + page.count("```sh") == len(code)


def test_there_are_four_tutorials() -> None:
    assert len(tutorials.notebooks()) == 4
