"""Charts of the name study: what can be read off vectors of names, and a map of them."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn, Listing
from evenhand.charts.marks import scatter


def axes(table: pa.Table, about: About) -> list[Drawn]:
    columns = ("axis", "accuracy", "low", "high", "null_mean", "null_p95", "p", "q", "names")
    return [
        Listing(
            "What can be read off a name's vector?",
            "Accuracy on names left out of training, beside what permuted groups give.",
            columns,
            tuple({c: r.get(c) for c in columns} for r in table.to_pylist()),
        )
    ]


def names(table: pa.Table, about: About) -> list[Drawn]:
    rows = table.to_pylist()
    if not rows or "x" not in rows[0]:
        return []
    return [
        Chart(
            "Map of names by their vectors",
            "Names with similar vectors stand close together (t-SNE; distances between far points "
            "mean little).",
            scatter(rows, "x", "y", ("", ""), label="name", group="group", axes=False),
            columns=("name", "group", "x", "y"),
        )
    ]


CHARTS = {
    "axes": axes,
    "map": names,
}
