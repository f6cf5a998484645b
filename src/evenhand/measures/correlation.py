"""Do two columns of a table rise together: Spearman with p, interval and strata.

The study of Kato & Miyao (2024) in general form: one row per model or embedding, columns of
metrics. Always read the strata beside the pooled number: two families of models on different
scales can make, or hide, a pooled correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.measures.tables import Labels, Table, read_table
from evenhand.stats.correlation import CorrelationResult, correlate
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import plain

Floats = npt.NDArray[np.float64]


def measure(
    table: Table | str | Path,
    *,
    x: Sequence[str],
    y: Sequence[str],
    by: str | None = None,
    strata: str | None = None,
    resamples: int = 9_999,
    seed: int = 0,
    as_published: bool = False,
) -> dict[str, Any]:
    """Correlate every x column with every y column, inside each value of `by`.

    Args:
        table: a table, or the path of a CSV, JSON lines or Parquet file.
        x, y: column names.
        by: a text column; one row of results for each of its values.
        strata: a text column; each row also gets the correlation inside each of its values.
        resamples: random permutations behind p, and replicates behind the interval.
        seed: seed of both.
        as_published: p as the released code of Kato & Miyao has it (scipy's random stream, twice
            the smaller tail) instead of the share of absolute values at least as large.

    Returns:
        `rows: [{x, y, by, n, spearman, p, low, high, q, pearson, kendall, strata, ...}]`. Pairs
        with an empty cell are left out and counted in `n_missing`.
    """
    if not x or not y:
        raise SpecError("correlation: no column is named. Pass for example: --x weat --y f1_gap")
    texts = [name for name in (by, strata) if name]
    if not isinstance(table, Table):
        table = read_table(table, text=texts)
    table.require([*x, *y, *texts])
    columns = {name: table.numbers(name) for name in dict.fromkeys([*x, *y])}
    groups = table.labels(by) if by else None
    layers = table.labels(strata) if strata else None
    options = {"resamples": resamples, "seed": seed, "scipy_stream": as_published}
    rows = [
        _row(columns, one, other, inside, value, layers, options)
        for value, inside in _parts(groups, table.n_rows)
        for one in x
        for other in y
    ]
    for row, q in zip(rows, benjamini_hochberg([row["p"] for row in rows]), strict=True):
        row["q"] = q
    settings = {"resamples": resamples, "seed": seed, "as_published": as_published}
    return dict(plain({"measure": "correlation", "rows": rows, "settings": settings}))


def _parts(labels: Labels | None, n_rows: int) -> list[tuple[str | None, npt.NDArray[np.bool_]]]:
    if labels is None:
        return [(None, np.ones(n_rows, np.bool_))]
    return [(value, labels.codes == code) for code, value in enumerate(labels.values)]


def _row(
    columns: dict[str, Floats],
    x: str,
    y: str,
    inside: npt.NDArray[np.bool_],
    by: str | None,
    layers: Labels | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    both = ~np.isnan(columns[x]) & ~np.isnan(columns[y]) & inside
    a, b = columns[x][both], columns[y][both]
    main = correlate(a, b, bootstrap=_replicates(options), **options)
    row: dict[str, Any] = {"x": x, "y": y, "by": by, **_numbers(main), "q": np.nan}
    row |= {name: _coefficient(a, b, name) for name in ("pearson", "kendall")}
    row["n_missing"] = int(inside.sum() - both.sum())
    row |= {"p_method": main.p_method, "n_permutations": main.n_permutations, "strata": []}
    row["reason"] = main.reason or None
    for value, layer in _parts(layers, len(both)) if layers else []:
        at = both & layer
        if not (inside & layer).any():
            continue
        part = correlate(columns[x][at], columns[y][at], bootstrap=_replicates(options), **options)
        row["strata"].append({"stratum": value, **_numbers(part), "reason": part.reason or None})
    return row


def _replicates(options: dict[str, Any]) -> int:
    return max(2, min(2_000, int(options["resamples"])))


def _numbers(result: CorrelationResult) -> dict[str, Any]:
    return {
        "n": result.n, "spearman": result.coefficient, "p": result.p,
        "low": result.low, "high": result.high,
    }  # fmt: skip


def _coefficient(a: Floats, b: Floats, method: Any) -> float:
    """A coefficient alone, without p and interval."""
    return correlate(a, b, method=method, resamples=1, max_exact=1, bootstrap=0).coefficient
