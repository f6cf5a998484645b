"""Where evenhand keeps what it converted or fetched once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path


def cache_folder() -> Path:
    """`$EVENHAND_CACHE`, or `evenhand` below the user's cache folder."""
    if chosen := os.environ.get("EVENHAND_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "evenhand"


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
