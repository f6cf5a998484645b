"""Builders that several instruments use: ranked dots, a map of names, a table as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from evenhand.charts.base import MOST_ROWS, About, Chart, Drawn, Listing
from evenhand.charts.marks import Row, dot_plot, finite, scatter

NEARER = (
    "Right of the dashed line, the first group lies nearer to the first attribute; left of it, "
    "nearer to the second. Bars are 95 % intervals over words."
)


@dataclass(frozen=True)
class Ranked:
    """A builder: dots from the largest to the smallest value; rows without one are not drawn.

    Attributes:
        title, axis, caption: the words around it.
        label: what a row is called.
        keep: which rows are drawn.
        ideal: where the dashed line stands.
        value, low, high: the columns with the numbers.
    """

    title: str
    axis: str
    caption: str
    label: Callable[[Row], str]
    keep: Callable[[Row], bool] = bool
    ideal: float = 0.0
    value: str = "value"
    low: str = "low"
    high: str = "high"

    def __call__(self, table: pa.Table, about: About) -> list[Drawn]:
        checks = {f.id.rpartition("/")[2] for f in about.findings if f.control}
        rows: list[Row] = []
        for row in table.to_pylist():
            if self.keep(row) and finite(row[self.value]):
                mark = " (method check)" if row.get("test") in checks else ""
                name = f"{self.label(row)}{mark}"
                rows.append({"label": name, "verdict": about.detected(row), **row})
        if not rows:
            return []
        rows.sort(key=lambda r: -r[self.value])
        spec = dot_plot(
            rows[:MOST_ROWS],
            self.value,
            "label",
            self.axis,
            low=self.low,
            high=self.high,
            ideal=self.ideal,
        )
        known = ("label", self.value, self.low, self.high, "p", "p_two_sided", "q", "n")
        columns = tuple(c for c in known if c in rows[0])
        return [Chart(self.title, self.caption, spec, columns, wide=True)]


@dataclass(frozen=True)
class Mapped:
    """A builder: names on a plane (columns name, group, x, y); nothing without places."""

    title: str
    caption: str

    def __call__(self, table: pa.Table, about: About) -> list[Drawn]:
        columns = ("name", "group", "x", "y")
        if not set(columns) <= set(table.column_names):
            return []
        spec = scatter(
            table.to_pylist(), "x", "y", ("", ""), label="name", group="group", axes=False
        )
        return [Chart(self.title, self.caption, spec, columns)]


@dataclass(frozen=True)
class Listed:
    """A builder: these columns of the first rows as a table, by falling numbers of one of them."""

    title: str
    caption: str
    columns: tuple[str, ...]
    by: str = ""

    def __call__(self, table: pa.Table, about: About) -> list[Drawn]:
        rows = table.to_pylist()
        if self.by:
            rows.sort(key=lambda r: -(r.get(self.by) or 0.0))
        shown = tuple({c: r.get(c) for c in self.columns} for r in rows[:MOST_ROWS])
        return [Listing(self.title, self.caption, self.columns, shown)]


def in_turn(*builders: Ranked) -> Callable[[pa.Table, About], list[Drawn]]:
    """Several charts of one table."""
    return lambda table, about: [d for builder in builders for d in builder(table, about)]


def sets_of(row: Row) -> str:
    """An association test by its name and its four sets of words."""
    sets = f"{row['x_label']} / {row['y_label']}, {row['a_label']} / {row['b_label']}"
    return f"{row['test']}: {sets}"
