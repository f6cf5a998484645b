"""Zensical's settings, with the navigation filled in from what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from website.staging import ROOT

Entry = str | dict[str, "str | list[Entry]"]
PAGES: list[tuple[str, list[str]]] = [
    ("Start", ["index.md", "start.md"]),
    ("Tutorials", ["tutorials/*"]),
    ("Concepts", ["concepts/*"]),
    ("Guide", [
        "guide.md", "python.md", "chat.md", "endpoints.md", "classifiers.md", "ranking.md",
        "labour.md", "tables.md", "benchmarks.md", "mitigation.md", "gate.md", "evidence.md",
        "report.md", "integrations.md", "languages.md", "lexicons.md", "scale.md", "statistics.md",
    ]),
    ("Gallery", ["gallery/*"]),
    ("How to", ["howto/*"]),
    ("Reference", ["api/*"]),
    ("Papers", ["papers/*"]),
    ("Lab notebook", ["lab/*"]),
    ("About", [
        "comparison.md", "faq.md", "glossary.md", "language.md", "architecture.md",
        "contributing.md", "changelog.md", "releases.md",
    ]),
    ("About/Decisions", ["decisions/*"]),
]  # fmt: skip
"""What stands where; a pattern takes every page of a folder, `index.md` first."""


def expanded(pattern: str, docs: Path) -> list[str]:
    """The pages that a line of the table stands for."""
    if not pattern.endswith("/*"):
        return [pattern] if (docs / pattern).exists() else []
    folder = docs / pattern[:-2]
    found = sorted(folder.glob("*.md"), key=lambda p: (p.stem != "index", p.stem))
    return [p.relative_to(docs).as_posix() for p in found]


def nav(docs: Path) -> list[Entry]:
    """The navigation of the staged pages.

    Raises:
        ValueError: a folder stands in no part, so that nobody would find its pages.
    """
    parts: list[Any] = []
    listed: set[str] = set()
    for title, patterns in PAGES:
        pages = [page for pattern in patterns for page in expanded(pattern, docs)]
        listed.update(pages)
        above, _, inner = title.partition("/")
        if inner:  # a part of a part
            inside = next(entry[above] for entry in parts if above in entry)
            inside.append({inner: list(pages)})
        elif pages:
            parts.append({title: list(pages)})
    there = {p.relative_to(docs).as_posix() for p in docs.rglob("*.md")}
    outside = {p for p in there if p.split("/")[0] in ("examples", "recipes")}
    lost = sorted(there - listed - outside)
    guide = next((entry["Guide"] for entry in parts if "Guide" in entry), [])
    guide += [page for page in lost if "/" not in page]  # a new page is found without an edit here
    if lost := [page for page in lost if "/" in page]:
        raise ValueError(f"pages that stand nowhere in website/config.py: {', '.join(lost)}")
    return parts


def toml(entries: list[Entry]) -> str:
    """A navigation as TOML.

    >>> toml([{"Start": ["index.md"]}])
    '[{ "Start" = ["index.md"] }]'
    """

    def one(entry: Entry) -> str:
        if isinstance(entry, str):
            return json.dumps(entry)
        ((title, inside),) = entry.items()
        held = json.dumps(inside) if isinstance(inside, str) else toml(inside)
        return f"{{ {json.dumps(title)} = {held} }}"

    return "[" + ", ".join(one(e) for e in entries) + "]"


def write(target: Path, docs: Path, site: Path) -> None:
    """The settings file of one build: `website/zensical.toml` with places and navigation."""
    text = (ROOT / "website" / "zensical.toml").read_text("utf-8")
    places = {"docs_dir": docs, "site_dir": site}  # Zensical wants them relative, and below
    values = {key: place.relative_to(target.parent).as_posix() for key, place in places.items()}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    source = json.dumps([str(ROOT / "src")])
    text = text.replace("[project]\n", f"[project]\n{lines}nav = {toml(nav(docs))}\n", 1)
    target.write_text(text.replace('["src"]', source), encoding="utf-8")
