"""Every chart of a run as Vega-Lite, SVG, PNG and PDF, from the specification of the report."""

from __future__ import annotations

import json
from typing import Any

from evenhand.charts.base import Chart
from evenhand.charts.theme import COLOURS, config
from evenhand.errors import need
from evenhand.exports.common import as_json, file_name
from evenhand.report.drawing import charts_of
from evenhand.runs.record import Run

WIDTH = 640
LABELS = 420
VEGA_LITE = "6.4"


def standalone(chart: Chart, mode: str = "light") -> dict[str, Any]:
    """The chart's specification with its theme, title and a fixed width."""
    background = COLOURS[mode]["page"]
    spec = json.loads(json.dumps(chart.spec))
    for layer in [spec, *spec.get("layer", [])]:
        axis = layer.get("encoding", {}).get("y", {}).get("axis") or {}
        if "labelLimit" in axis:
            axis["labelLimit"] = LABELS
    return {
        **spec,
        "title": {"text": chart.title, "anchor": "start"},
        "width": WIDTH,
        "autosize": {"type": "pad"},
        "background": background,
        "config": {**config(mode), "background": background},
    }


def draw(spec: dict[str, Any], form: str) -> bytes:
    """One chart as `svg`, `png` or `pdf`."""
    convert = need("vl_convert", extra="report", what="drawing figures")
    text = json.dumps(spec)
    if form == "svg":
        return str(convert.vegalite_to_svg(text, vl_version=VEGA_LITE)).encode()
    if form == "png":
        return bytes(convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=2))
    return bytes(convert.vegalite_to_pdf(text, vl_version=VEGA_LITE))


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
