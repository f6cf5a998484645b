"""Imports point one way. The table below is the architecture; a wrong import fails here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "evenhand"

GROUND = {"errors", "strict"}
DATA = GROUND | {"requests", "lexicons", "conll"}
NUMBERS = DATA | {"metrics", "stats", "findings"}
ASKING = NUMBERS | {"models", "runner", "measures", "names", "contexts", "wordlists", "swaps"}
ASKING |= {"corpora", "wordsets"}
WORK = ASKING | {"probes", "mitigations", "train", "scorers"}
RECORDS = WORK | {
    "suite", "facts", "record", "room", "auditing", "planning", "calibration", "comparison",
    "gating", "catalogue", "study",
}  # fmt: skip
PAGES = RECORDS | {"report", "viewer", "exports"}

ALLOWED = {
    "errors": set(),
    "strict": set(),
    "requests": GROUND,
    "lexicons": GROUND,
    "conll": GROUND,
    "metrics": GROUND,
    "stats": GROUND,
    "findings": GROUND,
    "models": DATA | {"models"},
    "runner": DATA | {"models"},
    "measures": NUMBERS | {"models", "facts"},
    "names": NUMBERS,
    "contexts": NUMBERS | {"measures"},
    "wordlists": DATA,
    "swaps": DATA,
    "corpora": DATA | {"runner"},
    "wordsets": NUMBERS | {"models", "names", "corpora", "runner"},
    "scorers": ASKING,
    "probes": NUMBERS | {"measures", "names", "contexts", "wordlists", "swaps", "scorers"},
    "mitigations": ASKING | {"scorers"},
    "wefe": NUMBERS | {"models"},
    "train": ASKING | {"scorers"},
    "suite": WORK,
    "facts": GROUND,
    "record": NUMBERS | {"runner", "facts"},
    "room": GROUND | {"runner", "facts"},
    "auditing": RECORDS | {"report"},
    "calibration": WORK,
    "planning": RECORDS,
    "comparison": RECORDS,
    "gating": RECORDS,
    "catalogue": RECORDS,
    "study": RECORDS | {"report"},
    "report": RECORDS,
    "viewer": PAGES,
    "exports": PAGES,
    "cli": PAGES,
}
HEAVY = {"torch", "transformers", "ray", "gensim"}
NO_TORCH = {"errors", "strict", "requests", "lexicons", "metrics", "stats", "findings", "probes"}
NO_TORCH |= {"measures", "runner", "report", "viewer", "exports", "suite", "record"}
NO_TORCH |= {"facts", "room"}


def unit_of(path: Path) -> str:
    """The first part of a module's place below the package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


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
    for module, line in imports(text):
        parts = module.split(".")
        if parts[0] == "evenhand" and len(parts) > 1 and parts[1] != "__version__":
            if parts[1] != unit and parts[1] not in ALLOWED[unit]:
                found.append(f"{name}:{line}: {unit} must not import {module}")
        elif parts[0] in HEAVY and unit in NO_TORCH:
            found.append(f"{name}:{line}: {unit} must not import {parts[0]}")
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
    assert violations("from evenhand.models import causal", "probes")
    assert violations("def f():\n    import torch", "metrics")
    assert violations("from evenhand import cli", "report")
    assert violations("import evenhand.probes.base", "stats")


def test_allowed_imports_pass() -> None:
    assert not violations("from evenhand.stats import bootstrap", "probes")
    assert not violations("from evenhand import __version__", "record")
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"
    assert not violations(guarded, "metrics")
