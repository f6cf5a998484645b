"""Occupations on a plane: who works there, and what the model says."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.builders import Ranked
from evenhand.charts.marks import finite, scatter

TITLES = ("log odds in the labour market", "the model's log odds")


def calibration(table: pa.Table, about: About) -> list[Drawn]:
    """One point per occupation and group."""
    rows = [r for r in table.to_pylist() if finite(r["labour"]) and finite(r["model"])]
    if not rows:
        return []
    spec = scatter(rows, "labour", "model", TITLES, label="job", group="group")
    caption = (
        "Points along a flat line: occupations are alike to the model. Along the diagonal: it "
        "follows the labour market; steeper: it amplifies."
    )
    return [Chart("Occupations", caption, spec, ("job", "group", "labour", "model"), wide=True)]


CHARTS = {
    "lines": Ranked(
        "How far the model follows the labour market",
        "slope (1: as in the labour market)",
        "Bars are 95 % intervals over occupations (and names). Dashed: occupations are alike.",
        lambda r: f"{r['group']} against {r['beside']}",
    ),
    "jobs": calibration,
}
