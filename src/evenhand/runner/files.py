"""Where shard files lie: a folder, or an object store reached through fsspec.

    file system    a temporary name, fsync, link(2) into place, fsync of the folder
    object store   one put of the whole object: it appears complete or not at all

Names are `<key>.<checksum>.parquet`, so two writers of one shard write equal bytes to equal names,
and a reader can tell a damaged file from its name, whatever the store did.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from evenhand.errors import RunError, SpecError, need

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}
"""What a full, read-only, forbidden, broken or vanished disk says."""


class Files(Protocol):
    """A flat place of named, immutable files."""

    place: str
    """An absolute path or URL that another process can open."""
    folder: Path | str

    def names(self, prefix: str = "") -> list[str]:
        """The shards there, last name first."""

    def read(self, name: str) -> bytes | None:
        """The file's bytes, or None when there is no such file."""

    def put(self, name: str, raw: bytes) -> None:
        """Make the file appear whole; one that is there already stays."""

    def remove(self, name: str) -> None:
        """Take a damaged file away."""


class LocalFiles:
    """Files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path | str = folder
        self._path = folder
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.place = str(folder.resolve())

    def names(self, prefix: str = "") -> list[str]:
        found = []
        for entry in sorted(os.scandir(self._path), key=lambda e: e.name, reverse=True):
            if is_shard(entry.name) and entry.name.startswith(prefix):
                found.append(entry.name)
            elif not prefix and entry.name.endswith(".tmp") and not _writer_lives(entry.name):
                os.unlink(entry.path)  # left by a killed writer
        return found

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, raw: bytes) -> None:
        with disk_errors(self._path):
            commit(self._path / name, raw)

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)


class RemoteFiles:
    """Objects below a URL: s3://bucket/prefix, gs://..., memory://..., whatever fsspec knows."""

    def __init__(self, url: str) -> None:
        fsspec: Any = need("fsspec", extra="store", what=f"the store {url!r}")
        self.folder: Path | str = url
        self.place = url
        with _answering(url):
            self._fs, self._root = fsspec.core.url_to_fs(url)
            self._fs.makedirs(self._root, exist_ok=True)

    def names(self, prefix: str = "") -> list[str]:
        with _answering(self.place):
            self._fs.invalidate_cache(self._root)
            try:
                listed = self._fs.ls(self._root, detail=False, refresh=True)
            except FileNotFoundError:  # a bucket has no empty folders
                return []
        found = (str(path).rsplit("/", 1)[-1] for path in listed)
        return sorted((n for n in found if is_shard(n) and n.startswith(prefix)), reverse=True)

    def read(self, name: str) -> bytes | None:
        with _answering(self.place):
            try:
                raw: bytes = self._fs.cat_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return None
            return raw

    def put(self, name: str, raw: bytes) -> None:
        with _answering(self.place):
            self._fs.pipe_file(f"{self._root}/{name}", raw)

    def remove(self, name: str) -> None:
        with _answering(self.place), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._root}/{name}")


def open_files(place: Path | str) -> Files:
    """The files at a path or URL; `file://` is the folder it names.

    >>> type(open_files("memory://doc/scores")).__name__
    'RemoteFiles'
    """
    text = str(place)
    if isinstance(place, str) and "://" in text:
        if text.startswith(("file://", "local://")):
            return LocalFiles(Path(text.split("://", 1)[1]))
        return RemoteFiles(text.rstrip("/"))
    return LocalFiles(Path(place))


def is_shard(name: str) -> bool:
    """Whether this is the name of a finished shard.

    >>> is_shard("key.sum.parquet"), is_shard("key.sum.parquet.host.7.tmp")
    (True, False)
    """
    return name.endswith(".parquet") and name.count(".") == 2


@contextlib.contextmanager
def _answering(url: str) -> Iterator[None]:
    """Turn whatever an object store's library raises into one paragraph."""
    try:
        yield
    except (RunError, FileNotFoundError):
        raise
    except (ValueError, ImportError) as error:
        raise SpecError(
            f"--store {url!r}: cannot be opened ({error}). Accepted: a folder, s3://bucket/prefix "
            f"(with: pip install s3fs), gs://bucket/prefix (gcsfs), or another URL of fsspec."
        ) from error
    except Exception as error:
        raise RunError(
            f"{url}: the store does not answer as it should ({type(error).__name__}: {error}). "
            f"Finished work is kept; when it answers again, go on with: evenhand resume RUN"
        ) from error


def commit(path: Path, raw: bytes) -> None:
    """Put bytes at a path so that no reader ever sees a part of them."""
    temporary = path.with_name(f"{path.name}.{os.uname().nodename}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        # An equal file already there means that another worker was first.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that a new name in the folder survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full, read-only or vanished disk into a message that says what to do."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{path}: cannot write ({error.strerror or error}). Nothing half-written was left "
            f"behind and finished work is kept; make room or pick another folder, then go on "
            f"with: evenhand resume RUN"
        ) from error


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


def _writer_lives(temporary: str) -> bool:
    """Whether the process that writes this temporary file may still be running."""
    parts = temporary.split(".")
    host, process = ".".join(parts[3:-2]), parts[-2]
    if host != os.uname().nodename or not process.isdigit():
        return True  # another host's: not ours to judge
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return int(process) != os.getpid()
