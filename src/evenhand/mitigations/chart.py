"""Charts that families share: what changed on the same items, and what it costs."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import dot_plot, finite, slope

NOTHING = "no difference detected"


def changes(table: pa.Table, about: About) -> list[Drawn]:
    """Change of the mean size of every number of the items, with its interval."""
    rows = [
        {**row, "label": f"{row['probe']}: {row['number']}", "verdict": _verdict(row["verdict"])}
        for row in table.to_pylist()
        if finite(row["size_change"])
    ]
    if not rows:
        return []
    spec = dot_plot(
        rows, "size_change", "label", "change of mean size", low="size_low", high="size_high"
    )
    caption = (
        "The same items before and after, number by number: how much nearer to no preference "
        "(left of 0) or further off it came. Lines are 95 % intervals over clusters of items."
    )
    columns = ("label", "size_before", "size_after", "size_change", "q_size", "n")
    return [Chart("What changed", caption, spec, columns, wide=True)]


def utility(table: pa.Table, about: About) -> list[Drawn]:
    """The task before and after."""
    rows = [
        {"task": row["task"], "stage": stage, "value": row[stage]}
        for row in table.to_pylist()
        for stage in ("before", "after")
    ]
    caption = "The model's own task, on the same items, without and with the mitigation."
    return [
        Chart("What it costs", caption, slope(rows, "task", "stage", "value", "value of the task"))
    ]


def _verdict(verdict: str) -> str:
    """As the legend of all charts words it."""
    return "none detected" if verdict == NOTHING else "difference detected"
