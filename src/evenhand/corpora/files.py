"""Lines of text from many files, plain or packed, read one block at a time.

A line ends at a line feed and nowhere else; a token is what `str.split` gives. Packed files are
known by their first bytes: gzip, bzip2, xz, zstandard.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from evenhand.errors import DataError

BLOCK = 1 << 20
LONGEST_LINE = 1 << 28
MOST_TOKENS = 10_000
"""Longer sentences are cut: word2vec trainers drop what goes beyond, silently."""
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"
_BROKEN = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, OSError, ValueError)


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
            for block in _blocks_of(path, size, watch):
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
            with _readable(path), open(path, "rb") as file:
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
        raise DataError("corpus: no file was named. Pass text files or folders.")
    for path in found:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty. Leave it out, or make it again.")
    return Corpus(tuple(str(p) for p in found))


def told_lines(corpus: Corpus) -> Iterator[tuple[str, str, bool]]:
    """Each line that is not blank, its place in words, and whether its file holds JSON lines.

    A file whose first character is { does.
    """
    before, number, as_json = "", 0, False
    for path, block in corpus.blocks():
        text = decoded(block, path)
        if path != before:
            before, number, as_json = path, 0, text.lstrip()[:1] == "{"
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


def decoded(block: bytes, path: str) -> str:
    """UTF-8 text, or an error that names the file and the byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = block[error.start : error.start + 4].hex(" ")
        raise DataError(
            f"{path}: not UTF-8 text (bytes {shown}). Convert it first, e.g. with: "
            f"iconv -f latin1 -t utf-8 {path}"
        ) from None


def compression_of(path: str | Path) -> str:
    """ "gzip", "bzip2", "xz", "zstd", or "" for a plain file, from its first bytes."""
    with _readable(str(path)), open(path, "rb") as file:
        head = file.read(6)
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def _blocks_of(path: str, size: int, watch: Callable[[int], None]) -> Iterator[bytes]:
    kind = compression_of(path)
    with _readable(path, kind), open(path, "rb") as raw, unpack(raw, kind) as file:
        seen, rest, first = 0, b"", True
        while True:
            with _readable(path, kind):
                piece = file.read(size)
            if raw.tell() > seen:
                watch(raw.tell() - seen)
                seen = raw.tell()
            if not piece:
                break
            if first and piece.startswith(_BOM):
                piece = piece[len(_BOM) :]
            first = False
            cut = piece.rfind(b"\n") + 1
            if cut == 0:
                rest += piece
                if len(rest) > LONGEST_LINE:
                    raise DataError(
                        f"{path}: a line is longer than {LONGEST_LINE >> 20} MiB. "
                        "Expected one sentence, tweet or paragraph per line."
                    )
                continue
            yield rest + piece[:cut]
            rest = piece[cut:]
        if rest:
            yield rest + b"\n"


def unpack(raw: IO[bytes], kind: str) -> IO[bytes]:
    """A file object over the unpacked bytes of an open file."""
    if kind == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if kind == "bzip2":
        return cast(IO[bytes], bz2.BZ2File(raw))
    if kind == "xz":
        return cast(IO[bytes], lzma.LZMAFile(raw))
    if kind == "zstd":
        import pyarrow as pa

        stream: Any = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        return cast(IO[bytes], stream)
    return raw


@contextmanager
def packed_writer(path: Path) -> Iterator[io.TextIOBase]:
    """Text to a file that is packed as its name ends (.gz, .bz2, .xz, .zst), put in place whole.

    gzip files carry no time or name, so equal text gives equal bytes.
    """
    kind = SUFFIX.get(path.suffix, "")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as raw, _pack(raw, kind) as binary:
            text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
            yield text
            text.flush()
            text.detach()
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _pack(raw: IO[bytes], kind: str) -> Iterator[Any]:
    if kind == "zstd":
        import pyarrow as pa

        with pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd") as stream:
            buffered = io.BufferedWriter(_ArrowRaw(stream), 1 << 20)
            yield buffered
            buffered.flush()
        return
    makers: dict[str, Callable[[], Any]] = {
        "gzip": lambda: gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0),
        "bzip2": lambda: bz2.BZ2File(raw, "wb"),
        "xz": lambda: lzma.LZMAFile(raw, "wb"),  # noqa: SIM115 - opened by the with below
        "": lambda: nullcontext(raw),
    }
    with makers[kind]() as opened:
        yield opened


class _ArrowRaw(io.RawIOBase):
    """The least of a raw file that a buffered writer wants from an Arrow stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data))
        return len(data)


@contextmanager
def _readable(path: str, kind: str = "") -> Iterator[None]:
    """Turn what a broken or unreadable file raises into one sentence about that file."""
    try:
        yield
    except DataError:
        raise
    except _BROKEN as error:
        if not kind:
            raise DataError(f"{path}: cannot be read ({error}).") from error
        raise DataError(
            f"{path}: broken {kind} data ({error or type(error).__name__}). "
            "Copy or download the file again."
        ) from error
