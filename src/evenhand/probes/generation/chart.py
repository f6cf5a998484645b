"""Charts of sampled texts: how each group is regarded."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import heatmap

SHARES = ("negative", "neutral", "positive", "other")


def shares(table: pa.Table, about: About) -> list[Drawn]:
    """Shares of texts by regard, one row per group."""
    rows = [
        {
            "group": f"{row['axis']}: {row['group']}",
            "regard": name,
            "share": row[name],
            "n": row["n"],
        }
        for row in table.to_pylist()
        for name in SHARES
    ]
    spec = heatmap(rows, "regard", "group", "share", "share of texts", numbers=True, signed=False)
    caption = (
        "Share of the texts written about each group that the scorer regards as negative, neutral "
        "or positive. Tests of the differences are among the findings."
    )
    columns = ("group", "regard", "share", "n")
    return [Chart("Regard by group", caption, spec, columns=columns)]


CHARTS = {
    "shares": shares,
}
