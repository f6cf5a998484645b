"""Which sentence of a pair is preferred, by bias type."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "scores": Ranked(
        "CrowS-Pairs by bias type",
        "stereotyping sentence preferred, of 100 pairs (50: no preference)",
        "Right of the dashed line, the model prefers the sentence that stereotypes more. Bars are "
        "95 % intervals over the writers of the pairs.",
        lambda r: str(r["bias_type"]),
        keep=lambda r: bool(r["direction"] == "both"),
        ideal=50.0,
    ),
}
