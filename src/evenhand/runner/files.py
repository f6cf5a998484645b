"""Where shard files lie: a folder here, or an object store (`remote`).

    file system    a temporary name, fsync, rename into place, fsync of the folder
    object store   one put of the whole object: it appears complete or not at all

Names are `<key>.<checksum>.parquet`, so two writers of one shard write equal bytes to equal names,
and a reader can tell a damaged file from its name, whatever the store did. Anything else that lies
there (folders, notes, files of other programs) is not looked at.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import BinaryIO, Protocol

from evenhand.errors import DataError, RunError
from evenhand.systems import alive, host, put_in_place, sync_folder

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}
"""What a full, read-only, forbidden, broken or vanished disk says."""


class Files(Protocol):
    """A flat place of named, immutable files."""

    place: str
    """An absolute path or URL that another process can open."""
    folder: Path | str

    def names(self, prefix: str = "") -> list[str]:
        """The shards there, in order."""

    def read(self, name: str) -> bytes | None:
        """The file's bytes (none when it cannot be read), or None when there is no such file."""

    def put(self, name: str, raw: bytes) -> None:
        """Make the file appear whole; equal bytes may take the place of one that is there."""

    def remove(self, name: str) -> None:
        """Take a damaged file away, where that is allowed."""


class LocalFiles:
    """Files of a folder."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder: Path | str = folder
        self._path, self._read_only = folder, read_only
        if not read_only:
            with disk_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self.place = str(folder.resolve())

    def names(self, prefix: str = "") -> list[str]:
        found: list[str] = []
        if self._read_only and not self._path.is_dir():
            return found
        with disk_errors(self._path):
            entries = sorted(os.scandir(self._path), key=lambda e: e.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                continue
            if is_shard(entry.name) and entry.name.startswith(prefix):
                found.append(entry.name)
            elif not prefix and not self._read_only and _left_behind(entry.name):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # left by a killed writer
        return found

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            return b""

    def put(self, name: str, raw: bytes) -> None:
        if self._read_only:
            raise read_only_store(self.place)
        replace(self._path / name, raw)

    def remove(self, name: str) -> None:
        if self._read_only:
            return
        with contextlib.suppress(OSError):  # a file that stays is replaced when it is put again
            (self._path / name).unlink()


def read_only_store(place: str) -> RunError:
    """Word the refusal to write scores into a store that is only read."""
    return RunError(f"{place}: these scores are only read here, and nothing is added to them.")


def is_shard(name: str) -> bool:
    """Whether this is the name of a finished shard.

    >>> is_shard("key.sum.parquet"), is_shard("key.sum.parquet.host.7.tmp")
    (True, False)
    """
    return name.endswith(".parquet") and name.count(".") == 2


def replace(path: Path, raw: bytes) -> None:
    """Put bytes at a path so that no reader ever sees a part of them.

    The name of a shard depends on its bytes, so taking the place of one that is there changes
    nothing, unless that one was damaged.
    """
    with replacing(path) as file:
        file.write(raw)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when all went well, and else never was."""
    if not path.name or path.is_dir():
        raise DataError(f"{path}: is a folder. Give the name of a file to write.")
    temporary = path.with_name(f"{path.name}.{host()}.{os.getpid()}.tmp")
    with disk_errors(path):
        if not is_shard(path.name):  # whose places are tidied once, not at every write
            _tidy(path)
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            put_in_place(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        sync_folder(path.parent)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full, read-only or vanished disk into a message that says what to do."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{path}: cannot write ({error.strerror or error}). Nothing half-written was left "
            "behind and finished work is kept; make room or pick another folder, then continue "
            "with: evenhand resume RUN"
        ) from error


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """The same for a file that can be made again: it may go elsewhere."""
    try:
        yield
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise RunError(
            f"{path}: cannot write ({cause.strerror or cause}). Choose another place with: --out "
            "(out)"
        ) from cause


@contextlib.contextmanager
def disk_trouble(folder: Path) -> Iterator[None]:
    """The same for any file of a run, temporary ones elsewhere included."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK:
            raise
        with disk_errors(Path(error.filename or folder)):
            raise


def _tidy(path: Path) -> None:
    """Take away what killed writers of this file left beside it."""
    for left in path.parent.glob(f"{escape(path.name)}.*.tmp"):
        if not _writer_lives(left.name.removeprefix(f"{path.name}.")):
            with contextlib.suppress(OSError):
                left.unlink()


def _left_behind(name: str) -> bool:
    """Whether this is what a killed writer of a shard left."""
    *shard, ending = name.split(".", 3)
    return name.endswith(".tmp") and len(shard) == 3 and not _writer_lives(ending)


def _writer_lives(ending: str) -> bool:
    """Whether the process that writes this temporary file (HOST.PID.tmp) may still be running."""
    machine, _, process = ending.removesuffix(".tmp").rpartition(".")
    if machine != host() or not process.isdecimal():
        return True  # another host's or another program's: not ours to judge
    return int(process) != os.getpid() and alive(int(process))
