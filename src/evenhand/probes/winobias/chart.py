"""Shifts of pronouns, by kind of sentence."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import ranked


def scores(table: pa.Table, about: About) -> list[Drawn]:
    return ranked(
        table, about, lambda r: str(r["kind"]), title="WinoBias: pronouns and occupations",
        axis="shift of the pronoun's log-odds towards the stereotype (nats)",
        caption="Right of the dashed line pronouns follow the stereotypes of occupations. Bars "
        "are 95 % intervals over occupations.",
    )  # fmt: skip


CHARTS = {"scores": scores}
