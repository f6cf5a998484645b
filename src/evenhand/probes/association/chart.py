"""Charts of the association probe: effect sizes of the word tests."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import dot_plot, finite


def tests(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per word test, in the order of the tests."""
    checks = {f.id.rpartition("/")[2] for f in about.findings if f.control}
    shown = []
    for row in table.to_pylist():
        if not finite(row["effect_size"]):
            continue
        sets = f"{row['x_label']} / {row['y_label']}, {row['a_label']} / {row['b_label']}"
        check = " (method check)" if row["test"] in checks else ""
        shown.append(
            {"label": f"{row['test']}: {sets}{check}", "verdict": about.detected(row), **row}
        )
    if not shown:
        return []
    shown.sort(key=lambda r: -r["effect_size"])
    spec = dot_plot(
        shown, "effect_size", "label", "effect size d (from −2 to 2)",
        low="effect_size_low", high="effect_size_high",
    )  # fmt: skip
    caption = (
        "Right of the dashed line, the first group's words lie nearer to the first attribute; "
        "left of it, nearer to the second. Bars are 95 % intervals over words. Method checks "
        "are about flowers and weapons: they show that the test sees what everybody agrees on."
    )
    columns = ("label", "effect_size", "effect_size_low", "effect_size_high", "p_two_sided", "q")
    return [Chart("Word association tests", caption, spec, columns, wide=True)]


CHARTS = {
    "tests": tests,
}
