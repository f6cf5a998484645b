"""Whether a run computed once more is the one that was written.

With the recorded versions on the recorded kind of machine every byte is the same. Elsewhere sums
may be rounded otherwise in their last digits; then numbers may differ by that much (`near`), and
nothing else may.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isclose
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.models.choosing import TOLD
from evenhand.runs.record import Run, environment

COMPUTED = ("placebos", "rung", "chat", "system", *TOLD)
MATTERS = ("evenhand", "python", "numpy", "scipy", "scikit-learn", "pyarrow", "machine")
ROWS = 65_536
Same = Callable[[Any, Any], bool]


def same(a: Any, b: Any) -> bool:
    """Equal in every digit; a NaN is equal to a NaN."""
    return repr(a) == repr(b)


def near(a: Any, b: Any) -> bool:
    """Equal but for the last digits of numbers.

    >>> near([0.1 + 0.2, "x"], [0.3, "x"]), near(0.3, 0.31), near({"a": 1}, {"b": 1})
    (True, False, False)
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if type(a) is float and type(b) is float and a == a:
        return isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return same(a, b)


def elsewhere(run: Run) -> str:
    """What differs here from where a run was computed and may change last digits; in words."""
    there, here = run.facts.get("environment", {}), environment()
    return ", ".join(
        f"{name} {here.get(name)} instead of {there.get(name)}"
        for name in MATTERS
        if here.get(name) != there.get(name)
    )


def difference(one: Run, two: Run, equal: Same = same) -> str:
    """The first part that differs, in words; empty when all that is computed is equal."""
    raw = [(run.folder / "findings.json").read_bytes() for run in (one, two)]
    if raw[0] != raw[1] and (equal is same or not equal(*map(json.loads, raw))):
        return "findings.json"
    return _told(one.facts, two.facts, equal) or _tables(one.folder, two.folder, equal)


def _told(one: dict[str, Any], two: dict[str, Any], equal: Same) -> str:
    for key in COMPUTED:
        if key in two and not equal(one.get(key), two[key]):
            return f"{key!r} in run.json"
    for label, entry in two["probes"].items():
        if not equal(one["probes"].get(label, {}).get("summary"), entry.get("summary")):
            return f"the summary of {label!r} in run.json"
    return ""


def _tables(one: Path, two: Path, equal: Same) -> str:
    names = [
        {p.relative_to(folder).as_posix() for p in folder.glob("probes/*/*.parquet")}
        for folder in (one, two)
    ]
    for name in sorted({"findings.parquet"} | names[0] | names[1]):
        old, new = one / name, two / name
        if not (old.is_file() and new.is_file() and _equal(old, new, equal)):
            return name
    return ""


def _equal(one: Path, two: Path, equal: Same) -> bool:
    """Equal bytes, or, where another version of Parquet wrote one of them, equal rows."""
    if one.read_bytes() == two.read_bytes():
        return True
    try:
        files = [pq.ParquetFile(p) for p in (one, two)]
        sizes = {f.metadata.num_rows for f in files}
        if files[0].schema_arrow != files[1].schema_arrow or len(sizes) > 1:
            return False
        rows = (f.iter_batches(ROWS) for f in files)
        return all(equal(a.to_pylist(), b.to_pylist()) for a, b in zip(*rows))
    except (pa.ArrowException, OSError, ValueError):
        return False
