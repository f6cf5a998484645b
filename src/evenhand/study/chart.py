"""Charts of a study: correlations with reliability, and the scatter plots behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import Row, base, category, dot_plot, finite, heatmap, quantity, tooltip
from evenhand.runs.finding import Finding
from evenhand.study.correlation import LOW_CEILING

SCATTERS = 4
MATRICES = 5
TASKS = {"coreference": "coref.", "hate_speech": "hate"}


def short(column: str) -> str:
    """A column without its stage, as an axis has room for.

    >>> short("intrinsic:weat kato_weat7"), short("hate_speech:gender f1 gap")
    ('weat kato_weat7', 'hate gender f1')
    """
    stage, _, name = column.partition(":")
    name = name.removesuffix(" gap").replace("positive_rate", "pos. rate")
    return name if stage == "intrinsic" else f"{TASKS.get(stage, stage)} {name}"


def correlations(table: pa.Table, about: About) -> list[Drawn]:
    """A matrix of rank correlations per training algorithm, and inside families if few."""
    drawn: list[Drawn] = []
    rows = table.to_pylist()
    algorithms = list(dict.fromkeys(r["algorithm"] for r in rows))
    views = ["spearman", *(n for n in table.column_names if n.startswith("spearman_"))]
    if len(algorithms) * len(views) > MATRICES:
        views = views[:1]
    for algorithm in algorithms[:MATRICES]:
        own = [r for r in rows if r["algorithm"] == algorithm and finite(r["spearman"])]
        for view in views:
            cells = [_cell(r, view) for r in own if finite(r.get(view))]
            if cells:
                drawn.append(_matrix(cells, view, algorithm))
    return drawn


def _cell(row: Mapping[str, Any], view: str) -> Row:
    weak = finite(row["ceiling"]) and row["ceiling"] < LOW_CEILING
    inside = {
        n.removeprefix("spearman_").replace("_", " "): row[n]
        for n in row
        if n.startswith("spearman_")
    }
    q = row["q"] if row.get("n_families") is None else row["q_families"]
    return {
        "metric": short(row["x"]),
        "behaviour": short(row["y"]),
        "rho": row[view],
        "q": q,
        "ceiling": row["ceiling"],
        "n": row["n"],
        "readable": "noise leaves no room" if weak else "readable",
        **(inside if view == "spearman" else {}),
    }


def _matrix(cells: list[Row], view: str, algorithm: str) -> Chart:
    spec = heatmap(cells, "metric", "behaviour", "rho", "Spearman", numbers=True, domain=(-1, 1))
    where = "all embeddings" if view == "spearman" else f"{view.removeprefix('spearman_')} alone"
    where = where.replace("_", " ")
    caption = (
        f"Rank correlation of each metric of the vectors (columns) with each gap of a system built "
        f"on them (rows), over {where}. The table below has q and the ceiling that noise leaves: "
        f"where it is under {LOW_CEILING}, a value near zero says nothing."
    )
    return Chart(f"{algorithm}: correlations, {where}", caption, spec, tuple(cells[0]))


def reliability(table: pa.Table, about: About) -> list[Drawn]:
    """How much of each metric's spread is more than the noise of training."""
    known = table.to_pylist()
    several = len({r["algorithm"] for r in known}) > 1
    rows = [
        {
            "label": short(r["metric"]) + (f" ({r['algorithm']})" if several else ""),
            "reliability": max(r["reliability"], -1.0),
            "noise sd": r["noise_sd"],
            "spread sd": r["spread_sd"],
            "n": r["n_replicates"],
        }
        for r in known
        if finite(r["reliability"])
    ]
    if not rows:
        return []
    rows.sort(key=lambda r: -r["reliability"])
    spec = dot_plot(rows, "reliability", "label", "reliability", ideal=1.0)
    caption = (
        "1: replicates of the unmodified vectors agree; 0: they differ as much as changed vectors "
        "do, so the metric cannot rank embeddings here. Values below −1 are drawn at −1."
    )
    columns = ("label", "reliability", "noise sd", "spread sd", "n")
    return [Chart("Reliability of each number", caption, spec, columns)]


def scatters(table: pa.Table, about: About) -> list[Drawn]:
    """The strongest pair of each behaviour as a scatter plot, error bars on replicates."""
    rows = table.to_pylist()
    drawn: list[Drawn] = []
    for finding in _shown(about.findings):
        x, y = str(finding.details["x"]), str(finding.details["y"])
        own = [_point(r, x, y) for r in rows if r["algorithm"] == finding.model]
        own = [r for r in own if finite(r["x"]) and finite(r["y"])]
        if own:
            drawn.append(_scatter(own, x, y, _said(finding), finding.model))
    return drawn


def _shown(findings: Sequence[Finding]) -> list[Finding]:
    """The strongest pair of each task and kind of gap, then of the rest."""
    pairs = sorted(
        (f for f in findings if f.metric == "spearman" and finite(f.value)),
        key=lambda f: -abs(f.value),
    )
    kept: dict[tuple[str, ...], Finding] = {}
    for finding in pairs:
        stage, _, name = str(finding.details["y"]).partition(":")
        kept.setdefault((stage, name.partition(" ")[0]), finding)
    rest = [f for f in pairs if f not in kept.values()]
    return [*kept.values(), *rest][:SCATTERS]


def _said(finding: Finding) -> str:
    if finding.detected is not False:
        return finding.sentence
    return f"{finding.attribute}: no relation detected (Spearman {finding.value:+.2f})."


def _point(row: Mapping[str, Any], x: str, y: str) -> Row:
    spread = row.get(f"sd {y}") or 0.0
    value = row[y]
    return {
        "embedding": row["point"],
        "family": row["family"].replace("_", "-"),
        "x": row[x],
        "y": value,
        "low": value - spread if finite(value) else None,
        "high": value + spread if finite(value) else None,
        "n": row["n"],
    }


def _scatter(rows: list[Row], x: str, y: str, sentence: str, algorithm: str) -> Chart:
    across, up = quantity("x", short(x)), quantity("y", short(y))
    bars = {
        "mark": {"type": "rule", "strokeWidth": 2, "style": "interval"},
        "encoding": {"x": across, "y": quantity("low", short(y)), "y2": {"field": "high"}},
    }
    legend = {"orient": "top", "columns": 3}
    dots = {
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {
            "x": across,
            "y": up,
            "color": {**category("family"), "legend": legend},
            "shape": category("family"),
            "tooltip": tooltip("embedding", "x", "y", "n"),
        },
    }
    caption = f"{sentence} Bars: one sample deviation over replicates."
    title = f"{algorithm}: {short(x)} against {short(y)}"
    spec = base(rows, height=300, layer=[bars, dots])
    return Chart(title, caption, spec, ("embedding", "family", "x", "y", "low", "high", "n"))


CHARTS = {
    "correlations": correlations,
    "reliability": reliability,
    "points": scatters,
}
