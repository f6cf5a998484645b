"""Charts of word vectors before and after they were moved."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import finite, slope


def tests(table: pa.Table, about: About) -> list[Drawn]:
    """Every test before and after."""
    stages = [
        {"test": row["test"], "stage": stage, "statistic": row[f"statistic_{stage}"]}
        for row in table.to_pylist()
        for stage in ("before", "after")
        if finite(row[f"statistic_{stage}"])
    ]
    caption = "Each line is an association test; 0 is no association. The first was trained on."
    spec = slope(stages, "test", "stage", "statistic", "WEAT statistic")
    return [Chart("Associations before and after", caption, spec, wide=True)] if stages else []
