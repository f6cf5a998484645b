"""Where evenhand keeps what it converted or fetched once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from pathlib import Path


def cache_folder() -> Path:
    """`$EVENHAND_CACHE`, or `evenhand` below the user's cache folder."""
    if chosen := os.environ.get("EVENHAND_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "evenhand"


def writable(folder: Path) -> Path:
    """The folder where something may be made; a temporary one when the cache cannot be written.

    What lies in a read-only cache is still read. Something new is then made again in every
    process, which a warning says.
    """
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent):
            return folder
    except OSError as error:
        spare = Path(tempfile.gettempdir()) / f"evenhand-{os.getuid()}" / folder.name
        warnings.warn(
            f"{folder.parent}: the cache cannot be written ({error.strerror or error}); using "
            f"{spare.parent} for now. Choose another with: export EVENHAND_CACHE=DIR",
            stacklevel=2,
        )
        spare.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return spare


def file_digest(path: Path) -> str:
    """SHA-256 of a file, remembered by its place, size and time."""
    info = path.stat()
    mark = f"{path.resolve()}:{info.st_size}:{info.st_mtime_ns}"
    memo = cache_folder() / "digests" / hashlib.sha256(mark.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads(memo.read_text())["sha256"])
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            state.update(block)
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        temporary = memo.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"sha256": state.hexdigest(), "file": str(path)}))
        temporary.replace(memo)
    return state.hexdigest()
