"""Charts from a run's tables: what a builder gets and gives, and a fallback for unknown tables.

A probe's builders are in `CHARTS` of the `chart.py` in its folder, by table name:

    from evenhand.charts.base import About, Chart
    from evenhand.charts.marks import dot_plot

    def words(table: pa.Table, about: About) -> list[Chart]:
        rows = table.to_pylist()
        spec = dot_plot(rows, "gap", "word", "success rate, group a minus group b")
        return [Chart("Words", "Each dot is a word.", spec)]

    CHARTS = {"words": words}

Builders only arrange numbers that the probe has already computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as types

from evenhand.charts.marks import Row, Spec, dot_plot, finite

if TYPE_CHECKING:
    from evenhand.runs.finding import Finding

MOST_ROWS = 200


@dataclass(frozen=True)
class About:
    """What a builder may want to know besides its table."""

    label: str
    probe: str
    table: str
    rate: float
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def detected(self, row: Mapping[str, Any]) -> str:
        """The verdict of a row with a q value, as the legend words it.

        >>> About("u", "u", "t", 0.05).detected({"q": 0.01})
        'difference detected'
        """
        q = row.get("q")
        return "difference detected" if q is not None and q <= self.rate else "none detected"


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification with the words around it.

    Attributes:
        title: what is shown, in a few words.
        caption: how to read it, and what it says, for people who cannot see it either.
        spec: Vega-Lite as a plain dict; its rows are in `spec["data"]["values"]`.
        columns: which fields the table of numbers below shows; by default all.
        wide: needs the whole width even on a large screen.
    """

    title: str
    caption: str
    spec: Spec
    columns: tuple[str, ...] = ()
    wide: bool = False

    @property
    def rows(self) -> list[Row]:
        values: list[Row] = self.spec.get("data", {}).get("values", [])
        return values

    @property
    def shown_columns(self) -> tuple[str, ...]:
        return self.columns or tuple(self.rows[0] if self.rows else ())


@dataclass(frozen=True)
class Listing:
    """A table that is shown as a table."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


Drawn = Chart | Listing
Builder = Callable[[pa.Table, About], Iterable[Drawn]]


def generic(table: pa.Table, about: About) -> list[Drawn]:
    """A dot plot when there is a number with an interval, otherwise a table."""
    title = about.table.replace("_", " ")
    found = _interval_columns(table)
    label = _label_columns(table)
    if not found or not label:
        shown = tuple(table.slice(0, MOST_ROWS).to_pylist())
        caption = f"{len(shown):,} of {table.num_rows:,} rows."
        return [Listing(title, caption, tuple(table.column_names), shown)]
    value, low, high = found
    rows: list[Row] = []
    for row in top(table.to_pylist(), value, MOST_ROWS // 4):
        name = " · ".join(str(row[c]) for c in label)
        again = sum(r["label"].split(" (again ")[0] == name for r in rows)
        name = f"{name} (again {again})" if again else name
        rows.append({"label": name, "verdict": about.detected(row), **row})
    spec = dot_plot(rows, value, "label", value.replace("_", " "), low=low, high=high)
    caption = f"The {len(rows):,} largest of {table.num_rows:,} rows, with 95 % intervals."
    return [Chart(title, caption, spec, ("label", value, low, high))]


def _interval_columns(table: pa.Table) -> tuple[str, str, str] | None:
    names = set(table.column_names)
    numbers = [f.name for f in table.schema if types.is_floating(f.type)]
    for name in numbers:
        if {f"{name}_low", f"{name}_high"} <= names:
            return name, f"{name}_low", f"{name}_high"
    if {"low", "high"} <= names:
        rest = [n for n in numbers if n not in ("low", "high", "p", "q")]
        if rest:
            return ("value" if "value" in rest else rest[0]), "low", "high"
    return None


def _label_columns(table: pa.Table) -> list[str]:
    def is_text(kind: pa.DataType) -> bool:
        return bool(
            types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
        )

    return [f.name for f in table.schema if is_text(f.type)][:3]


def top(rows: Sequence[Row], value: str, most: int) -> list[Row]:
    """The rows furthest from zero, ordered from the largest to the smallest value."""
    good = [row for row in rows if finite(row.get(value))]
    kept = sorted(good, key=lambda r: -abs(r[value]))[:most]
    return sorted(kept, key=lambda r: -r[value])
