"""Charts that families share: what became of each difference, and what the model still does."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import Row, dot_plot, finite, slope


def changes(table: pa.Table, about: About) -> list[Drawn]:
    """How much nearer to no preference, or further off, each difference came."""
    rows = [_toward(row) for row in table.to_pylist() if finite(row["change"])]
    if not rows:
        return []
    spec = dot_plot(rows, "toward", "about", "change of size", low="from", high="to")
    caption = (
        "The same items before and after, difference by difference: nearer to none (left of 0) or "
        "further away. Lines are 95 % intervals; none of the items was used to fit or to choose."
    )
    columns = ("about", "before", "after", "change", "q", "n", "became")
    return [Chart("What changed", caption, spec, columns, wide=True)]


def _toward(row: Row) -> Row:
    """The change along the side on which the difference lay before."""
    ends = [row[name] * (1 if row["before"] >= 0 else -1) for name in ("change", "low", "high")]
    seen = "difference detected" if row["detected_change"] else "none detected"
    low, high = sorted(ends[1:])
    return {
        **row,
        "toward": ends[0],
        "from": low,
        "to": high,
        "became": row["verdict"],
        "verdict": seen,
    }


def stands(table: pa.Table, about: About) -> list[Drawn]:
    """What the model was asked to do, before and after."""
    rows = [
        {"what": row["what"], "stage": stage, "value": row[stage]}
        for row in table.to_pylist()
        for stage in ("before", "after")
        if finite(row[stage])
    ]
    caption = (
        "Order, negation, mass on the options and the task, on the same items. Where one of them "
        "is broken, a gap that is no longer seen is not a success."
    )
    spec = slope(rows, "what", "stage", "value", "value")
    return [Chart("Does it still do what it is asked to do?", caption, spec, wide=True)]
