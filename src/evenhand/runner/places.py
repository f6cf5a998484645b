"""Which place a path or URL of shards is, and what opens it."""

from __future__ import annotations

import re
from pathlib import Path

from evenhand.errors import SpecError
from evenhand.runner.files import Files, LocalFiles
from evenhand.runner.remote import RemoteFiles, without_login

URL = re.compile(r"(?:[\w.+-]+::)*[\w.+-]+://(?=[^/]|/[^/])")
SCHEME = re.compile(r"[A-Za-z][\w.+-]+:/")
LOCAL = ("file://", "local://")


def open_files(place: Path | str, *, read_only: bool = False) -> Files:
    """The files at a path or URL; `file://` is the folder it names.

    With `read_only`, nothing is made, added or removed there.

    >>> type(open_files("memory://doc/scores")).__name__
    'RemoteFiles'
    """
    if isinstance(place, Path):
        return LocalFiles(place, read_only=read_only)
    if is_remote(place):
        return RemoteFiles(place.rstrip("/"), read_only=read_only)
    return LocalFiles(local_path(place), read_only=read_only)


def local_path(place: str) -> Path:
    """The folder that a place which is not remote names."""
    return Path(place.split("://", 1)[1] if place.startswith(LOCAL) else place)


def is_remote(place: str) -> bool:
    """Whether a store is more than a folder of this machine's file system.

    >>> is_remote("s3://bucket/prefix"), is_remote("file:///tmp/s"), is_remote("/tmp/s")
    (True, False, False)
    """
    return "://" in place and not place.startswith(LOCAL)


def settled(store: str) -> str:
    """One spelling per place, the same from every working directory.

    >>> settled("s3://bucket/prefix/")
    's3://bucket/prefix'
    """
    if store.startswith(LOCAL):
        return f"file://{Path(store.split('://', 1)[1]).absolute()}"
    if URL.match(store):
        return without_login(store.rstrip("/"))
    if not store or SCHEME.match(store):
        raise SpecError(
            f"--store {store!r}: names no place. Accepted: a folder, s3://bucket/prefix, or "
            f"another URL of fsspec."
        )
    return str(Path(store).absolute())
