"""Charts of word vectors before and after they were moved."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import dot_plot, finite, slope


def tests(table: pa.Table, about: About) -> list[Drawn]:
    """Every test before and after, and how sure its change is."""
    rows = table.to_pylist()
    stages = [
        {"test": row["test"], "stage": stage, "statistic": row[f"statistic_{stage}"]}
        for row in rows
        for stage in ("before", "after")
        if finite(row[f"statistic_{stage}"])
    ]
    known = [{**r, "verdict": about.detected(r)} for r in rows if finite(r["change"])]
    drawn: list[Drawn] = []
    if stages:
        caption = "Each line is an association test; 0 is no association. The first was trained on."
        spec = slope(stages, "test", "stage", "statistic", "WEAT statistic")
        drawn.append(Chart("Associations before and after", caption, spec, wide=True))
    if known:
        caption = (
            "How far the words of each test moved, word by word, with 95 % intervals over words. "
            "Left of 0 is nearer to no association."
        )
        title = "change of association (cosines)"
        spec = dot_plot(known, "change", "test", title, low="low", high="high")
        columns = ("test", "effect_size_before", "effect_size_after", "change", "q", "n")
        drawn.append(Chart("How sure the change is", caption, spec, columns, wide=True))
    return drawn
