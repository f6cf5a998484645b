"""What can be read from vectors of names, and a map of them."""

from __future__ import annotations

from evenhand.charts.builders import Listed, Mapped

CHARTS = {
    "axes": Listed(
        "What can be read from a name's vector?",
        "Accuracy on names left out of training, beside what permuted groups give.",
        ("axis", "accuracy", "low", "high", "null_mean", "null_p95", "p", "q", "names"),
    ),
    "map": Mapped(
        "Map of names by their vectors",
        "Names with similar vectors stand close together (t-SNE; distances between far points "
        "mean little).",
    ),
}
