"""Metrics against behaviour over families of related embeddings.

Families lie at their own level of every column, and inside a family a change moves every column by
its own amount per step: pooled, or inside one family, columns go together or against each other by
accident.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.corpora.tables import Table, from_columns
from evenhand.stats.correlation import correlate_table
from evenhand.stats.families import over_families
from evenhand.study.claims import findings
from evenhand.study.correlation import CorrelationReader

Floats = npt.NDArray[np.float64]
X, Y = ("weat", "rnsb"), ("f1", "recall", "rate")
STEPS = np.linspace(0.0, 4.0, 11)


def table(rng: np.random.Generator, points: tuple[int, ...], push: float) -> Table:
    """One row per embedding; with `push` the first behaviour follows the first metric."""
    family = np.repeat(np.arange(len(points)), points)
    step = np.concatenate([np.linspace(-1, 1, n) for n in points])
    columns: dict[str, object] = {}
    for name in (*X, *Y):
        level, slope = rng.normal(0, 2, len(points)), rng.normal(0, 1, len(points))
        columns[name] = level[family] + slope[family] * step + rng.normal(0, 0.7, len(step))
    columns[Y[0]] = np.asarray(columns[Y[0]]) + push * np.asarray(columns[X[0]])
    return from_columns({**columns, "family": [f"f{k}" for k in family]}, "made")


def measured(made: Table) -> CorrelationReader:
    return CorrelationReader(table=made, x=X, y=Y, strata="family", resamples=19)


@cache
def pushes(points: tuple[int, ...]) -> Floats:
    """Mean correlations inside families that pushes of `STEPS` make."""
    rng = np.random.default_rng(1)
    many = points * (360 // len(points))
    out = []
    for push in STEPS:
        made = table(rng, many, push)
        x, y, codes = made.numbers(X[0]), made.numbers(Y[0]), made.labels("family").codes
        rho = [correlate_table(x[codes == k], y[codes == k], resamples=1, max_exact=1, bootstrap=0)
               for k in range(len(many))]  # fmt: skip
        out.append(
            over_families([float(r.coefficient[0, 0]) for r in rho], [r.n for r in rho]).value
        )
    return np.asarray(out)


def path(points: tuple[int, ...]) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        # Effects are Fisher's z, whose mean over runs is a mean of what they would detect.
        push = float(np.interp(np.tanh(effect), pushes(points), STEPS)) if effect else 0.0
        found = findings(measured(table(rng, points, push)).read().rows, [])
        made = outcome(found, np.zeros(len(found)), np.asarray([f.q for f in found]))
        return replace(made, detectable=float(np.arctanh(made.detectable)))

    return Path(f"correlation, {len(points)} families of {min(points)} to {max(points)}", draw)


PATHS: list[Path] = [path((8, 12, 18, 27, 18, 12)), path((10,) * 10)]
