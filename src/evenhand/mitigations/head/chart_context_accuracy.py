"""Charts of how well a group can be read from hidden states, by kind of context."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import heatmap


def accuracy(table: pa.Table, about: About) -> list[Drawn]:
    """Accuracy by training contexts (rows) and test contexts (columns)."""
    rows = [r for r in table.to_pylist() if r["features"] == "states"]
    spec = heatmap(rows, "test", "train", "accuracy", "accuracy", numbers=True, signed=False)
    caption = (
        "Share of held-out contexts whose group a linear classifier reads from the last hidden "
        "state. Rows: what it was trained on; columns: what it was tested on."
    )
    columns = ("train", "test", "accuracy", "low", "high", "majority", "n")
    return [Chart("Context classifier", caption, spec, columns=columns)]


CHARTS = {
    "accuracy": accuracy,
}
