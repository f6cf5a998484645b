"""Seals: how a folder of ours says what belongs into it, so that damage is noticed.

    write_sealed(path, facts, files)   JSON that holds SHA-256 of itself and of files beside it
    read_sealed(path)                  the same, refused when it is not what was written
    broken(folder, facts)              the first of those files that is not what was written

A seal finds accidents: a bad disk, a copy cut short, an editor. Whoever can write the folder can
write new seals, too. Files of older versions carry none and are read as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import DataError
from evenhand.strict import plain

SEAL = "sha256"
FILES = "files_sha256"
"""Key of the SHA-256 of the files beside, by their place in the folder."""


def sealed(facts: Mapping[str, Any]) -> str:
    """SHA-256 of JSON values, whatever the order of their keys.

    >>> sealed({"a": 1, "b": 2}) == sealed({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(folder: Path, files: Iterable[Path] | None = None) -> dict[str, str]:
    """SHA-256 of files by their place in the folder; of all that are there, unless told."""
    chosen = (p for p in folder.rglob("*") if p.is_file()) if files is None else files
    return {p.relative_to(folder).as_posix(): digest(p) for p in sorted(chosen)}


def sealed_text(facts: Mapping[str, Any], files: Mapping[str, str] | None = None) -> str:
    """JSON with its seals, for a file."""
    body = plain({**facts, **({FILES: dict(files)} if files is not None else {})})
    return json.dumps({**body, SEAL: sealed(body)}, indent=1, ensure_ascii=False) + "\n"


def write_sealed(
    path: Path, facts: Mapping[str, Any], files: Mapping[str, str] | None = None
) -> None:
    """Write JSON with its seals into a draft (nothing is put in place)."""
    path.write_text(sealed_text(facts, files), encoding="utf-8")


def unsealed(facts: dict[str, Any]) -> bool:
    """Take the seal off; whether it fits what it was on (nothing to fit: it does).

    A seal whose own name was damaged is recognised by its value.

    >>> unsealed({"a": 1, "sha256": sealed({"a": 1})}), unsealed({"a": 1, "sha256": "x"})
    (True, False)
    """
    if SEAL in facts:
        return bool(facts.pop(SEAL) == sealed(facts))
    long = [k for k, v in facts.items() if isinstance(v, str) and len(v) == 64]
    return not any(facts[k] == sealed({n: v for n, v in facts.items() if n != k}) for k in long)


def read_sealed(path: Path) -> dict[str, Any]:
    """What a sealed file holds.

    Raises:
        DataError: it cannot be read, or is not what was written.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: holds a {type(found).__name__}. Expected a JSON object.")
    if not unsealed(found):
        raise DataError(f"{path}: damaged (it is not what was written).")
    return found


def broken(folder: Path, facts: Mapping[str, Any], measure: Callable[[Path], str] = digest) -> str:
    """The place of the first file that is missing or is not what was written; "" for none."""
    known = facts.get(FILES)
    if not isinstance(known, Mapping):
        return ""
    for name, value in known.items():
        path = folder / name
        if not path.is_file() or measure(path) != value:
            return str(name)
    return ""
