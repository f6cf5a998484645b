"""Does a metric of the vectors go with the behaviour of what is built on them?

Embeddings of one family of changes are related, so the verdict is over families
(`stats.families`), and as published over embeddings. Three numbers stand beside each correlation,
because each alone misleads:

* the correlation inside each family of changes: families on different scales can make, or hide,
  a pooled one;
* the reliability of both columns, from replicates of the unmodified vectors,
      reliability = 1 - variance of replicates / variance over changed vectors;
* the ceiling that this noise leaves, sqrt(reliability of x * reliability of y) (Spearman 1904):
  below about 0.3 a correlation near zero says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenhand.strict import plain
from evenhand.study.correlation import CorrelationReader, Row, Trust, reliabilities
from evenhand.study.grid import ORIGINAL
from evenhand.study.points import Columns
from evenhand.study.recipe import Recipe


def analyse(path: Path, columns: Columns, recipe: Recipe) -> tuple[list[Row], list[Trust]]:
    """Every metric of the vectors against every one of the systems, per algorithm (`by`).

    Args:
        path: the table of runs; replicates of the original are its rows of that family.
        columns: its metric columns; with one side empty only reliabilities are known yet.
    """
    again = f"family={ORIGINAL}"
    names = (*columns.intrinsic, *columns.extrinsic)
    known = reliabilities(path, names, by="algorithm", replicates=again) if names else []
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
    large = (tuple(s for s in row.strata if s.n > 2) for row in result.rows)
    return [replace(row, strata=strata) for row, strata in zip(result.rows, large)], known


OVER = ("n_families", "rho_families", "low_families", "high_families", "p_families", "q_families")
PAIR = (
    "x",
    "y",
    "by",
    "n",
    "spearman",
    "low",
    "high",
    "p",
    "q",
    "pearson",
    "kendall",
    "reliability_x",
    "reliability_y",
    "ceiling",
    "reason",
    *OVER,
)
TRUST = (
    "column",
    "by",
    "noise_sd",
    "n_replicates",
    "spread_sd",
    "n_points",
    "reliability",
    "low",
    "high",
    "reason",
)
CALLED = {"by": "algorithm", "column": "metric", "n_points": "n_modified"}


def as_table(rows: Sequence[Row] | Sequence[Trust], names: Sequence[str]) -> pa.Table:
    """Rows as columns; strata become `spearman_<family>` and `n_<family>`."""
    out: list[dict[str, Any]] = []
    for row in plain(rows):
        values = {CALLED.get(k, k): row.get(k) for k in names}
        values["reason"] = row["reason"] or ""
        for part in row.get("strata", ()):
            values[f"spearman_{part['stratum']}"] = part["spearman"]
            values[f"n_{part['stratum']}"] = part["n"]
        out.append(values)
    found = list(dict.fromkeys(k for row in out for k in row))
    return pa.table({n: pa.array([row.get(n) for row in out]) for n in found})
