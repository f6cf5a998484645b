"""The chart of the courtesy probe."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart
from evenhand.charts.marks import dot_plot


def gaps(table: pa.Table, about: About) -> list[Chart]:
    """One dot a polite word."""
    rows = [{**row, "verdict": about.detected(row)} for row in table.to_pylist()]
    spec = dot_plot(rows, "value", "word", "courtesy gap in nats", low="low", high="high")
    return [Chart("Courtesy by word", "Each dot is a polite word, with its 95 % interval.", spec)]


CHARTS = {"gaps": gaps}
