"""Golden files: one for each pinned thing, compressed JSON with the same bytes for equal values."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


def golden_path(group: str, name: str) -> Path:
    return GOLDEN / group / f"{name}.json.gz"


def read_golden(group: str, name: str) -> dict[str, Any]:
    """Return the pinned values; empty where there is no golden file yet."""
    path = golden_path(group, name)
    if not path.is_file():
        return {}
    values: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return values


def write_golden(group: str, name: str, values: dict[str, Any]) -> None:
    path = golden_path(group, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode("utf-8", "backslashreplace"), 9, mtime=0))
