"""Outputs: whole or absent, on a place that can be written, and one sentence where it cannot.

    require_place(path)    refuse a place that is read-only, full or a file, before any work
    destination(path)      the file that an output replaces; None for a device or a pipe
    drafted(folder)        a folder that takes its place when all of it is on disk
    replacing(path)        a binary file to write; write_bytes writes one in a single call
    packed_writer(path)    text into a file that is packed as its name ends; so is
    write_text, write_csv  (in which no text starts a formula)

Everything is written under another name, synced and renamed: a kill, a power cut or a full disk
leaves the old file, or none, and never a part.

Only regular files are replaced. A link stays a link, and its target is written. Terminals,
/dev/null, /dev/stdout and named pipes are written to as they are.
"""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import lzma
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

from evenhand.errors import DataError, EvenhandError
from evenhand.systems import Pipe, alive, put_in_place, sync_folder

SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
DRAFT = re.compile(r"\..*\.\d+\.draft")
TRIED = 1 << 16
"""Bytes that are written to see whether there is room."""
LINKS = 40
"""Links that may follow one another."""
WAIT_S = 30.0
"""How long a named pipe may stay without a reader."""
SINKS = ("/dev/null", "/dev/full", "/dev/zero")
"""Devices besides terminals that an output may be written to."""


def require_place(path: Path, option: str = "") -> None:
    """Refuse a place that cannot be written now: after hours of work is a bad time to learn it.

    Raises:
        DataError: the disk is read-only or full, a file stands where a folder must be, or the
            path is a dangling link or a device that takes no files.
    """
    file = destination(Path(path), option)
    if file is None:
        if descriptor_of(Path(path)) is None and not os.access(path, os.W_OK):
            raise _unwritable(path, "read-only or forbidden", option)
        return
    target = file.absolute()
    there = next(p for p in (target, *target.parents) if p.exists())
    folder = there if there.is_dir() else there.parent
    if there.is_file() and there != target:
        raise _unwritable(path, f"{str(there)!r} is a file", option)
    try:
        if there.is_file() and not os.access(there, os.W_OK):
            raise PermissionError(13, "read-only or forbidden")
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(TRIED))
            probe.flush()
    except OSError as error:
        raise _unwritable(path, why(error), option) from error


def destination(path: Path, option: str = "") -> Path | None:
    """Return the file or folder that writing to a path replaces or fills; None for a stream.

    A link is followed to its target. A stream is a terminal, a named pipe, /dev/null or an open
    descriptor of this process such as /dev/stdout; it is written to and never replaced.

    Raises:
        DataError: the path is a dangling link, a socket, or a device that takes no files.
    """
    number = descriptor_of(path)
    try:
        status = os.stat(path) if number is None else os.fstat(number)
    except FileNotFoundError:
        if path.is_symlink():
            target = os.readlink(path)
            raise _unwritable(path, f"a link to {target!r}, where nothing is", option) from None
        return path
    except OSError as error:
        if number is None and not path.is_symlink():
            return path  # whoever opens it says what is wrong
        raise _unwritable(path, why(error), option) from error
    if number is not None or stat.S_ISFIFO(status.st_mode):
        return None
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return Path(os.path.realpath(path)) if path.is_symlink() else path
    if stat.S_ISCHR(status.st_mode) and _takes_files(path, status):
        return None
    kind = "a socket" if stat.S_ISSOCK(status.st_mode) else "a device that takes no files"
    raise _unwritable(path, kind, option)


def descriptor_of(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as /dev/stdout names, or None."""
    own = rf"/(?:dev|proc/(?:self|thread-self|{os.getpid()}(?:/task/\d+)?))/fd/(\d+)"
    here = os.path.abspath(path)
    for _ in range(LINKS):
        if match := re.fullmatch(own, here):
            return int(match[1])
        folder = os.path.realpath(os.path.dirname(here))
        if match := re.fullmatch(own, os.path.join(folder, os.path.basename(here))):
            return int(match[1])
        try:
            here = os.path.normpath(os.path.join(folder, os.readlink(here)))
        except OSError:
            return None
    return None


def _takes_files(path: Path, status: os.stat_result) -> bool:
    """Return whether a character device is a terminal or one that swallows what is written."""
    if os.name == "nt":
        return True  # nul, con
    sinks = (os.stat(name).st_rdev for name in SINKS if os.path.exists(name))
    if status.st_rdev in sinks:
        return True
    try:
        device = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.isatty(device)
    finally:
        os.close(device)


def why(error: BaseException) -> str:
    """What the system says, without numbers and names."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _unwritable(path: Path, what: str, option: str = "") -> DataError:
    option = option or "--out (out)"
    return DataError(f"{path}: cannot be written ({what}). Choose another place with: {option}")


def disk_fault(error: BaseException) -> str:
    """What a full or broken disk made a library say; "" for any other error.

    >>> disk_fault(OSError(28, "No space left on device"))
    'No space left on device'
    >>> disk_fault(ValueError("I/O error: No space left on device (os error 28)"))
    'No space left on device'
    """
    if isinstance(error, OSError):
        return why(error)
    if isinstance(error, EvenhandError):
        return ""
    found = re.search(r"(?:error: )?([^:]+?) \(os error \d+\)", str(error))
    return found[1].strip() if found else ""


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its place when all went well, and else never was there.

    What stands in its place must be empty. Drafts that killed processes left are thrown away. A
    folder that is somebody's draft already is filled as it is. A link to a folder stays a link.
    """
    folder = destination(folder) or folder
    if DRAFT.fullmatch(folder.name) and folder.is_dir():
        yield folder
        return
    if folder.exists() and not folder.is_dir():
        raise _unwritable(folder, "it is a file")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    for left in folder.parent.glob(f".{escape(folder.name)}.*.draft"):
        if not _at_work(left.name.split(".")[-2]):
            shutil.rmtree(left, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        yield draft
        for path in (draft, *draft.rglob("*")):
            _sync(path)
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
        sync_folder(folder.parent)
    except Exception as error:
        if told := disk_fault(error):
            raise _unwritable(folder, told) from error
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _at_work(process: str) -> bool:
    """Whether another process of that number may be writing."""
    return process.isdecimal() and int(process) != os.getpid() and alive(int(process))


def _sync(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file with a header line, put in place whole; no text in it starts a formula."""
    with packed_writer(path) as file:
        csv.writer(file).writerows([[harmless(cell) for cell in row] for row in (head, *rows)])


def write_text(path: Path, text: str) -> None:
    """A text file, put in place whole."""
    with packed_writer(path) as file:
        file.write(text)


def write_bytes(path: Path, raw: bytes, option: str = "") -> None:
    """Write an output file; see `replacing`."""
    with replacing(path, option) as file:
        file.write(raw)


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
    with replacing(path) as raw, _pack(raw, SUFFIX.get(path.suffix, "")) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


@contextmanager
def replacing(path: Path, option: str = "") -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when all went well, and else never was.

    Where `path` is a link, its target is replaced and the link stays. A device or a pipe is written
    to directly.

    Raises:
        DataError: the path is a folder, a dangling link, a socket or a device that takes no files,
            or its disk is full or read-only.
    """
    if not path.name or path.is_dir():
        raise DataError(f"{path}: is a folder. Give the name of a file to write.")
    file = destination(path, option)
    try:
        with _stream(path) if file is None else _draft(file) as raw:
            yield raw
    except Exception as error:
        if told := disk_fault(error):
            raise _unwritable(path, told, option) from error
        raise


@contextmanager
def _draft(path: Path) -> Iterator[IO[bytes]]:
    """Write beside a file and rename the draft over it at the end."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{escape(path.name)}.*.tmp"):
            if not _at_work(left.name.split(".")[-2]):
                left.unlink(missing_ok=True)
        with open(draft, "wb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        put_in_place(draft, path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _stream(path: Path) -> Iterator[IO[bytes]]:
    """Write to a device, a pipe or an open descriptor of this process, which stays open."""
    number = descriptor_of(path)
    if number is None:
        handle = _opened(path)
    else:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # none, or closed
                stream.flush()
        handle = os.dup(number)
    with io.BufferedWriter(Pipe(handle, "wb")) as raw:
        yield raw
        raw.flush()


def _opened(path: Path) -> int:
    """Open a device, or a named pipe once somebody reads it."""
    flags = os.O_WRONLY | getattr(os, "O_NOCTTY", 0)
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return os.open(path, flags)
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            handle = os.open(path, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, "nobody reads this pipe") from error
            time.sleep(0.05)
            continue
        os.set_blocking(handle, True)
        return handle


@contextmanager
def _pack(raw: IO[bytes], kind: str) -> Iterator[Any]:
    if kind == "zstd":
        import pyarrow as pa

        # Arrow closes what it is given, and the file is still to be synced.
        own = open(os.dup(raw.fileno()), "wb")  # noqa: SIM115
        with pa.CompressedOutputStream(pa.PythonFile(own, mode="w"), "zstd") as stream:
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
