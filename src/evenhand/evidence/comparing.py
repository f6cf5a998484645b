"""Whether a run computed once more is the one that was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.models.choosing import TOLD
from evenhand.runs.record import Run
from evenhand.strict import plain

COMPUTED = ("placebos", "rung", "chat", "system", *TOLD)
ROWS = 65_536


def difference(one: Run, two: Run) -> str:
    """The first part that differs, in words; empty when all that is computed is equal."""
    raw = [(run.folder / "findings.json").read_bytes() for run in (one, two)]
    if raw[0] != raw[1]:
        return "findings.json"
    return _told(one.facts, two.facts) or _tables(one.folder, two.folder)


def _told(one: dict[str, Any], two: dict[str, Any]) -> str:
    for key in COMPUTED:
        if key in two and plain(one.get(key)) != plain(two[key]):
            return f"{key!r} in run.json"
    for label, entry in two["probes"].items():
        if plain(one["probes"].get(label, {}).get("summary")) != plain(entry.get("summary")):
            return f"the summary of {label!r} in run.json"
    return ""


def _tables(one: Path, two: Path) -> str:
    names = [
        {p.relative_to(folder).as_posix() for p in folder.glob("probes/*/*.parquet")}
        for folder in (one, two)
    ]
    for name in sorted({"findings.parquet"} | names[0] | names[1]):
        paths = [folder / name for folder in (one, two)]
        if not all(p.is_file() for p in paths) or not _equal(*paths):
            return name
    return ""


def _equal(one: Path, two: Path) -> bool:
    """Equal bytes, or, where another version of Parquet wrote one of them, equal rows."""
    if one.read_bytes() == two.read_bytes():
        return True
    try:
        files = [pq.ParquetFile(p) for p in (one, two)]
        if files[0].schema_arrow != files[1].schema_arrow:
            return False
        rows = (f.iter_batches(ROWS) for f in files)
        sizes = {f.metadata.num_rows for f in files}
        # repr: a NaN is equal to a NaN
        return len(sizes) == 1 and all(
            repr(a.to_pylist()) == repr(b.to_pylist()) for a, b in zip(*rows)
        )
    except (pa.ArrowException, OSError, ValueError):
        return False
