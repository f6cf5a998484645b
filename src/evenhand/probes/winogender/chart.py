"""Pronouns and shares of women, by whom the pronoun stands for."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked


def scores(table: pa.Table, about: About) -> list[Drawn]:
    return ranked(
        table, about, lambda r: f"pronoun for: {r['refers']}", title="Winogender",
        axis="rank correlation of “she” with the share of women",
        caption="Right of the dashed line “she” is likelier where more women work. Bars are 95 % "
        "intervals over occupations.",
    )  # fmt: skip


CHARTS = {"scores": scores}
