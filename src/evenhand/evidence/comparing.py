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
from evenhand.runs.controls import CONTROLS
from evenhand.runs.finding import from_json, to_table
from evenhand.runs.record import Run, code, environment

COMPUTED = ("placebos", "rung", "chat", "system", *TOLD)
MATTERS = ("evenhand", "python", "numpy", "scipy", "scikit-learn", "pyarrow", "machine")
ROWS = 65_536
WORDS = ("sentence", "otherwise", "harm")
"""What findings of an older version may word otherwise, while every number has to be the same."""
OLDER = "the wording of an older version, which is not compared"
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


def older_words(run: Run) -> bool:
    """Whether a run's findings were worded before a difference without a harm had words.

    Such a run was computed by another state of evenhand, and none of its findings has the field.
    """
    if run.facts.get("environment", {}).get("code") == code():
        return False
    rows = json.loads((run.folder / "findings.json").read_bytes())["findings"]
    return not any("difference" in row for row in rows)


def same_document(computed: bytes, held: bytes, *, older: bool) -> bool:
    """Whether a document is the one that was written, but for hazards that were worded before."""
    if computed == held or not older:
        return computed == held
    both = [json.loads(raw or b"null") for raw in (computed, held)]
    for row in (row for document in both if document for row in document.get("scenarios", ())):
        row.pop("hazard", None)
    return same(*both)


def difference(one: Run, two: Run, equal: Same = same) -> str:
    """The first part that differs, in words; empty when all that is computed is equal."""
    raw = [(run.folder / "findings.json").read_bytes() for run in (one, two)]
    older = older_words(one)
    if raw[0] != raw[1]:
        told = [json.loads(text) for text in raw]
        if older:
            told = [{**t, "findings": rows} for t, rows in zip(told, _numbers(*told))]
        if (equal is same and not older) or not equal(*told):
            return "findings.json"
    if older and not _tabulated(one.folder):
        return "findings.parquet"
    told_apart = _told(one.facts, two.facts, equal)
    return told_apart or _tables(one.folder, two.folder, equal, older=older)


def _tabulated(folder: Path) -> bool:
    """Whether findings.parquet holds what findings.json of the same folder does."""
    table = pq.read_table(folder / "findings.parquet")
    rows = to_table(from_json((folder / "findings.json").read_bytes()))
    known = [name for name in table.column_names if name in rows.column_names]
    return same(table.select(known).to_pylist(), rows.select(known).to_pylist())


def _numbers(one: dict[str, Any], two: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The findings of both without what only the newer one has, and without their wording."""
    first = [{k: v for k, v in row.items() if k not in WORDS} for row in one["findings"]]
    second = [
        {k: _shared(new.get(k), value) for k, value in old.items()}
        for old, new in zip(first, two["findings"])
    ]
    return first, [*second, *two["findings"][len(first) :]]


def _shared(new: Any, old: Any) -> Any:
    """A value of the newer run; of a mapping only what the older one has too."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {k: new[k] for k in old if k in new}
    return new


def _told(one: dict[str, Any], two: dict[str, Any], equal: Same) -> str:
    if CONTROLS in one and not equal(one[CONTROLS], two.get(CONTROLS)):  # older runs have none
        return f"{CONTROLS!r} in run.json"
    for key in COMPUTED:
        if key in two and not equal(one.get(key), two[key]):
            return f"{key!r} in run.json"
    for label, entry in two["probes"].items():
        if not equal(one["probes"].get(label, {}).get("summary"), entry.get("summary")):
            return f"the summary of {label!r} in run.json"
    return ""


def _tables(one: Path, two: Path, equal: Same, *, older: bool = False) -> str:
    names = [
        {p.relative_to(folder).as_posix() for p in folder.glob("probes/*/*.parquet")}
        for folder in (one, two)
    ]
    for name in sorted(names[0] | names[1] | (set() if older else {"findings.parquet"})):
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
