"""Fingerprints of what a study reads from outside its folder.

    inputs.json    for every path of the recipe: bytes, and the SHA-256 of each file

A study takes days and is resumed, so its data can change meanwhile; results on other data must not
join those that are there. Paths are kept as the recipe writes them, since the data may lie
elsewhere on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, RunError
from evenhand.opening import readable
from evenhand.runner.files import replace
from evenhand.seals import digest, read_sealed, sealed_text
from evenhand.study.recipe import Recipe, inputs_of, place

FILE = "inputs.json"
SHOWN = 12
"""Digits of a hash that a message shows."""


@dataclass(frozen=True)
class Fingerprint:
    """The content of a file, or of the files in a folder (by their place in it)."""

    size: int
    files: Mapping[str, str]

    @classmethod
    def of(cls, path: Path) -> Fingerprint:
        """Read a file or a folder. Hidden files do not count."""
        with readable(path):
            if path.is_dir():
                below = {p.relative_to(path): p for p in path.rglob("*") if p.is_file()}
                parts = {name: p for name, p in below.items() if not _is_hidden(name)}
            else:
                parts = {Path(): path} if path.is_file() else {}
            files = {name.as_posix(): digest(p) for name, p in sorted(parts.items())}
            return cls(sum(p.stat().st_size for p in parts.values()), files)

    @classmethod
    def parse(cls, value: Any, where: Path) -> Fingerprint:
        """Read back what `as_dict` gave."""
        if isinstance(value, dict):
            size, files = value.get("bytes"), value.get("files")
            if isinstance(size, int) and isinstance(files, dict):
                return cls(size, {str(name): str(files[name]) for name in files})
        raise _damaged(where, "an entry is no fingerprint")

    def as_dict(self) -> dict[str, Any]:
        return {"bytes": self.size, "files": dict(self.files)}

    def difference(self, now: Fingerprint, path: Path) -> str:
        """Say what has changed since this was read; "" if nothing has."""
        names = sorted({*self.files, *now.files})
        changed = [name for name in names if self.files.get(name) != now.files.get(name)]
        if not changed:
            return ""
        name, more = changed[0], len(changed) - 1
        before, after = self.files.get(name), now.files.get(name)
        what = "is new" if before is None else "is gone" if after is None else "has changed"
        hashes = " -> ".join(h[:SHOWN] for h in (before, after) if h)
        others = f", and {more} more of its files" if more else ""
        return (
            f"{path if name == '.' else path / name} {what} (SHA-256 {hashes}; "
            f"{self.size:,} -> {now.size:,} bytes{'' if name == '.' else ' in all'}){others}"
        )


def _is_hidden(name: Path) -> bool:
    return any(part.startswith(".") for part in name.parts)


def read_inputs(folder: Path) -> dict[str, Fingerprint]:
    """Return the recorded fingerprints by path; none for a study of an earlier version.

    Raises:
        RunError: the record is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        recorded = read_sealed(path).get("inputs")
    except DataError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(recorded, dict):
        raise _damaged(path, "it lists no inputs")
    return {str(name): Fingerprint.parse(value, path) for name, value in recorded.items()}


def write_inputs(folder: Path, inputs: Mapping[str, Fingerprint]) -> None:
    """Record fingerprints, whole or not at all."""
    rows = {name: inputs[name].as_dict() for name in sorted(inputs)}
    replace(folder / FILE, sealed_text({"inputs": rows}).encode())


def require_unchanged(
    folder: Path, recipe: Recipe, data: Path | None, stage: str, finished: int = 0
) -> dict[str, Fingerprint]:
    """Compare the inputs of a stage with the record, and return their fingerprints.

    Args:
        finished: results that rest on the recorded inputs, for the message.

    Raises:
        RunError: an input is not the recorded one.
    """
    known, inputs = read_inputs(folder), {}
    for name in inputs_of(recipe).get(stage, ()):
        path = place(name, data)
        inputs[name] = Fingerprint.of(path)
        if name in known and (what := known[name].difference(inputs[name], path)):
            rests = f" Finished results that rest on it: {finished}." if finished else ""
            raise RunError(
                f"{what} since the study in {folder} read it.{rests} Restore it and give the same "
                "command again, or begin a new study on it with: --out DIR"
            )
    return inputs


def _damaged(path: Path, why: str) -> RunError:
    return RunError(
        f"{path}: damaged ({why.rstrip('.')}). Remove it and give the same command again: the data "
        "are then taken as they are now."
    )
