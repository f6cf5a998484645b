"""Shard files in an object store reached through fsspec.

A store keeps objects in buckets that somebody made and pays for, so a bucket is never made here:
a mistyped name would else open an empty one and fill it. Folders of stores that have them
(memory, sftp, hdfs, ...) are made as needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.confined import refuse
from evenhand.errors import EvenhandError, MissingExtra, RunError, SpecError, bare, need
from evenhand.runner.files import is_shard, read_only_store

DRIVERS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
"""What fsspec needs for a kind of store."""
MAKE = {"s3": "aws s3 mb s3://{}", "gs": "gcloud storage buckets create gs://{}"}


_LOGINS: dict[str, str] = {}


def without_login(url: str) -> str:
    """The URL as it may be written down; its user name and password stay in this process.

    >>> without_login("sftp://me:hidden@host/scores")
    'sftp://host/scores'
    """
    shown = bare(url)
    if shown != url:
        _LOGINS["/".join(shown.split("/")[:3])] = "/".join(url.split("/")[:3])
    return shown


def with_login(url: str) -> str:
    """The URL as it was given, where it had a user name and password."""
    host = "/".join(url.split("/")[:3])
    return _LOGINS.get(host, host) + url[len(host) :]


class RemoteFiles:
    """Objects below a URL: s3://bucket/prefix, gs://..., memory://..., whatever fsspec knows."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        refuse(f"store {url}")
        fsspec: Any = need("fsspec", extra="store", what=f"the store {url!r}")
        self.folder: Path | str = url
        self.place = url
        self._read_only = read_only
        with answering(url):
            self._fs, self._root = fsspec.core.url_to_fs(with_login(url))
            # Paths of file systems begin with a slash, those of object stores with a bucket.
            self._bucket = "" if self._root.startswith("/") else self._root.split("/")[0]
            if not self._bucket and not read_only:
                self._fs.makedirs(self._root, exist_ok=True)

    def names(self, prefix: str = "") -> list[str]:
        with answering(self.place):
            self._fs.invalidate_cache(self._root)
            try:
                listed = self._fs.ls(self._root, detail=True, refresh=True)
            except FileNotFoundError:  # a bucket has no empty folders
                if self._read_only and not self._bucket:
                    return []
                self._require_bucket()
                return []
        files = (entry["name"] for entry in listed if entry.get("type") != "directory")
        found = (str(path).rsplit("/", 1)[-1] for path in files)
        return sorted(n for n in found if is_shard(n) and n.startswith(prefix))

    def read(self, name: str) -> bytes | None:
        with answering(self.place):
            try:
                raw: bytes = self._fs.cat_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return None
            return raw

    def put(self, name: str, raw: bytes) -> None:
        if self._read_only:
            raise read_only_store(self.place)
        with answering(self.place):
            try:
                self._fs.pipe_file(f"{self._root}/{name}", raw)
            except FileNotFoundError:
                self._require_bucket()
                raise

    def remove(self, name: str) -> None:
        if self._read_only:
            return
        with answering(self.place), contextlib.suppress(FileNotFoundError, PermissionError):
            self._fs.rm_file(f"{self._root}/{name}")

    def _require_bucket(self) -> None:
        """Raise a clear error when the bucket is not there.

        Whoever may see a part of a bucket only is refused the question, not the work.
        """
        if not self._bucket:
            return
        try:
            self._fs.info(self._bucket)
        except PermissionError:
            return
        except FileNotFoundError as error:
            kind = self.place.split("://")[0]
            make = MAKE.get(kind, "the tools of that store").format(self._bucket)
            raise SpecError(
                f"--store {self.place!r}: bucket {self._bucket!r} does not exist or may not be "
                f"seen with these credentials; none is made here. Correct --store, or make it "
                f"with: {make}"
            ) from error


@contextlib.contextmanager
def answering(url: str) -> Iterator[None]:
    """Turn whatever an object store's library raises into one paragraph."""
    try:
        yield
    except EvenhandError:
        raise
    except ImportError as error:
        driver = DRIVERS.get(url.split("://")[0], "what fsspec names")
        raise MissingExtra(
            f"the store {url!r} cannot be opened ({_line(error)}). Install what it needs with: "
            f"pip install {driver}"
        ) from error
    except ValueError as error:
        raise SpecError(
            f"--store {url!r}: cannot be opened ({_line(error)}). Accepted: a folder, "
            f"s3://bucket/prefix (with: pip install s3fs), gs://bucket/prefix (gcsfs), or another "
            f"URL of fsspec."
        ) from error
    except Exception as error:
        raise RunError(
            f"{url}: the store does not answer as it should ({type(error).__name__}: "
            f"{_line(error)}). Look at its address, your credentials and the network. Finished "
            "work is kept; when it answers again, continue with: evenhand resume RUN"
        ) from error


def _line(error: Exception) -> str:
    """What the library said, as one line of bearable length."""
    text = bare(" ".join(str(error).split()).rstrip("."))
    return text if len(text) <= 300 else f"{text[:300]}..."
