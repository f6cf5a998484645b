"""One ranked dot plot with intervals and the ideal value, as the benchmark probes draw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from evenhand.charts.base import MOST_ROWS, About, Chart, Drawn
from evenhand.charts.marks import dot_plot, finite

COLUMNS = ("label", "value", "low", "high", "p", "q", "n")


def ranked(
    table: pa.Table, about: About, label: Callable[[dict[str, Any]], str], *, title: str,
    axis: str, caption: str, ideal: float = 0.0,
) -> list[Drawn]:  # fmt: skip
    """Dots from the largest to the smallest value; rows without a value are not drawn."""
    rows: list[dict[str, Any]] = [
        {"label": label(row), "verdict": about.detected(row), **row}
        for row in table.to_pylist()
        if finite(row["value"])
    ]
    if not rows:
        return []
    rows.sort(key=lambda r: -r["value"])
    spec = dot_plot(rows[:MOST_ROWS], "value", "label", axis, ideal=ideal)
    columns = tuple(c for c in COLUMNS if c in rows[0])
    return [Chart(title, caption, spec, columns, wide=True)]


def rows_where(table: pa.Table, keep: Callable[[dict[str, Any]], bool]) -> pa.Table:
    """The rows that are wanted, in their order."""
    return table.filter(pa.array([keep(row) for row in table.to_pylist()], pa.bool_()))


def word_tests(table: pa.Table, about: About, *, title: str, axis: str) -> list[Drawn]:
    """Association tests: which sets of words were compared, and how near they lie."""

    def label(row: dict[str, Any]) -> str:
        sets = f"{row['x_label']} / {row['y_label']}, {row['a_label']} / {row['b_label']}"
        return f"{row['test']}: {sets}"

    caption = (
        "Right of the dashed line the first group lies nearer to the first attribute; left of it, "
        "nearer to the second. Bars are 95 % intervals over words."
    )
    return ranked(table, about, label, title=title, axis=axis, caption=caption)
