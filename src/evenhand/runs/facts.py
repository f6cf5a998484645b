"""Reading run.json, which a full disk, an editor or a copy may have damaged.

Everything that reads a run goes through `read_facts`, so damage is one message that says what
to do, and the rest of the code can rely on what it finds. Scores do not depend on run.json: their
files are named by what was asked of whom.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import RunError, name_problem
from evenhand.opening import once
from evenhand.seals import unsealed

FORMAT = 1
NAME = "run.json"
FILES = "files"
"""Key of the SHA-256 of every other file whose contents are shown, by its path in the folder."""
NUMBER = (int, float)
REQUIRED: Mapping[str, Any] = {
    "status": str,
    "attempts": int,
    "models": dict,
    "probes": dict,
    "work": dict,
    "work.model": str,
    "work.seed": int,
    "work.suite": dict,
    "work.suite.name": str,
}
OPTIONAL: Mapping[str, Any] = {
    "format": int,
    "started": str,
    "environment": dict,
    "timings": dict,
    "shards": dict,
    "controls": dict,
    "scores": str,
    FILES: dict,
    "work.store": str,
    "work.suite.probe": list,
    "work.suite.false_discovery_rate": NUMBER,
}
WORDS = {str: "text", int: "a number", NUMBER: "a number", dict: "an object", list: "a list"}


def read_facts(folder: Path) -> dict[str, Any]:
    """What run.json of a folder holds.

    Raises:
        RunError: it cannot be read, is damaged, or was written by a newer version.
    """
    path = folder / NAME
    try:
        found = json.loads(path.read_bytes().decode(), object_pairs_hook=once)
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read ({error.strerror or error}). Make it readable, or list "
            f"runs with: evenhand ls runs"
        ) from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error)) from error
    if not isinstance(found, dict):
        raise damaged(path, f"expected an object, found {_shown(found)}")
    version = found.get("format", 0)
    if isinstance(version, int) and version > FORMAT:
        raise RunError(
            f"{folder}: written in format {version}, this version reads up to {FORMAT}. Upgrade "
            f"with: pip install -U evenhand"
        )
    for wrong in problems(found):
        raise damaged(path, wrong)
    if not unsealed(found):
        raise damaged(path, "it is not what was written")
    return found


def problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is missing or of a wrong kind.

    >>> next(problems({"status": "finished"}))
    "'attempts' is missing"
    """
    for place, kind in REQUIRED.items():
        yield from _problem(facts, place, kind, required=True)
    for place, kind in OPTIONAL.items():
        yield from _problem(facts, place, kind, required=False)
    for name, model in facts["models"].items():
        yield from _problem({"models": model}, "models", dict, required=True)
        yield from _problem(model, "fingerprint", str, required=False, within=f"models.{name}.")
    for label, entry in facts["probes"].items():
        if name_problem(label):
            yield f"'probes' has the key {label!r}: {name_problem(label)}"
        yield from _problem({"probes": entry}, "probes", dict, required=True)
        within = f"probes.{label}."
        yield from _problem(entry, "probe", str, required=True, within=within)
        for part in ("settings", "summary", "counts"):
            needed = part != "counts" and not entry.get("skipped")
            yield from _problem(entry, part, dict, required=needed, within=within)


def _problem(
    facts: Any, place: str, kind: Any, *, required: bool, within: str = ""
) -> Iterator[str]:
    value: Any = facts
    for part in place.split("."):
        if not isinstance(value, dict) or part not in value:
            if required:
                yield f"{within + place!r} is missing"
            return
        value = value[part]
    if not isinstance(value, kind):
        yield f"{within + place!r} is {_shown(value)}, expected {WORDS[kind]}"


def damaged(path: Path, why: str) -> RunError:
    """The message for a run.json that cannot be used."""
    own, aside = shlex.quote(str(path)), shlex.quote(f"{path}.damaged")
    return RunError(
        f"{path} is damaged ({why.rstrip('.')}). The scores are kept: move it away with: "
        f"mv {own} {aside}   and give the command that began this run once more, with: --out "
        f"{shlex.quote(str(path.parent))}"
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
