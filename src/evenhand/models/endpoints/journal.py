"""Finished calls of unfinished shards, so that a kill repeats none of them.

A shard of scores is written when all its answers are there. Until then each answer is a line of
`calls/<shard>.jsonl` in the run folder, appended and handed to the system as soon as it arrives;
when the shard is stored, its file goes and what it used is added to `calls/usage.json`. A line
that a kill cut in two is not read. Memory: the calls of one shard.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.models.endpoints.spending import Usage

FOLDER = "calls"
USAGE = "usage.json"
CHECKING = "checking"
"""The journal of the calls by which a server was looked at; kept, since no shard holds them."""


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
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            weakref.finalize(self, os.close, self._file)
        tokens = (used.calls, used.tokens_in, used.tokens_out, used.estimated)
        os.write(self._file, (json.dumps([key, value, tokens]) + "\n").encode())

    def kept_at(self, path: Path) -> Journal:
        """The same on disk, with what is there already."""
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
        earlier = sum((Journal(path).used for path in found), _usage(place))
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
        total = _usage(self.folder) + journal.used
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"{USAGE}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(total.as_dict()))
        temporary.replace(self.folder / USAGE)
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
            with contextlib.suppress(ValueError):
                key, value, tokens = json.loads(line)
                yield key, value, tokens


def _trim(path: Path) -> None:
    """Cut off a last line that a kill left unfinished."""
    if not path.is_file():
        return
    with open(path, "rb+") as file:
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)


def _usage(folder: Path) -> Usage:
    try:
        return Usage(**json.loads((folder / USAGE).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return Usage()
