"""The one opener of files that others made: plain or packed, told by their first bytes.

    lines(path)           lines of text, read one block at a time
    read_text(path)       the whole text
    read_json(path)       one JSON value
    read_toml(path)       the tables of a TOML file
    json_lines(path)      JSON lines, each with its number
    opened(path)          a file object over the unpacked bytes
    packed_writer(path)   text into a file that is packed as its name ends

gzip, bzip2, xz and zstandard are unpacked whatever the name says. Whatever is wrong with a file
becomes one sentence that names it.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import shutil
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

from evenhand.errors import DataError, EvenhandError, SpecError

BLOCK = 1 << 20
LONGEST_LINE = LARGEST_TEXT = 1 << 28
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_BOM = b"\xef\xbb\xbf"


def compression_of(path: str | Path, expected: str = "") -> str:
    """ "gzip", "bzip2", "xz", "zstd", or "" for a plain file, from its first bytes."""
    with readable(path, expected=expected), open(path, "rb") as file:
        head = file.read(6)
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


@contextmanager
def opened(path: str | Path, expected: str = "") -> Iterator[IO[bytes]]:
    """A file object over the unpacked bytes of a file.

    Args:
        expected: what the file should be, for the message when it cannot be read.
    """
    kind = compression_of(path, expected)
    with readable(path, kind, expected), open(path, "rb") as raw, unpack(raw, kind) as file:
        yield file


def read_text(path: str | Path, expected: str = "") -> str:
    """The whole of a UTF-8 file."""
    with opened(path, expected) as file:
        raw = file.read(LARGEST_TEXT + 1)
    if len(raw) > LARGEST_TEXT:
        raise DataError(
            f"{path}: is larger than {LARGEST_TEXT >> 20} MiB, unpacked: more than is read "
            f"at once.{_expected(expected)}"
        )
    return decoded(raw.removeprefix(_BOM), path)


def read_json(path: str | Path, expected: str = "") -> Any:
    """The JSON value in a file."""
    try:
        return json.loads(read_text(path, expected))
    except (ValueError, RecursionError) as error:  # too deep, or a number of too many digits
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: is not JSON ({error}).{_expected(expected)}") from error


def read_object(path: str | Path, expected: str = "") -> dict[str, Any]:
    """The JSON object in a file."""
    found = read_json(path, expected)
    if not isinstance(found, dict):
        raise DataError(f"{path}: holds a {type(found).__name__}. Expected a JSON object.")
    return found


def read_toml(path: str | Path, expected: str = "") -> dict[str, Any]:
    """The tables of a TOML file; a mistake is reported with the file and the line."""
    text = read_text(path, expected)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path}: {_toml_place(str(error), text)} Accepted: TOML 1.0.") from error


def _toml_place(message: str, text: str) -> str:
    found = re.search(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if found is None:
        return f"{message}."
    what = message[: found.start()]
    if found[1] is None:
        return f"line {max(1, len(text.splitlines()))}: {what} at the end of the file."
    return f"line {found[1]}, column {found[2]}: {what}."


def lines(path: str | Path, expected: str = "") -> Iterator[str]:
    """Every line of a UTF-8 file, without its line feed."""
    for block in blocks(path, expected=expected):
        yield from decoded(block, path).split("\n")[:-1]


def json_lines(path: str | Path, expected: str = "") -> Iterator[tuple[int, Any]]:
    """The values of a JSON lines file, each with the number of its line; blank lines are not."""
    for number, line in enumerate(lines(path, expected), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{path}, line {number}: is not JSON ({error}).{_expected(expected)}"
                ) from error


def blocks(
    path: str | Path,
    size: int = BLOCK,
    watch: Callable[[int], None] = lambda done: None,
    expected: str = "",
) -> Iterator[bytes]:
    """Whole lines in blocks of about `size` bytes; every block ends in a line feed.

    Args:
        size: bytes to read at a time; memory in use stays a small multiple of it.
        watch: told how many bytes more of the file on disk have been read.
        expected: what the file should be, for the message when it cannot be read.
    """
    kind = compression_of(path, expected)
    with readable(path, kind, expected), open(path, "rb") as raw, unpack(raw, kind) as file:
        seen, rest, first = 0, b"", True
        while piece := file.read(size):
            if raw.tell() > seen:
                watch(raw.tell() - seen)
                seen = raw.tell()
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


def decoded(block: bytes, path: str | Path) -> str:
    """UTF-8 text, or an error that names the file and the byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = block[error.start : error.start + 4].hex(" ")
        raise DataError(
            f"{path}: not UTF-8 text (bytes {shown}). Convert it first, e.g. with: "
            f"iconv -f latin1 -t utf-8 {path}"
        ) from None


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
        return io.BufferedReader(stream, BLOCK)  # which reads lines, too
    return raw


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file with a header line, put in place whole; no text in it starts a formula."""
    with packed_writer(path) as file:
        csv.writer(file).writerows([[harmless(cell) for cell in row] for row in (head, *rows)])


def write_text(path: Path, text: str) -> None:
    """A text file, put in place whole."""
    with packed_writer(path) as file:
        file.write(text)


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its place when all went well, and else never was there.

    What stands in its place must be empty. A draft that a killed process left is thrown away.
    """
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        yield draft
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written ({error.strerror or error}). Choose another place with: "
            f"--out DIR"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def harmless(cell: Any) -> Any:
    """A cell of a CSV file; text that a spreadsheet would run gets a quote in front.

    >>> harmless("=1+1"), harmless(-0.5), harmless("nurse")
    ("'=1+1", -0.5, 'nurse')
    """
    risky = isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA)
    return f"'{cell}" if risky else cell


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
    with makers[kind]() as made:
        yield made


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
def readable(path: str | Path, kind: str = "", expected: str = "") -> Iterator[None]:
    """Turn what a broken or unreadable file raises into one sentence about that file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.{_expected(expected)}") from None
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error or type(error).__name__
        if not kind or (isinstance(error, OSError) and error.errno is not None):
            raise DataError(f"{path}: cannot be read ({why}).{_expected(expected)}") from error
        raise DataError(
            f"{path}: broken {kind} data ({why}). Copy or download the file again."
        ) from error


@contextmanager
def understood(what: str | Path) -> Iterator[None]:
    """The last net below every reader: what no check foresaw in a file is one sentence, too.

    EVENHAND_DEBUG=1 lets the exception through, with the lines it comes from.
    """
    try:
        yield
    except (EvenhandError, ImportError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get("EVENHAND_DEBUG") == "1":
            raise
        said = " ".join(str(error).split())[:200]
        raise DataError(
            f"{what}: holds something that cannot be understood ({type(error).__name__}: {said}). "
            f"See --help for what is read. If it is as it should be, this is a bug: report what is "
            f"printed with EVENHAND_DEBUG=1"
        ) from error


def _expected(what: str) -> str:
    return f" Expected {what}." if what else ""
