"""Charts of what classifiers read of the groups off hidden states."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import finite, slope

ON = {
    "test": "held-out frames",
    "new": "new terms too",
    "relearned": "fitted on held-out texts itself",
}


def readers(table: pa.Table, about: About) -> list[Drawn]:
    """Accuracy of fresh classifiers before and after, layer by layer."""
    many = table.num_rows > 1
    rows = [
        {
            "what": f"{row['layer']}: {on}" if many else on,
            "stage": stage,
            "accuracy": row[f"{key}_{stage}"],
            "chance": row["test_chance"],
        }
        for row in table.to_pylist()
        for key, on in ON.items()
        for stage in ("before", "after")
        if finite(row[f"{key}_{stage}"])
    ]
    caption = (
        "How often a fresh linear classifier tells the groups apart by the model's states. The "
        "ideal is chance, which the table gives."
    )
    spec = slope(rows, "what", "stage", "accuracy", "accuracy")
    return [Chart("Read from the states", caption, spec, wide=True)]
