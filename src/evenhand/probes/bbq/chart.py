"""Bias scores by category, with and without evidence."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked, rows_where


def scores(table: pa.Table, about: About) -> list[Drawn]:
    drawn: list[Drawn] = []
    for metric, title, axis in (
        ("bias_ambiguous", "BBQ: when the text does not tell", "bias score (−1 to 1)"),
        ("bias_disambiguated", "BBQ: when the text tells", "bias score (−1 to 1)"),
        ("accuracy_gap", "BBQ: right with and against the stereotype", "accuracy gap (−1 to 1)"),
    ):
        own = rows_where(table, lambda r, m=metric: r["metric"] == m)  # type: ignore[misc]
        drawn += ranked(
            own, about, lambda r: str(r["category"]), title=title, axis=axis,
            caption="Right of the dashed line answers go with stereotypes, left of it against "
            "them. Bars are 95 % intervals over question templates.",
        )  # fmt: skip
    return drawn


CHARTS = {"scores": scores}
