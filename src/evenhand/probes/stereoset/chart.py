"""How often stereotypes are preferred, by split and domain."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked


def scores(table: pa.Table, about: About) -> list[Drawn]:
    names = {"ss": "value", "ss_low": "low", "ss_high": "high"}
    renamed = table.rename_columns([names.get(c, c) for c in table.column_names])
    return ranked(
        renamed, about, lambda r: f"{r['split']}, {r['domain']}", ideal=50.0,
        title="StereoSet", axis="stereotype preferred, of 100 cases (50: no preference)",
        caption="Right of the dashed line the model prefers stereotypes, left of it their "
        "opposites. Bars are 95 % intervals over target terms.",
    )  # fmt: skip


CHARTS = {"scores": scores}
