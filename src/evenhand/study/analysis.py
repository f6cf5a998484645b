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

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.measures.correlation import measure
from evenhand.stats.reliability import attenuation_ceiling
from evenhand.stats.reliability import reliability as spread_against_noise
from evenhand.study.points import columns_of, modified, replicates
from evenhand.study.recipe import Recipe

LOW_CEILING = 0.3
NAN = float("nan")


@dataclass(frozen=True)
class Reliability:
    """How much of a column's spread is more than noise."""

    metric: str
    algorithm: str
    noise_sd: float
    n_replicates: int
    spread_sd: float
    n_modified: int
    reliability: float
    low: float = NAN
    high: float = NAN
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
    strata: tuple[dict[str, Any], ...] = field(default=())
    reason: str = ""


def reliability(runs: pa.Table, metric: str, algorithm: str) -> Reliability:
    """A metric's reliability: replicates of the unmodified vectors against changed vectors."""
    same, changed = replicates(runs, metric, algorithm), modified(runs, metric, algorithm)
    found = spread_against_noise(same, changed)
    return Reliability(
        metric, algorithm, found.noise_sd, found.n_replicates, found.spread_sd, found.n_points,
        found.reliability, found.low, found.high, found.reason,
    )  # fmt: skip


def reliabilities(runs: pa.Table, recipe: Recipe) -> list[Reliability]:
    """Every metric's reliability, per training algorithm."""
    columns = columns_of(runs)
    names = (*columns.intrinsic, *columns.extrinsic)
    return [reliability(runs, n, a) for a in recipe.training.algorithms for n in names]


def pairs(points: Path, runs: pa.Table, recipe: Recipe) -> list[Pair]:
    """Every metric of the vectors against every one of the systems, per algorithm."""
    columns = columns_of(runs)
    if not columns.intrinsic or not columns.extrinsic:
        return []
    known = {(r.metric, r.algorithm): r.reliability for r in reliabilities(runs, recipe)}
    result = measure(
        points,
        x=columns.intrinsic,
        y=columns.extrinsic,
        by="algorithm",
        strata="family",
        resamples=recipe.correlation.resamples,
        seed=recipe.seed,
        as_published=recipe.correlation.scipy_stream,
    )
    return [_pair(row, known) for row in result["rows"]]


def _pair(row: dict[str, Any], known: dict[tuple[str, str], float]) -> Pair:
    x, y, by = row["x"], row["y"], row["by"]
    one, other = known.get((x, by), NAN), known.get((y, by), NAN)
    numbers = {
        name: NAN if row[name] is None else float(row[name])
        for name in ("spearman", "low", "high", "p", "q", "pearson", "kendall")
    }
    strata = tuple(s for s in row["strata"] if s["n"] > 2)
    return Pair(
        x, y, by, int(row["n"]), **numbers, reliability_x=one, reliability_y=other,
        ceiling=attenuation_ceiling(one, other), strata=strata, reason=row["reason"] or "",
    )  # fmt: skip


def as_table(rows: list[Any]) -> pa.Table:
    """Dataclass rows as columns; strata become `spearman_<family>` and `n_<family>`."""
    out: list[dict[str, Any]] = []
    for row in rows:
        values = {k: v for k, v in row.__dict__.items() if k != "strata"}
        for part in getattr(row, "strata", ()):
            values[f"spearman_{part['stratum']}"] = part["spearman"]
            values[f"n_{part['stratum']}"] = part["n"]
        out.append({k: _finite(v) for k, v in values.items()})
    names = list(dict.fromkeys(k for row in out for k in row))
    return pa.table({n: pa.array([row.get(n) for row in out]) for n in names})


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
