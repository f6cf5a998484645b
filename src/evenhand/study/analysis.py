"""Does a metric of the vectors go with the behaviour of what is built on them?

Three numbers stand beside each correlation, because each alone misleads:

* the correlation inside each family of changes: families on different scales can make, or hide,
  a pooled one;
* the reliability of both columns, from replicates of the unmodified vectors,
      reliability = 1 - variance of replicates / variance over changed vectors;
* the ceiling that this noise leaves, sqrt(reliability of x * reliability of y) (Spearman 1904):
  below about 0.3 a correlation near zero says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenhand.strict import plain
from evenhand.study.correlation import Ceiling, CorrelationReader, Row, Stratum, reliabilities
from evenhand.study.grid import ORIGINAL
from evenhand.study.points import Columns
from evenhand.study.recipe import Recipe

NAN = float("nan")


@dataclass(frozen=True)
class Trust:
    """How much of a column's spread over changed vectors is more than noise of training."""

    metric: str
    algorithm: str
    noise_sd: float
    n_replicates: int
    spread_sd: float
    n_modified: int
    reliability: float
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True)
class Pair:
    """One correlation with what is needed to believe it."""

    x: str
    y: str
    algorithm: str
    n: int
    spearman: float
    low: float
    high: float
    p: float
    q: float
    pearson: float
    kendall: float
    reliability_x: float
    reliability_y: float
    ceiling: float
    strata: tuple[Stratum, ...] = ()
    reason: str = ""


def analyse(path: Path, columns: Columns, recipe: Recipe) -> tuple[list[Pair], list[Trust]]:
    """Every metric of the vectors against every one of the systems, per algorithm.

    Args:
        path: the table of runs; replicates of the original are its rows of that family.
        columns: its metric columns; with one side empty only reliabilities are known yet.
        recipe: resamples and seed.
    """
    again = f"family={ORIGINAL}"
    names = (*columns.intrinsic, *columns.extrinsic)
    trust = reliabilities(path, names, by="algorithm", replicates=again) if names else []
    known = [
        Trust(
            row.column, row.by or "", row.noise_sd, row.n_replicates, row.spread_sd, row.n_points,
            row.reliability, row.low, row.high, row.reason or "",
        )
        for row in trust
    ]  # fmt: skip
    if not columns.intrinsic or not columns.extrinsic:
        return [], known
    result = CorrelationReader(
        table=path,
        x=columns.intrinsic,
        y=columns.extrinsic,
        by=("algorithm",),
        strata="family",
        replicates=again,
        resamples=recipe.correlation.resamples,
        seed=recipe.seed,
        as_published=recipe.correlation.scipy_stream,
    ).read()
    return [_pair(row) for row in result.rows], known


def _pair(row: Row) -> Pair:
    trust = row.trust or Ceiling(NAN, NAN, NAN, None)
    return Pair(
        row.x, row.y, row.by or "", row.n, row.spearman, row.low, row.high, row.p, row.q,
        row.pearson, row.kendall, trust.reliability_x, trust.reliability_y, trust.ceiling,
        strata=tuple(s for s in row.strata if s.n > 2), reason=row.reason or "",
    )  # fmt: skip


def as_table(rows: list[Any]) -> pa.Table:
    """Dataclass rows as columns; strata become `spearman_<family>` and `n_<family>`."""
    out: list[dict[str, Any]] = []
    for row in rows:
        values = {k: v for k, v in row.__dict__.items() if k != "strata"}
        for part in getattr(row, "strata", ()):
            values[f"spearman_{part.stratum}"] = part.spearman
            values[f"n_{part.stratum}"] = part.n
        out.append(plain(values))
    names = list(dict.fromkeys(k for row in out for k in row))
    return pa.table({n: pa.array([row.get(n) for row in out]) for n in names})
