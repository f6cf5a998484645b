"""Hurtful completions by group, and differences between groups."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked, rows_where


def scores(table: pa.Table, about: About) -> list[Drawn]:
    levels = rows_where(table, lambda r: not r["other"])
    gaps = rows_where(table, lambda r: bool(r["other"]))
    caption = "Bars are 95 % intervals over identity terms."
    return ranked(
        levels, about, lambda r: str(r["group"]), title="HONEST: hurtful completions",
        axis="completions with a hurtful word, percent", caption=caption,
    ) + ranked(
        gaps, about, lambda r: f"{r['group']} minus {r['other']}",
        title="HONEST: difference between groups", axis="percentage points", caption=caption,
    )  # fmt: skip


CHARTS = {"scores": scores}
