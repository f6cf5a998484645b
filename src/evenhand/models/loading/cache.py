"""Where evenhand keeps what it converted or fetched once."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.confined import own_folder
from evenhand.systems import user


def cache_folder() -> Path:
    """`$EVENHAND_CACHE`, or `evenhand` where this system keeps caches of users.

    That is `$XDG_CACHE_HOME` or `~/.cache` on Linux, `~/Library/Caches` on macOS and
    `%LOCALAPPDATA%` on Windows. One that an earlier version made below `~/.cache` is used on.
    """
    if (own := own_folder()) is not None:  # nothing of the user's is read or changed
        return own / "cache"
    if chosen := os.environ.get("EVENHAND_CACHE"):
        return Path(chosen)
    import platformdirs

    usual = platformdirs.user_cache_path("evenhand", appauthor=False)
    if os.environ.get("XDG_CACHE_HOME") or usual.exists():
        return usual
    earlier = Path.home() / ".cache" / "evenhand"
    return earlier if earlier.is_dir() else usual


def writable(folder: Path) -> Path:
    """The folder where something may be made; a temporary one when the cache cannot be written.

    What lies in a read-only cache is still read. Something new is then made again in every
    process, which a warning says.
    """
    try:
        if folder.exists() and ours(folder):
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() or not ours(folder.parent):
            raise PermissionError(errno.EPERM, "it belongs to another user")
        with tempfile.TemporaryFile(dir=folder.parent):
            return folder
    except OSError as error:
        spare = Path(tempfile.gettempdir()) / f"evenhand-{user() or 0}" / folder.name
        with contextlib.suppress(FileExistsError):
            spare.parent.mkdir(mode=0o700)
        if not ours(spare.parent):  # whoever made it could put anything there
            spare = Path(tempfile.mkdtemp(prefix="evenhand-")) / folder.name
        warnings.warn(
            f"{folder.parent}: the cache cannot be written ({error.strerror or error}); using "
            f"{spare.parent} for now. Choose another with: export EVENHAND_CACHE=DIR",
            stacklevel=2,
        )
        return spare


def ours(path: Path) -> bool:
    """Whether a place belongs to this user or the system, and nobody else may change it.

    >>> ours(Path(__file__).parent)
    True
    """
    info, own = path.stat(), user()
    if own is None:  # Windows guards a user's folders by lists of rights, which are not read here
        return True
    shared = info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX
    return {info.st_uid, path.lstat().st_uid} <= {0, own} and not shared


def file_digest(path: Path) -> str:
    """SHA-256 of a file, remembered by its place, size and time."""
    info = path.stat()

    def digest() -> dict[str, str]:
        state = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 22):
                state.update(block)
        return {"sha256": state.hexdigest(), "file": str(path)}

    mark = f"{path.resolve()}:{info.st_size}:{info.st_mtime_ns}"
    return str(remembered("digests", mark, digest, sha256=str)["sha256"])


def remembered(
    kind: str, mark: str, find: Callable[[], dict[str, Any]], **types: type
) -> dict[str, Any]:
    """What was found about something, found once and kept in the cache.

    Args:
        kind: the folder of such facts.
        mark: names what they are about; whatever can change them is in it.
        find: finds them.
        types: of what is found; where something else stands in the cache, it is found again.
    """
    memo = cache_folder() / kind / hashlib.sha256(mark.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known: dict[str, Any] = json.loads(memo.read_text(encoding="utf-8")) if ours(memo) else {}
        if all(type(known[name]) is wanted for name, wanted in types.items()):
            return known
    found = find()
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        temporary = memo.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(found), encoding="utf-8")
        temporary.replace(memo)
    return found
