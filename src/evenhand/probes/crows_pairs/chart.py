"""Which sentence of a pair is preferred, by bias type."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked, rows_where


def scores(table: pa.Table, about: About) -> list[Drawn]:
    both = rows_where(table, lambda r: r["direction"] == "both")
    return ranked(
        both, about, lambda r: str(r["bias_type"]), ideal=50.0, title="CrowS-Pairs by bias type",
        axis="stereotyping sentence preferred, of 100 pairs (50: no preference)",
        caption="Right of the dashed line the model prefers the sentence that stereotypes more. "
        "Bars are 95 % intervals over the writers of the pairs.",
    )  # fmt: skip


CHARTS = {"scores": scores}
