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
import pyarrow.compute as pc
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


def another_state(run: Run) -> bool:
    """Return whether another state of evenhand computed a run, which may have recorded less."""
    return bool(run.facts.get("environment", {}).get("code") != code())


def older_words(run: Run) -> bool:
    """Whether a run's findings were worded before a difference without a harm had words.

    Such a run was computed by another state of evenhand, and none of its findings has the field.
    """
    if not another_state(run):
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
    """Return the first part that differs, in words; empty when all that is computed is equal.

    Of a run that another state of evenhand computed, only what it recorded is compared: keys of a
    summary and columns of a table that came later are left out, and so is the order of columns.
    """
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
    recorded = another_state(one)
    told_apart = _told(one.facts, two.facts, equal, recorded=recorded)
    return told_apart or _tables(one.folder, two.folder, equal, older=older, recorded=recorded)


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
    """Return a value of the newer run; of mappings in it, only the keys that the older one has."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {k: _shared(new[k], old[k]) for k in old if k in new}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_shared(a, b) for a, b in zip(new, old)]
    return new


def _told(one: dict[str, Any], two: dict[str, Any], equal: Same, *, recorded: bool) -> str:
    if CONTROLS in one and not equal(one[CONTROLS], two.get(CONTROLS)):  # older runs have none
        return f"{CONTROLS!r} in run.json"
    for key in COMPUTED:
        if key in two and not equal(one.get(key), two[key]):
            return f"{key!r} in run.json"
    for label, entry in two["probes"].items():
        summary = one["probes"].get(label, {}).get("summary")
        computed = _shared(entry.get("summary"), summary) if recorded else entry.get("summary")
        if not equal(summary, computed):
            return f"the summary of {label!r} in run.json"
    return ""


def _tables(
    one: Path, two: Path, equal: Same, *, older: bool = False, recorded: bool = False
) -> str:
    names = [
        {p.relative_to(folder).as_posix() for p in folder.glob("probes/*/*.parquet")}
        for folder in (one, two)
    ]
    wanted = names[0] if recorded else names[0] | names[1]
    for name in sorted(wanted | (set() if older else {"findings.parquet"})):
        old, new = one / name, two / name
        if not (old.is_file() and new.is_file() and _equal(old, new, equal, recorded=recorded)):
            return name
    return ""


def _equal(one: Path, two: Path, equal: Same, *, recorded: bool) -> bool:
    """Equal bytes, or, where another version of Parquet wrote one of them, equal rows.

    With `recorded`, the rows of the columns that the first has and in which it has a value.
    """
    if one.read_bytes() == two.read_bytes():
        return True
    try:
        files = [pq.ParquetFile(p) for p in (one, two)]
        sizes = {f.metadata.num_rows for f in files}
        schemas = [f.schema_arrow for f in files]
        if (not recorded and schemas[0] != schemas[1]) or len(sizes) > 1:
            return False
        if not set(schemas[0].names) <= set(schemas[1].names):
            return False
        for batches in zip(*(f.iter_batches(ROWS) for f in files)):
            if recorded:
                batches = tuple(batch.select(_filled(batches[0])) for batch in batches)
            if not equal(*(batch.to_pylist() for batch in batches)):
                return False
        return True
    except (pa.ArrowException, OSError, ValueError):
        return False


def _filled(batch: pa.RecordBatch) -> list[str]:
    """Return the columns that hold a value in some row, neither null nor NaN."""
    empty = {n: pc.all(pc.is_null(batch.column(n), nan_is_null=True)) for n in batch.schema.names}
    return [name for name, value in empty.items() if not value.as_py()]
