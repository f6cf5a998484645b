"""Charts of a mitigation's trade-off: the measured gap against what it costs in perplexity."""

from __future__ import annotations

import pyarrow as pa

from evenhand.report.charts import About, Chart, Drawn, chart
from evenhand.report.marks import frontier


@chart("tradeoff", "points")
def points(table: pa.Table, about: About) -> list[Drawn]:
    """Every setting that was judged, one line per number of rounds; learned alpha stands out."""
    rows = [
        {**row, "setting": f"{row['rounds']} rounds, alpha {row['alpha']}", "line": _line(row)}
        for row in table.to_pylist()
        if row["increase"] is not None and row["increase"] <= 0.25
    ]
    spec = frontier(
        rows,
        "increase",
        "hellinger2",
        ("perplexity increase (share)", "squared Hellinger distance of held-out pairs"),
        label="setting",
        group="line",
    )
    caption = (
        "Each mark is one setting, judged on contexts and text that it was not fitted on. Left and "
        "down is better. 'learned' takes alpha from the model's own next-word distribution at "
        "every step; settings above 25 % perplexity are left out."
    )
    columns = ("method", "rounds", "alpha", "hellinger2", "increase", "perplexity")
    return [Chart("Measured gap against perplexity", caption, spec, columns=columns, wide=True)]


@chart("tradeoff", "stereoset")
def stereoset(table: pa.Table, about: About) -> list[Drawn]:
    """StereoSet's distance from 50 against perplexity, the same settings."""
    rows = [
        {**row, "setting": f"{row['rounds']} rounds, alpha {row['alpha']}", "line": _line(row)}
        for row in table.to_pylist()
        if row["increase"] <= 0.25
    ]
    spec = frontier(
        rows,
        "increase",
        "gap",
        ("perplexity increase (share)", "StereoSet: distance of SS from 50"),
        label="setting",
        group="line",
    )
    caption = (
        "How often stereotypes are preferred over their opposites, as the distance from one half, "
        "under the same settings. Left and down is better; intervals are in the table."
    )
    columns = ("rounds", "alpha", "ss", "ss_low", "ss_high", "lms", "icat", "increase")
    return [Chart("StereoSet against perplexity", caption, spec, columns=columns, wide=True)]


def _line(row: dict[str, object]) -> str:
    return "learned alpha" if row["alpha"] == "learned" else f"{row['rounds']} rounds"
