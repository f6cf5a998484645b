"""Lines of text from many files, plain or packed, read one block at a time.

A line ends at a line feed and nowhere else; a token is what `str.split` gives.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import DataError
from evenhand.opening import BLOCK, blocks, decoded, readable

MOST_TOKENS = 10_000
"""Longer sentences are cut: word2vec trainers drop what goes beyond, silently."""


@dataclass(frozen=True)
class Corpus:
    """Text files as one long list of lines. Iterating gives the tokens of each line.

    Holds paths only, so it can be pickled and sent to another process; every pass opens the
    files again. Lines without a token are counted but not given as sentences.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_text("he is a doctor\\n\\nshe sings\\n")
    >>> list(open_corpus(file))
    [['he', 'is', 'a', 'doctor'], ['she', 'sings']]
    """

    paths: tuple[str, ...]

    def __iter__(self) -> Iterator[list[str]]:
        return sentences(self.lines())

    def lines(self) -> Iterator[str]:
        """Every line, without its line feed."""
        for path, block in self.blocks():
            yield from decoded(block, path).split("\n")[:-1]

    def blocks(
        self, size: int = BLOCK, watch: Callable[[int], None] = lambda done: None
    ) -> Iterator[tuple[str, bytes]]:
        """(path, whole lines) in blocks of about `size` bytes; every block ends in a line feed.

        Args:
            size: bytes to read at a time; memory in use stays a small multiple of it.
            watch: told how many bytes more of the files on disk have been read.
        """
        for path in self.paths:
            for block in blocks(path, size, watch):
                yield path, block

    @property
    def bytes_on_disk(self) -> int:
        """Sizes of the files as they lie on disk, together."""
        return sum(os.stat(path).st_size for path in self.paths)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over each file's size, first and last 64 KiB: cheap, and sees a changed file."""
        state = hashlib.sha256()
        for path in self.paths:
            with readable(path), open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                state.update(f"{size}|".encode() + file.read(1 << 16))
                file.seek(max(0, size - (1 << 16)))
                state.update(file.read())
        return state.hexdigest()


def open_corpus(paths: str | Path | Iterable[str | Path]) -> Corpus:
    """A corpus of files and folders; a folder stands for all files below it, in name order.

    Raises:
        DataError: a path is missing, a file is empty, or a folder holds no file.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found: list[Path] = []
    for item in map(Path, given):
        if item.is_dir():
            inside = sorted(p for p in item.rglob("*") if p.is_file() and p.name[0] != ".")
            if not inside:
                raise DataError(f"{item}: no file in this folder. Pass text files or folders.")
            found += inside
        elif item.exists():
            found.append(item)
        else:
            raise DataError(f"{item}: no such file or folder. Pass text files or folders.")
    if not found:
        raise DataError("corpus: no file was given. Pass text files or folders.")
    for path in found:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty. Leave it out, or make it again.")
    return Corpus(tuple(str(p) for p in found))


def told_lines(corpus: Corpus) -> Iterator[tuple[str, str, bool]]:
    """Each line that is not blank, its place in words, and whether its file holds JSON lines.

    A file whose first character is { does, and one that is called so.
    """
    before, number, as_json = "", 0, False
    for path, block in corpus.blocks():
        text = decoded(block, path)
        if path != before:
            named = {s.lower() for s in Path(path).suffixes} & {".json", ".jsonl", ".ndjson"}
            before, number, as_json = path, 0, text.lstrip()[:1] == "{" or bool(named)
        for line in text.split("\n")[:-1]:
            number += 1
            if line.strip():
                yield line, f"{path}, line {number}", as_json


def sentences(lines: Iterable[str]) -> Iterator[list[str]]:
    """Token lists of the lines that have tokens; more than 10,000 tokens are cut into pieces."""
    for line in lines:
        tokens = line.split()
        for low in range(0, len(tokens), MOST_TOKENS):
            yield tokens[low : low + MOST_TOKENS] if len(tokens) > MOST_TOKENS else tokens
