"""Do two columns of a table rise together: Spearman with p, interval, strata and ceiling.

The study of Kato & Miyao (2024) in general form: one row per model or embedding, columns of
metrics. Models of one family are related, so p and interval of the pooled number hold only where
rows are independent; with strata the verdict is that over families (`stats.families`): two
families on different scales can make, or hide, a pooled correlation. And read the ceiling, when
there are repeated runs of one model: a gap that is mostly run-to-run noise cannot correlate with
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.corpora.tables import Labels, Table, read_table
from evenhand.errors import SpecError
from evenhand.probes.reading import Input, Names, Reader, Result, Seed, Shown, number, span
from evenhand.probes.shared.reach import out_of_reach
from evenhand.stats.correlation import correlate_table
from evenhand.stats.families import over_families
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.reliability import Reliability, attenuation_ceiling, reliability
from evenhand.strict import INLINE, OPTIONAL

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NAN = float("nan")
LOW_CEILING = 0.3


@dataclass(frozen=True)
class Stratum:
    """The correlation inside one value of the strata's column."""

    stratum: str
    n: int
    spearman: float
    p: float
    low: float
    high: float
    reason: str | None


@dataclass(frozen=True)
class Ceiling:
    """How large a correlation the noise of both columns leaves room for."""

    reliability_x: float
    reliability_y: float
    ceiling: float
    note: str | None


NO_CEILING = Ceiling(NAN, NAN, NAN, None)


@dataclass(frozen=True)
class OverFamilies:
    """The mean correlation inside strata, with strata as the sample: the verdict."""

    n_families: int
    rho_families: float
    low_families: float
    high_families: float
    p_families: float
    q_families: float
    detectable_families: float
    reason_families: str | None


@dataclass(frozen=True)
class Row:
    """One pair of columns; pairs with an empty cell are left out and counted in `n_missing`."""

    x: str
    y: str
    by: str | None
    n: int
    spearman: float
    p: float
    low: float
    high: float
    q: float
    pearson: float
    kendall: float
    n_missing: int
    p_method: str
    n_permutations: int
    reason: str | None
    strata: tuple[Stratum, ...] = ()
    families: OverFamilies | None = field(default=None, metadata=INLINE)
    trust: Ceiling | None = field(default=None, metadata=INLINE)


@dataclass(frozen=True)
class Trust:
    """How much of a column's spread over models is more than noise between repeated runs."""

    column: str
    by: str | None
    found: Reliability = field(metadata=INLINE)
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class CorrelationResult(Result):
    """Every pair of columns, and with repeated runs the reliability of each column."""

    measure: ClassVar[str] = "correlation"

    rows: Sequence[Row]
    reliability: Sequence[Trust] | None = field(default=None, metadata=OPTIONAL)
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        head = ["columns", "by", "stratum", "n", "rho", "95 % interval", "p", "q"]
        with_ceiling = self.reliability is not None
        cells: list[list[str]] = []
        for row in self.rows:
            start = [f"{row.x} ~ {row.y}", row.by or ""]
            q = [number(row.q, ".4f")]
            ceiling = [number(row.trust.ceiling if row.trust else None, ".2f")] * with_ceiling
            cells.append([*start, "", *_cells(row), *q, *ceiling])
            for part in row.strata:
                none = ["-"] * (1 + with_ceiling)
                cells.append(["", "", f"in {part.stratum}", *_cells(part), *none])
        yield Shown("Spearman correlations", head + ["ceiling"] * with_ceiling, cells)
        orders = [row.n_permutations for row in self.rows if row.n_permutations]
        note = out_of_reach(1 / min(orders), len(self.rows)) if orders else ""
        if note and not any(row.families for row in self.rows):
            yield Shown(f"Note: {note}.")
        for row in self.rows:
            if row.families:
                yield Shown(f"{row.x} ~ {row.y} {row.by or ''}: {_verdict(row.families)}")
            if row.trust and row.trust.note:
                yield Shown(f"{row.x} ~ {row.y} {row.by or ''}: {row.trust.note}")


def _cells(part: Row | Stratum) -> list[str]:
    interval = span(part.low, part.high)
    return [str(part.n), number(part.spearman, "+.4f"), interval, number(part.p, ".4f")]


def _verdict(found: OverFamilies) -> str:
    if found.reason_families:
        return f"no verdict ({found.reason_families})"
    return (
        f"over {found.n_families} families rho {found.rho_families:+.4f} "
        f"{span(found.low_families, found.high_families)}, p {found.p_families:.4f}, "
        f"q {found.q_families:.4f}"
    )


class CorrelationReader(Reader):
    """Every x column against every y column, inside each value of `by`.

    Permutations are shared by all pairs with the same rows, so a table costs one product.
    """

    name = "correlation"
    help = "Do two columns rise together? Spearman with p, interval and strata."
    positional = ("table",)

    table: Input
    x: Names[str] = Field(description="Columns, separated by commas.")
    y: Names[str] = Field(description="Columns, separated by commas.")
    by: Names[str] = Field(
        (), description="One result for each value of a column (or of several columns)."
    )
    strata: str | None = Field(
        None, description="Column of families of related rows: inside each, and a verdict over all."
    )
    replicates: str | None = Field(
        None, description="COLUMN=VALUE of rows that are repeated runs of one model: ceilings."
    )
    resamples: int = Field(9_999, ge=1, description="Random permutations.")
    seed: Seed = 0
    as_published: bool = Field(False, description="p as in Kato & Miyao's code.")

    def read(self) -> CorrelationResult:
        if not self.x or not self.y:
            raise SpecError(
                "correlation: no column is named. Pass for example: --x weat --y f1_gap"
            )
        again, value = _replicates_of(self.replicates)
        texts = list(dict.fromkeys([*self.by, *([self.strata] if self.strata else []), *again]))
        table = read_table(self.table, text=texts, needed=[*self.x, *self.y, *texts])
        columns = {name: table.numbers(name) for name in dict.fromkeys([*self.x, *self.y])}
        layers = table.labels(self.strata) if self.strata else None
        repeated = np.zeros(table.n_rows, np.bool_)
        if again:
            repeated = _equal(table.labels(again[0]), value)
            if not repeated.any():
                raise SpecError(f"replicates: no row has {value!r} in column {again[0]!r}.")
        options = {"scipy_stream": self.as_published, **self.only("resamples", "seed")}
        rows: list[Row] = []
        sources: list[Trust] = []
        for name, inside in _groups(table, self.by):
            part = _part(name, columns, layers, inside, repeated)
            trust = _trust(part)
            rows += _rows(part, self.x, self.y, options, trust)
            sources += _trust_rows(name, trust)
        if self.strata and not self.as_published:
            rows = over_strata(rows)
        q = benjamini_hochberg([row.p for row in rows])
        return CorrelationResult(
            rows=[replace(row, q=float(value)) for row, value in zip(rows, q, strict=True)],
            reliability=sources if again else None,
            settings=self.only("resamples", "seed", "as_published", "replicates"),
        )


def over_strata(rows: Sequence[Row], rate: float = 0.05) -> list[Row]:
    """The rows with the verdict over their strata, corrected over all rows."""
    found = [
        over_families(
            [s.spearman for s in row.strata], [s.n for s in row.strata], family=len(rows), rate=rate
        )
        for row in rows
    ]
    q = benjamini_hochberg([f.p for f in found])
    return [
        replace(
            row,
            families=OverFamilies(
                f.families,
                f.value,
                f.low,
                f.high,
                f.p,
                float(value),
                f.detectable,
                f.reason or None,
            ),
        )
        for row, f, value in zip(rows, found, q, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one value of `by`: columns with repeated runs averaged into one last point."""

    by: str | None
    columns: dict[str, Floats]
    strata: Labels | None
    repeats: dict[str, Floats]


def reliabilities(
    table: Table | Path, columns: Sequence[str], *, replicates: str, by: str | None = None
) -> list[Trust]:
    """The `reliability` of any columns, without a correlation."""
    again, value = _replicates_of(replicates)
    groups = [by] if by else []
    table = read_table(table, text=[*groups, *again], needed=[*columns, *groups, *again])
    numbers = {name: table.numbers(name) for name in columns}
    repeated = _equal(table.labels(again[0]), value)
    parts = (_part(n, numbers, None, inside, repeated) for n, inside in _groups(table, groups))
    return [row for part in parts for row in _trust_rows(part.by, _trust(part))]


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
    part: Part,
    x: Sequence[str],
    y: Sequence[str],
    options: dict[str, Any],
    trust: dict[str, Reliability],
) -> list[Row]:
    everything = np.ones(len(part.columns[x[0]]), np.bool_)
    pooled = _tables(part, x, y, everything, options)
    layers = []
    if part.strata is not None:
        for code, value in enumerate(part.strata.values):
            here = part.strata.codes == code
            if here.any():
                layers.append((value, _tables(part, x, y, here, options)))
    return [
        replace(
            pooled[pair],
            strata=tuple(_brief(value, found[pair]) for value, found in layers),
            trust=_ceiling(trust.get(pair[0]), trust.get(pair[1])) if trust else None,
        )
        for pair in ((one, other) for one in x for other in y)
    ]


def _tables(
    part: Part, x: Sequence[str], y: Sequence[str], rows: Mask, options: dict[str, Any]
) -> dict[tuple[str, str], Row]:
    """Every pair on these rows; pairs that miss the same cells share their permutations."""
    columns = part.columns
    alike: dict[bytes, list[tuple[str, str]]] = {}
    for pair in ((one, other) for one in x for other in y):
        alike.setdefault(_both(columns, pair, rows).tobytes(), []).append(pair)
    done = {}
    boot = max(2, min(2_000, int(options["resamples"])))
    for pairs in alike.values():
        at = _both(columns, pairs[0], rows)
        first, second = (list(dict.fromkeys(p[k] for p in pairs)) for k in (0, 1))
        a, b = (np.stack([columns[n][at] for n in names], axis=1) for names in (first, second))
        found = correlate_table(a, b, bootstrap=boot, **options)
        others = {name: _coefficients(a, b, name) for name in ("pearson", "kendall")}
        for one, other in pairs:
            i, j = first.index(one), second.index(other)
            done[one, other] = Row(
                one,
                other,
                part.by,
                found.n,
                spearman=float(found.coefficient[i, j]),
                p=float(found.p[i, j]),
                low=float(found.low[i, j]),
                high=float(found.high[i, j]),
                q=NAN,
                pearson=float(others["pearson"][i, j]),
                kendall=float(others["kendall"][i, j]),
                n_missing=int(rows.sum() - at.sum()),
                p_method=found.p_method,
                n_permutations=found.n_permutations,
                reason=found.reasons[i][j] or None,
            )
    return done


def _both(columns: dict[str, Floats], pair: tuple[str, str], rows: Mask) -> Mask:
    return ~np.isnan(columns[pair[0]]) & ~np.isnan(columns[pair[1]]) & rows


def _brief(value: str, row: Row) -> Stratum:
    return Stratum(value, row.n, row.spearman, row.p, row.low, row.high, row.reason)


def _coefficients(a: Floats, b: Floats, method: Any) -> Floats:
    """Coefficients alone, without p and interval."""
    return correlate_table(a, b, method=method, resamples=1, max_exact=1, bootstrap=0).coefficient


def _ceiling(x: Reliability | None, y: Reliability | None) -> Ceiling:
    values = [np.nan if part is None else part.reliability for part in (x, y)]
    ceiling = attenuation_ceiling(*values)
    note = None
    if ceiling < LOW_CEILING:
        note = (
            f"noise between repeated runs leaves room for |rho| up to about {ceiling:.2f}: "
            "a small correlation says nothing here"
        )
    return Ceiling(values[0], values[1], ceiling, note)


def _trust_rows(by: str | None, found: dict[str, Reliability]) -> list[Trust]:
    return [Trust(column, by, r, r.reason or None) for column, r in found.items()]
