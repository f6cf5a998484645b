"""Finished calls of unfinished shards, so that a kill repeats none of them.

A shard of scores is written when all its answers are there. Until then each answer is a line of
`calls/<shard>.jsonl` in the run folder, appended and handed to the system as soon as it arrives;
when the shard is stored, its file goes and what it used is added to `calls/usage.json`. A line
that a kill cut in two, or that is damaged, is not read. Memory: the calls of one shard.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, RunError
from evenhand.models.endpoints.spending import Usage
from evenhand.seals import digest, read_sealed, write_sealed

FOLDER = "calls"
USAGE = "usage.json"
CHECKING = "checking"
"""The journal of the calls by which a server was looked at; kept, since no shard holds them."""
APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
"""Each line is one write at the end; Windows would make two bytes of its end otherwise."""


class Journal:
    """Finished calls by their key, on disk where there is a folder.

    >>> notes = Journal()
    >>> notes.add("k", [0.5], Usage(1, 9, 1))
    >>> "k" in notes, notes["k"]
    (True, [0.5])
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._known: dict[str, tuple[Any, Usage]] = {}
        self._file: int | None = None
        self._closing: Callable[[], object] | None = None
        if path is not None and path.is_file():
            self._known = {key: (value, Usage(*tokens)) for key, value, tokens in _lines(path)}

    @property
    def used(self) -> Usage:
        return sum((used for _, used in self._known.values()), Usage())

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __getitem__(self, key: str) -> Any:
        return self._known[key][0]

    def add(self, key: str, value: Any, used: Usage, *, failed: bool = False) -> None:
        """Keep a finished call; it is safe from a kill of this process when this returns.

        A failure alone makes no file: a mistyped address leaves nothing behind.
        """
        self._known[key] = value, used
        if self.path is None or (failed and self._file is None):
            return
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _trim(self.path)
            self._file = os.open(self.path, APPENDING, 0o666)
            self._closing = weakref.finalize(self, os.close, self._file)
        tokens = (used.calls, used.tokens_in, used.tokens_out, used.estimated)
        line = [key, value, tokens]
        os.write(self._file, (json.dumps([*line, _mark(line)]) + "\n").encode())

    def close(self) -> None:
        """Nothing more will be added; an open file could not be removed on Windows."""
        if self._closing is not None:
            self._closing()

    def kept_at(self, path: Path) -> Journal:
        """The same on disk, with what already exists."""
        there = Journal(path)
        for key, (value, used) in self._known.items():
            if key not in there:
                there.add(key, value, used)
        return there


class Journals:
    """The journals below one run folder; in memory until there is one.

    Args:
        server: address and name of the model.
    """

    def __init__(self, server: str = "") -> None:
        mark = hashlib.sha256(server.encode()).hexdigest()[:12]
        self._checking = f"{CHECKING}-{mark}.jsonl"  # never another server's
        self.folder: Path | None = None
        self.checking = Journal()
        self._open: dict[str, Journal] = {}

    def keep_below(self, folder: Path) -> Usage:
        """Use a run folder from now on; gives what earlier attempts used there."""
        place = folder / FOLDER
        if place == self.folder:
            return Usage()
        found = sorted(place.glob("*.jsonl")) if place.is_dir() else ()
        earlier, last = _counted(place)
        for path in found:
            if last and _content(path) == last:  # killed after it was counted: its shard is stored
                path.unlink()
            else:
                earlier += Journal(path).used
        self.folder = place
        self.checking = self.checking.kept_at(place / self._checking)
        return earlier

    def of_shard(self, name: str) -> Journal:
        if name not in self._open:
            self._open[name] = Journal(self.folder / f"{name}.jsonl" if self.folder else None)
        return self._open[name]

    def stored(self, name: str) -> None:
        """The shard's scores are safe: its calls need not be kept."""
        journal = self._open.pop(name, None)
        if journal is None or self.folder is None:
            return
        total = _counted(self.folder)[0] + journal.used
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"{USAGE}.{os.getpid()}.tmp"
        write_sealed(temporary, total.as_dict() | {"last": _content(journal.path)})
        temporary.replace(self.folder / USAGE)
        journal.close()
        if journal.path is not None:
            journal.path.unlink(missing_ok=True)


def call_key(path: str, content: str, turn: int = 0) -> str:
    """Names a call by what is sent, the order of its parts included: options may be keys.

    >>> call_key("/p", '{"a": 1, "b": 2}') == call_key("/p", '{"b": 2, "a": 1}')
    False
    """
    text = f"{path}\n{turn}\n{content}" if turn else f"{path}\n{content}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _lines(path: Path) -> Iterator[tuple[str, Any, list[Any]]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                key, value, tokens, *mark = json.loads(line)
                Usage(*tokens)  # which a damaged line has too many or too few of
                if mark in ([], [_mark([key, value, tokens])]):  # older versions gave no mark
                    yield key, value, tokens


def _mark(line: list[Any]) -> str:
    """By which a line that was damaged is told, and asked again."""
    return hashlib.sha256(json.dumps(line).encode()).hexdigest()[:16]


def _trim(path: Path) -> None:
    """Cut off a last line that a kill left unfinished."""
    if not path.is_file():
        return
    with open(path, "rb+") as file:
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)


def _content(path: Path | None) -> str:
    """By which a journal is known again that was counted and not yet removed."""
    return "" if path is None or not path.is_file() else digest(path)


def _counted(folder: Path) -> tuple[Usage, str]:
    """What earlier attempts used, and the content of the journal that was counted last.

    Unknown spending is no reason to spend on: damage is refused.
    """
    path = folder / USAGE
    if not path.exists():
        return Usage(), ""
    try:
        told = read_sealed(path)
        last = told.pop("last", "")  # older versions kept none
        return Usage(**told), str(last)
    except (DataError, TypeError, AttributeError) as error:
        raise RunError(
            f"{path}: what was spent so far cannot be read ({error}). Count from nothing with: "
            f"rm {shlex.quote(str(path))}"
        ) from error
