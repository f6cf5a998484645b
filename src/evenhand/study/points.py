"""The table of a study: one row per trained system, and one per point of the grid.

Replicates of the unmodified vectors are one point, at their mean; how far they lie apart is the
noise of the whole chain (training the vectors and training the system on them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.study.folder import StudyFolder
from evenhand.study.grid import Cell

KEYS = (
    "algorithm",
    "family",
    "direction",
    "share",
    "regularisation",
    "attract_margin",
    "repel_margin",
)
INTRINSIC = "intrinsic"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Metric columns of a study by side."""

    intrinsic: tuple[str, ...]
    extrinsic: tuple[str, ...]


def runs_table(folder: StudyFolder, cells: Sequence[Cell], tasks: Sequence[str]) -> pa.Table:
    """One row per cell; a stage that is not finished leaves its columns empty."""
    rows = []
    for cell in cells:
        row = {"cell": cell.name, "point": cell.point, **{k: getattr(cell, k) for k in KEYS}}
        for stage in (INTRINSIC, *tasks):
            numbers = folder.read(cell.name, stage).get("metrics", {})
            row |= {f"{stage}:{name}": value for name, value in numbers.items()}
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def _column(name: str, values: list[object]) -> pa.Array:
    if ":" in name:
        return pa.array(values, pa.float64())
    return pa.array(values)


def columns_of(runs: pa.Table) -> Columns:
    """Which columns hold metrics of the vectors, and which of systems built on them."""
    metrics = [n for n in runs.column_names if ":" in n]
    inner = [n for n in metrics if n.startswith(f"{INTRINSIC}:")]
    return Columns(tuple(inner), tuple(n for n in metrics if n not in inner))


def points_table(runs: pa.Table) -> pa.Table:
    """One row per point: means over replicates, with `n` and the sample deviation `sd <metric>`.

    Deviations are given where a point has two replicates or more, and are empty elsewhere.
    """
    points = runs.column("point").to_pylist()
    order = list(dict.fromkeys(points))
    at = np.array([order.index(p) for p in points])
    first = [points.index(p) for p in order]
    out: dict[str, pa.Array] = {"point": pa.array(order)}
    for key in KEYS:
        values = runs.column(key).to_pylist()
        out[key] = pa.array([values[i] for i in first], runs.schema.field(key).type)
    out["n"] = pa.array(np.bincount(at, minlength=len(order)))
    for name in [n for n in runs.column_names if ":" in n]:
        values = _floats(runs, name)
        groups = [values[(at == i) & np.isfinite(values)] for i in range(len(order))]
        out[name] = pa.array([g.mean() if len(g) else None for g in groups], pa.float64())
        spread = [g.std(ddof=1) if len(g) > 1 else None for g in groups]
        out[f"sd {name}"] = pa.array(spread, pa.float64())
    return pa.table(out)


def _floats(table: pa.Table, name: str) -> Floats:
    return np.array([np.nan if v is None else v for v in table.column(name).to_pylist()], float)
