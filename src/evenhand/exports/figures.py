"""Every chart of a run as Vega-Lite, SVG, PNG and PDF, from the specification of the report."""

from __future__ import annotations

from evenhand.charts.base import Chart
from evenhand.charts.standalone import draw, standalone
from evenhand.exports.common import as_json, file_name
from evenhand.runs.drawing import charts_of
from evenhand.runs.record import Run


def files(run: Run) -> dict[str, bytes]:
    """<probe>-<number>-<title>.{vl.json,svg,png,pdf} for every chart."""
    out: dict[str, bytes] = {}
    for label in run.facts["probes"]:
        drawn = [d for d in charts_of(run, label) if isinstance(d, Chart)]
        for place, chart in enumerate(drawn, start=1):
            name = f"{file_name(label)}-{place}-{file_name(chart.title.lower())}"
            spec = standalone(chart)
            out[f"{name}.vl.json"] = as_json(spec)
            for form in ("svg", "png", "pdf"):
                out[f"{name}.{form}"] = draw(spec, form)
    return out
