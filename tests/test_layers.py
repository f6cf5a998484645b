"""Imports point one way. The table below is the architecture; a wrong import fails here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "evenhand"

GROUND = {"errors", "strict", "seals", "settings", "plugins", "requests", "opening", "writing"}
GROUND |= {"systems", "arrays", "confined"}
NUMBERS = GROUND | {"metrics", "stats"}
TEXT = NUMBERS | {"words", "corpora"}
RUNS = TEXT | {"charts", "runs", "runner", "models"}
PAGES = RUNS | {"compare", "probes", "report"}
WORK = PAGES | {"audit", "train"}
ABOVE = WORK | {"mitigations", "study", "measured"}

ALLOWED = {
    "errors": set(),
    "strict": set(),
    "seals": {"errors", "strict"},
    "settings": {"errors"},
    "plugins": {"errors"},
    "opening": {"errors", "systems"},
    "confined": {"errors"},
    "arrays": {"confined", "errors", "opening"},
    "writing": {"errors", "systems"},
    "systems": set(),
    "requests": {"errors", "strict"},
    "metrics": {"errors", "strict", "stats"},
    "stats": {"errors", "strict"},
    "words": NUMBERS,
    "words.sets": TEXT | {"models", "runner"},
    "corpora": TEXT | {"runner"},
    "charts": GROUND,
    "models": GROUND | {"words"},
    "runner": GROUND | {"models"},
    "runs": GROUND | {"charts", "runner"},
    "compare": RUNS | {"audit"},
    "probes": RUNS | {"compare"},
    "report": RUNS | {"probes"},
    "audit": PAGES,
    "train": RUNS | {"probes"},
    "mitigations": WORK,
    "study": WORK | {"mitigations"},
    "measured": WORK,
    "compat": RUNS,
    "exports": ABOVE,
    "evidence": ABOVE,
    "viewer": ABOVE | {"exports"},
    "measure": GROUND | {"probes"},
    "integrations": ABOVE | {"exports"},
    "cli": ABOVE | {"exports", "evidence", "integrations", "viewer"},
}
HEAVY = {"torch", "transformers", "ray", "gensim"}
NO_TORCH = {
    "errors",
    "strict",
    "plugins",
    "requests",
    "words",
    "metrics",
    "stats",
    "charts",
    "runs",
}
NO_TORCH |= {"probes", "runner", "report", "viewer", "exports", "evidence", "audit"}

ROLES = {
    "chart.py": {"numpy", "scipy", "torch", "sklearn"},
    "measure.py": {"torch", "transformers"},
    "cards.py": {"numpy", "scipy", "torch", "sklearn", "pyarrow"},
}
"""What a file of that name must not import, in any probe or mitigation."""
ROOM_ROLES = {"cli": {"evenhand.stats", "evenhand.metrics", "numpy", "scipy", "torch"}}
"""What no file of a room may import, whatever its name."""


def unit_of(path: Path) -> str:
    """The longest entry of the table that holds a module."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    names = [".".join(parts[: k + 1]) for k in range(len(parts))]
    return next((n for n in reversed(names) if n in ALLOWED), names[0])


def imports(text: str) -> Iterator[tuple[str, int]]:
    """Imported module names with their line; imports for type checking do not count."""
    tree = ast.parse(text)
    skipped = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "evenhand":
                yield from ((f"evenhand.{a.name}", node.lineno) for a in node.names)
            else:
                yield node.module, node.lineno


def violations(text: str, unit: str, name: str = "") -> list[str]:
    """What a module of a unit imports but must not."""
    found = []
    room = unit.split(".")[0]
    banned = ROLES.get(name.rpartition("/")[2], set()) | ROOM_ROLES.get(room, set())
    for module, line in imports(text):
        parts = module.split(".")
        if parts[0] == "evenhand" and len(parts) > 1 and parts[1] != "__version__":
            if parts[1] != room and parts[1] not in ALLOWED[unit]:
                found.append(f"{name}:{line}: {unit} must not import {module}")
        elif parts[0] in HEAVY and room in NO_TORCH:
            found.append(f"{name}:{line}: {unit} must not import {parts[0]}")
        if any(module == b or module.startswith(f"{b}.") for b in banned):
            found.append(f"{name}:{line}: a file of this role must not import {module}")
    return found


def test_imports_point_one_way() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        unit = unit_of(path)
        if unit in ("__init__", "__main__"):
            continue
        assert unit in ALLOWED, f"{path}: put {unit!r} into the layer table"
        found += violations(path.read_text(), unit, str(path.relative_to(SOURCE)))
    assert not found, "\n".join(found)


def test_a_planted_wrong_import_is_caught() -> None:
    assert violations("from evenhand.audit import suites", "probes")
    assert violations("def f():\n    import torch", "metrics")
    assert violations("from evenhand import cli", "report")
    assert violations("import evenhand.probes.base", "stats")
    assert violations("import numpy as np", "probes", "probes/bbq/chart.py")
    assert violations("from evenhand.stats import power", "cli", "cli/look.py")


def test_allowed_imports_pass() -> None:
    assert not violations("from evenhand.stats import bootstrap", "probes")
    assert not violations("from evenhand import __version__", "runs")
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"
    assert not violations(guarded, "metrics")
