"""Do two columns of a table rise together: Spearman with p, interval, strata and ceiling.

The study of Kato & Miyao (2024) in general form: one row per model or embedding, columns of
metrics. Always read the strata beside the pooled number: two families of models on different
scales can make, or hide, a pooled correlation. And read the ceiling, when there are repeated runs
of one model: a gap that is mostly run-to-run noise cannot correlate with anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import Labels, Table, read_table
from evenhand.errors import SpecError
from evenhand.stats.correlation import CorrelationTable, correlate_table
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.reliability import Reliability, attenuation_ceiling, reliability
from evenhand.strict import plain

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
LOW_CEILING = 0.3


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one value of `by`: columns with repeated runs averaged into one last point."""

    by: str | None
    columns: dict[str, Floats]
    strata: Labels | None
    repeats: dict[str, Floats]


def measure(
    table: Table | str | Path,
    *,
    x: Sequence[str],
    y: Sequence[str],
    by: str | Sequence[str] | None = None,
    strata: str | None = None,
    replicates: str | None = None,
    resamples: int = 9_999,
    seed: int = 0,
    as_published: bool = False,
) -> dict[str, Any]:
    """Correlate every x column with every y column, inside each value of `by`.

    Permutations are shared by all pairs with the same rows, so a table costs one product.

    Args:
        table: a table, or the path of a CSV, JSON lines or Parquet file.
        x, y: column names.
        by: text columns; one row of results for each of their values together.
        strata: a text column; each row also gets the correlation inside each of its values.
        replicates: "COLUMN=VALUE": these rows are repeated runs of one model. They become one
            point (their mean), and give reliability and the ceiling of a correlation.
        resamples: random permutations behind p, and replicates behind the interval.
        seed: seed of both.
        as_published: p as the released code of Kato & Miyao has it (scipy's random stream, twice
            the smaller tail) instead of the share of absolute values at least as large.

    Returns:
        `rows: [{x, y, by, n, spearman, p, low, high, q, pearson, kendall, strata, ...}]`. Pairs
        with an empty cell are left out and counted in `n_missing`. With `replicates` each row has
        `reliability_x, reliability_y, ceiling, note`, and `reliability` lists
        `{column, by, noise_sd, spread_sd, reliability, low, high, ceiling, p, n_replicates, ...}`.
    """
    if not x or not y:
        raise SpecError("correlation: no column is named. Pass for example: --x weat --y f1_gap")
    groups = [by] if isinstance(by, str) else list(by or ())
    again, value = _replicates_of(replicates)
    texts = list(dict.fromkeys([*groups, *([strata] if strata else []), *again]))
    if not isinstance(table, Table):
        table = read_table(table, text=texts)
    table.require([*x, *y, *texts])
    columns = {name: table.numbers(name) for name in dict.fromkeys([*x, *y])}
    layers = table.labels(strata) if strata else None
    repeated = _equal(table.labels(again[0]), value) if again else np.zeros(table.n_rows, np.bool_)
    if again and not repeated.any():
        raise SpecError(f"replicates: no row has {value!r} in column {again[0]!r}.")
    options = {"resamples": resamples, "seed": seed, "scipy_stream": as_published}
    rows, sources = [], []
    for name, inside in _groups(table, groups):
        part = _part(name, columns, layers, inside, repeated)
        trust = _trust(part)
        rows += _rows(part, x, y, options, trust)
        sources += [_trust_row(column, name, found) for column, found in trust.items()]
    for row, q in zip(rows, benjamini_hochberg([row["p"] for row in rows]), strict=True):
        row["q"] = q
    result = {"measure": "correlation", "rows": rows}
    if again:
        result["reliability"] = sources
    settings = {
        "resamples": resamples, "seed": seed, "as_published": as_published,
        "replicates": replicates,
    }  # fmt: skip
    return dict(plain({**result, "settings": settings}))


def reliabilities(
    table: Table | str | Path, columns: Sequence[str], *, replicates: str, by: str | None = None
) -> list[dict[str, Any]]:
    """The `reliability` rows of `measure` for any columns, without a correlation."""
    again, value = _replicates_of(replicates)
    groups = [by] if by else []
    if not isinstance(table, Table):
        table = read_table(table, text=[*groups, *again])
    table.require([*columns, *groups, *again])
    numbers = {name: table.numbers(name) for name in columns}
    repeated = _equal(table.labels(again[0]), value)
    rows = []
    for name, inside in _groups(table, groups):
        part = _part(name, numbers, None, inside, repeated)
        rows += [_trust_row(c, name, found) for c, found in _trust(part).items()]
    return list(plain(rows))


def _trust(part: Part) -> dict[str, Reliability]:
    """Reliability of each column that every repeated run has; the last point is their mean."""
    return {c: reliability(v, part.columns[c][:-1]) for c, v in part.repeats.items()}


def _replicates_of(text: str | None) -> tuple[list[str], str]:
    if text is None:
        return [], ""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise SpecError(
            f"replicates: {text!r} does not say which rows. Pass COLUMN=VALUE, for example: "
            "--replicates modification=none"
        )
    return [name], value


def _equal(labels: Labels, value: str) -> Mask:
    return np.asarray(np.array(labels.values)[labels.codes] == value)


def _groups(table: Table, names: Sequence[str]) -> Iterator[tuple[str | None, Mask]]:
    """Values of the `by` columns together, joined by " / ", and their rows."""
    if not names:
        yield None, np.ones(table.n_rows, np.bool_)
        return
    labels = [table.labels(name) for name in names]
    codes = np.stack([label.codes for label in labels], axis=1)
    for value in np.unique(codes, axis=0):
        text = " / ".join(label.values[k] for label, k in zip(labels, value, strict=True))
        yield text, (codes == value).all(axis=1)


def _part(
    by: str | None, columns: dict[str, Floats], layers: Labels | None, inside: Mask, repeated: Mask
) -> Part:
    """The rows of one group; repeated runs go to the end as one point, their mean."""
    single, again = inside & ~repeated, inside & repeated
    if not again.any():
        strata = Labels(layers.values, layers.codes[single]) if layers else None
        return Part(by, {n: v[single] for n, v in columns.items()}, strata, {})
    means = {n: v[again].mean() for n, v in columns.items()}
    points = {n: np.append(v[single], means[n]) for n, v in columns.items()}
    strata = None
    if layers:
        codes = np.append(layers.codes[single], layers.codes[again][0])
        strata = Labels(layers.values, codes)
    repeats = {n: v[again] for n, v in columns.items() if np.isfinite(v[again]).all()}
    return Part(by, points, strata, repeats)


def _rows(
    part: Part, x: Sequence[str], y: Sequence[str], options: dict[str, Any],
    trust: dict[str, Reliability],
) -> list[dict[str, Any]]:  # fmt: skip
    everything = np.ones(len(part.columns[x[0]]), np.bool_)
    pooled = _tables(part.columns, x, y, everything, options)
    layers = []
    if part.strata is not None:
        for code, value in enumerate(part.strata.values):
            here = part.strata.codes == code
            if here.any():
                layers.append((value, _tables(part.columns, x, y, here, options)))
    rows = []
    for pair in ((one, other) for one in x for other in y):
        row: dict[str, Any] = {"x": pair[0], "y": pair[1], "by": part.by}
        row |= {**pooled[pair], "strata": [{"stratum": v, **_brief(t[pair])} for v, t in layers]}
        if trust:
            row |= _ceiling(trust.get(pair[0]), trust.get(pair[1]))
        rows.append(row)
    return rows


def _tables(
    columns: dict[str, Floats], x: Sequence[str], y: Sequence[str], rows: Mask,
    options: dict[str, Any],
) -> dict[tuple[str, str], dict[str, Any]]:  # fmt: skip
    """Every pair on these rows; pairs that miss the same cells share their permutations."""
    alike: dict[bytes, list[tuple[str, str]]] = {}
    for pair in ((one, other) for one in x for other in y):
        alike.setdefault(_both(columns, pair, rows).tobytes(), []).append(pair)
    done: dict[tuple[str, str], dict[str, Any]] = {}
    boot = max(2, min(2_000, int(options["resamples"])))
    for pairs in alike.values():
        at = _both(columns, pairs[0], rows)
        first, second = (list(dict.fromkeys(p[k] for p in pairs)) for k in (0, 1))
        a, b = (np.stack([columns[n][at] for n in names], axis=1) for names in (first, second))
        found = correlate_table(a, b, bootstrap=boot, **options)
        others = {name: _coefficients(a, b, name) for name in ("pearson", "kendall")}
        lost = int(rows.sum() - at.sum())
        for one, other in pairs:
            i, j = first.index(one), second.index(other)
            row = _numbers(found, i, j, lost)
            done[one, other] = row | {name: value[i, j] for name, value in others.items()}
    return done


def _both(columns: dict[str, Floats], pair: tuple[str, str], rows: Mask) -> Mask:
    return ~np.isnan(columns[pair[0]]) & ~np.isnan(columns[pair[1]]) & rows


def _numbers(found: CorrelationTable, i: int, j: int, lost: int) -> dict[str, Any]:
    row: dict[str, Any] = {"n": found.n, "spearman": found.coefficient[i, j], "p": found.p[i, j]}
    row |= {"low": found.low[i, j], "high": found.high[i, j], "q": np.nan}
    row |= {"pearson": np.nan, "kendall": np.nan, "n_missing": lost, "p_method": found.p_method}
    return row | {"n_permutations": found.n_permutations, "reason": found.reasons[i][j] or None}


def _brief(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("n", "spearman", "p", "low", "high", "reason")}


def _coefficients(a: Floats, b: Floats, method: Any) -> Floats:
    """Coefficients alone, without p and interval."""
    return correlate_table(a, b, method=method, resamples=1, max_exact=1, bootstrap=0).coefficient


def _ceiling(x: Reliability | None, y: Reliability | None) -> dict[str, Any]:
    values = [np.nan if part is None else part.reliability for part in (x, y)]
    ceiling = attenuation_ceiling(*values)
    note = None
    if ceiling < LOW_CEILING:
        note = (
            f"noise between repeated runs leaves room for |rho| up to about {ceiling:.2f}: "
            "a small correlation says nothing here"
        )
    return {
        "reliability_x": values[0], "reliability_y": values[1], "ceiling": ceiling, "note": note,
    }  # fmt: skip


def _trust_row(column: str, by: str | None, found: Reliability) -> dict[str, Any]:
    names = ("noise_sd", "spread_sd", "reliability", "low", "high", "ceiling", "p",
             "n_replicates", "n_points")  # fmt: skip
    numbers = {name: getattr(found, name) for name in names}
    return {"column": column, "by": by, **numbers, "reason": found.reason or None}
