"""Open and read files that others made: plain or packed, by their first bytes, within limits.

    lines(path)           lines of text, read one block at a time
    read_text(path)       the whole text
    read_json(path)       one JSON value
    read_toml(path)       the tables of a TOML file
    read_rows(path)       the rows of a small CSV file
    json_lines(path)      JSON lines, each with its number
    opened(path)          a file object over the unpacked bytes

gzip, bzip2, xz and zstandard are unpacked whatever the name says. Every fault of a file becomes one
sentence that names it. Nothing is guessed: a name that occurs twice in one object, or a row of
another length, is rejected.

The limits on how much is read:

    text       bytes of a file that is read at once, unpacked: JSON, TOML, small tables
    line       bytes of one line
    ratio      how many times its own size a packed file may unpack to, beyond 4 MiB
    array      bytes of one array
    answer     bytes of one answer of a server, unpacked
    depth      nesting of lists and objects
    seconds    time spent reading one packed file

The message of a limit names it, its size, and what to set if a file rightly has more:

    EVENHAND_LIMITS=text=1GiB,depth=500 evenhand measure ...
"""

from __future__ import annotations

import bz2
import csv
import gc
import gzip
import io
import json
import lzma
import os
import re
import stat
import time
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

from evenhand.errors import DataError, EvenhandError, SpecError

VARIABLE = "EVENHAND_LIMITS"
DEFAULTS = {
    "text": 256 << 20,
    "line": 64 << 20,
    "ratio": 50,
    "array": 16 << 30,
    "answer": 16 << 20,
    "depth": 200,
    "seconds": 3600,
}
SIZES = ("text", "line", "array", "answer")
INSIDE = frozenset((dict, list))
"""Types that contain other values."""
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SLACK = 4 << 20
"""Bytes that any packed file may unpack to."""


def limit(name: str) -> int:
    """Return a limit, set by EVENHAND_LIMITS or by default.

    >>> limit("depth")
    200
    """
    given = os.environ.get(VARIABLE)
    return _given(given)[name] if given else DEFAULTS[name]


def _given(text: str) -> dict[str, int]:
    found = dict(DEFAULTS)
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, size = part.partition("=")
        read = re.fullmatch(r"(\d{1,15})([KMGT]iB)?", size)
        if name not in DEFAULTS or read is None:
            raise SpecError(
                f"{VARIABLE}: {part!r}: expected NAME=NUMBER, such as text=1GiB. Names: "
                f"{', '.join(DEFAULTS)}."
            )
        found[name] = int(read[1]) * UNITS[read[2] or ""]
    return found


def shown(name: str) -> str:
    """Return a limit as text.

    >>> shown("text")
    '256 MiB'
    """
    size = limit(name)
    if name not in SIZES:
        return f"{size:,}"
    unit = next(u for u in ("TiB", "GiB", "MiB", "KiB", "") if not size % UNITS[u])
    return f"{size // UNITS[unit]:,} {unit or 'bytes'}"


def beyond(where: object, what: str, name: str) -> DataError:
    """Return the error for a file that exceeds a limit; `what` precedes its size."""
    return DataError(
        f"{where}: {what} {shown(name)} (the limit {name!r}). If that is as it should be, read it "
        f"with more: {VARIABLE}={name}=NUMBER"
    )


def check_depth(value: Any, where: object) -> int:
    """Reject lists and objects that are nested too deeply.

    Returns:
        the number of names in all objects, which a reader can compare with its text.

    >>> check_depth({"a": [{"b": 1}, {"b": 2}]}, "x.json")
    3
    """
    names, most = 0, limit("depth")
    level = [value] if type(value) in INSIDE else []
    for deep in count():
        if not level:
            break
        if deep >= most:
            raise beyond(where, "is nested deeper than", "depth")
        objects = [x for x in level if type(x) is dict]
        lists = [x for x in level if type(x) is list] if len(objects) < len(level) else []
        names += sum(map(len, objects))
        level = [x for o in objects for x in o.values() if type(x) is not str and type(x) in INSIDE]
        level += [x for part in lists for x in part if type(x) is not str and type(x) in INSIDE]
    return names


class Unpacking(io.RawIOBase):
    """Unpacked bytes of a file, counted, so that a file that unpacks without end is rejected.

    Args:
        file: gives the unpacked bytes.
        packed: size of the packed file.
        where: its name, for the message.
    """

    def __init__(self, file: Any, packed: int, where: object) -> None:
        self._file, self._where = file, where
        self._left = SLACK + limit("ratio") * packed
        self._seconds = float(limit("seconds"))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        begun = time.monotonic()
        piece = self._file.read(len(buffer))
        self._seconds -= time.monotonic() - begun
        self._left -= len(piece)
        if self._left < 0:
            raise beyond(self._where, "unpacks to more than its own size times", "ratio")
        if self._seconds < 0:
            raise beyond(self._where, "takes longer to read than these seconds:", "seconds")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def lines_of(file: IO[bytes], where: object) -> Any:
    """Yield the lines of a binary file with their line feed; reject lines beyond the limit."""
    most = limit("line")
    while line := file.readline(most + 1):
        if len(line) > most:
            raise beyond(where, "a line is longer than", "line")
        yield line


BLOCK = 1 << 20
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SPACES = " \t\n\r"
"""White space of JSON."""
LONG = 1 << 16
"""Characters of a JSON text from which on the faster parser is worth its import."""
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)
"""What unpacking raises on a file that is broken."""
_BOM = b"\xef\xbb\xbf"


def compression_of(path: str | Path, expected: str = "") -> str:
    """ "gzip", "bzip2", "xz", "zstd", or "" for a plain file, from its first bytes."""
    with readable(path, expected=expected):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise DataError(
                f"{path}: is a pipe or a device, and files are read more than once. Write it to a "
                f"file first.{_expected(expected)}"
            )
        with open(path, "rb") as file:
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
    most = limit("text")
    with opened(path, expected) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise beyond(path, "is read at once and, unpacked, larger than", "text")
    return decoded(raw.removeprefix(_BOM), path)


@contextmanager
def unswept() -> Iterator[None]:
    """Inside, what is read or imported is not searched for garbage, of which it has none.

    Python looks through everything that is new after every few hundred objects, and through all
    there is now and then: a fifth of the time of reading a large file, a seventh of that of
    importing torch and transformers.
    """
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def read_json(path: str | Path, expected: str = "") -> Any:
    """The JSON value in a file."""
    return parse_json(read_text(path, expected), path, expected)


def parse_json(text: str | bytes, where: object, expected: str = "") -> Any:
    """A JSON value; one that readers would understand differently is refused.

    >>> parse_json('{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    evenhand.errors.DataError: x.json: is not JSON ('a' occurs twice in one object).
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        value = _value(text)
        names = check_depth(value, where)
        if not _all_kept(names, text):
            value = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise beyond(where, "is nested deeper than", "depth") from None
    except ValueError as error:  # a number of too many digits is one, too
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: is not JSON ({error}).{_expected(expected)}") from error
    if re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{where}: holds half a character (a lone surrogate, \\ud800 to \\udfff), which is "
                f"not text.{_expected(expected)}"
            ) from None
    return value


def _value(text: str) -> Any:
    """What a JSON text says. pydantic's parser is two to three times as fast on a long one.

    It takes nothing that Python's own refuses; what it refuses (half a character, a depth that a
    limit may allow) is left to Python's, and so is what to say about a mistake.
    """
    if len(text) > LONG:
        from pydantic_core import from_json

        with suppress(ValueError, TypeError):
            return from_json(text, cache_strings="keys")
    return json.loads(text)


def _all_kept(names: int, text: str) -> bool:
    """Whether so many names are surely all that a JSON text has, none given twice.

    The colon after a name follows a quotation mark, with or without white space. Colons inside
    texts can look like that, so the count may say no where nothing is wrong, never yes where a
    name was lost.

    >>> [_all_kept(1, text) for text in ('{"a": "b:c : d"}', '{"a" : 1, "a" : 2}')]
    [True, False]
    """
    if names == text.count(":"):
        return True
    used = [space for space in SPACES if space in text]
    apart = (part for space in used for part in text.split(f"{space}:")[:-1])
    return names == text.count('":') + sum(part.rstrip(SPACES).endswith('"') for part in apart)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON (`object_pairs_hook`); a name that stands twice is refused."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"{next(n for n in names if names.count(n) > 1)!r} occurs twice in one object"
        )
    return found


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
        found = tomllib.loads(text)
    except RecursionError:
        raise beyond(path, "is nested deeper than", "depth") from None
    except ValueError as error:
        raise SpecError(f"{path}: {_toml_place(str(error), text)} Accepted: TOML 1.0.") from error
    check_depth(found, path)
    return found


def read_rows(path: str | Path, expected: str = "") -> list[dict[str, str]]:
    """The rows of a small CSV file by the names of its first line, as strict as CSV can be."""
    text = read_text(path, expected)
    if "\0" in text:
        raise DataError(f"{path}: holds a NUL byte, so it is not text.{_expected(expected)}")
    try:
        rows = [
            (reader.line_num, row)
            for reader in [csv.reader(io.StringIO(text, newline=""), strict=True)]
            for row in reader
            if row
        ]
    except csv.Error as error:
        raise DataError(f"{path}: is not a readable CSV file ({error}).") from error
    if not rows:
        raise DataError(f"{path}: the file is empty. Its first line names columns.")
    head = rows[0][1]
    if len(set(head)) < len(head):
        raise DataError(f"{path}: a column name occurs twice: {', '.join(head)}.")
    for number, row in rows:
        if len(row) != len(head):
            raise DataError(
                f"{path}, line {number}: {len(row)} cells for {len(head)} columns. Every row has "
                f"as many cells as the first line names."
            )
    return [dict(zip(head, row, strict=True)) for _, row in rows[1:]]


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
            yield number, parse_json(line, f"{path}, line {number}", expected)


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
    kind, longest = compression_of(path, expected), limit("line")
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
                if len(rest) > longest:
                    raise beyond(path, "a line is longer than", "line")
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
    """A file object over the unpacked bytes of an open file, which must end some time."""
    makers: dict[str, Callable[[], Any]] = {
        "gzip": lambda: gzip.GzipFile(fileobj=raw),
        "bzip2": lambda: bz2.BZ2File(raw),
        "xz": lambda: lzma.LZMAFile(raw),  # noqa: SIM115 - closed with what is given
        "zstd": lambda: _zstd(raw),
    }
    if kind not in makers:
        return raw
    packed = os.fstat(raw.fileno()).st_size
    return cast(IO[bytes], io.BufferedReader(Unpacking(makers[kind](), packed, raw.name), BLOCK))


def _zstd(raw: IO[bytes]) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


@contextmanager
def readable(path: str | Path, kind: str = "", expected: str = "") -> Iterator[None]:
    """Turn what a broken or unreadable file raises into one sentence about that file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.{_expected(expected)}") from None
    except DAMAGE as error:
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
        if isinstance(error, OSError) and error.filename:  # a name too long, a folder, no right
            raise DataError(
                f"{str(error.filename)[:200]}: cannot be used ({error.strerror})."
            ) from error
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
