"""Pictures of what was measured: how cost grows with the work, and the ratios over time.

    python -m benchmarks --draw      docs/pictures/{growth,history}.svg and the table of the page

The values stand in the pictures themselves, as the name of each mark (`aria-label`), so that a
screen reader can say them and a test can compare them with the data. Places of texts depend on
the fonts of the machine that draws; what is said does not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from typing import Any

from benchmarks import ratios

from evenhand.charts.standalone import draw
from evenhand.charts.theme import COLOURS, config

HERE = Path(__file__).parent
PICTURES = HERE.parent / "docs" / "pictures"
GROWTH = PICTURES / "growth.svg"
HISTORY = PICTURES / "history.svg"
C = COLOURS["light"]
DRAWN_TOO = ("generation", "discovery")
"""Probes that stream, besides `underspecified`, which `streaming.py` measures at four sizes."""
ROW, HEADING, GAP, AIR = 34, 26, 8, 9
LABELS, PLOT = 470, 300
HALF_BAND, HIGHEST = 1.3, 90
"""The factor that half a band stands for, so that noise looks like noise, unless a ratio moved so
far that its band would rise by more than so many pixels."""


def growth_spec(result: dict[str, Any], probes: dict[str, Any]) -> dict[str, Any]:
    """Time and peak memory against questions, each with the line of proportional growth.

    Args:
        result: of `streaming.py`, in seconds by the clock.
        probes: of `streaming_probes.py`, in processor seconds; those that it drew are left out.
    """
    panels = (
        ("seconds", "Seconds, from questions to report", "s"),
        ("peak_mib", "Peak memory, MiB", "MiB"),
    )
    rows = [[_growth_panel(result["sizes"], *panel, "questions") for panel in panels]]
    for name in DRAWN_TOO:
        sizes = [{**size, "requests": size["rows"]} for size in probes["probes"][name]["sizes"]]
        own = (
            ("cpu_seconds", f"{name}: processor seconds", "s"),
            ("peak_mib", f"{name}: peak memory, MiB", "MiB"),
        )
        rows.append([_growth_panel(sizes, *panel, f"rows of {name}") for panel in own])
    spaced = [{"hconcat": row, "spacing": 56} for row in rows]
    return _picture({"vconcat": spaced, "spacing": 36})


def _growth_panel(
    sizes: list[dict[str, Any]], what: str, title: str, unit: str, of: str
) -> dict[str, Any]:
    first, last = sizes[0], sizes[-1]
    points = [
        {
            "requests": s["requests"],
            "value": s[what],
            "text": f"{s[what]:g} {unit}",
            "says": f"{s['requests']:,} {of}: {s[what]:g} {unit}",
        }
        for s in sizes
    ]
    times = last["requests"] / first["requests"]
    line = [
        {"requests": first["requests"], "value": first[what]},
        {"requests": last["requests"], "value": first[what] * times},
    ]
    top = max(p["value"] for p in [*points, *line])
    x = {
        "field": "requests", "type": "quantitative", "title": f"{of.capitalize()}, millions",
        "scale": {"type": "log", "domain": [first["requests"] / 1.35, last["requests"] * 1.5]},
        "axis": {
            "values": [s["requests"] for s in sizes], "grid": False, "labelOverlap": False,
            "labelExpr": "format(datum.value / 1e6, '.1f')",
        },
    }  # fmt: skip
    y = {
        "field": "value", "type": "quantitative", "title": title,
        "scale": {"type": "log", "domain": [min(p["value"] for p in points) / 1.5, top * 1.5]},
        "axis": {"values": _ticks(min(p["value"] for p in points) / 1.5, top * 1.5), "format": ",d",
                 "grid": False, "labelOverlap": False},
    }  # fmt: skip
    both = {"x": x, "y": y}
    says = {"description": {"field": "says", "type": "nominal"}}
    flat = last[what] < first[what] * math.sqrt(times)
    end = {
        "data": {"values": line[1:]},
        "mark": _text(align="right", dx=-10, dy=-6, color=C["muted"], text="proportional"),
        "encoding": both,
    }
    return {
        "width": 300,
        "height": 230,
        "layer": [
            {"data": {"values": line}, "encoding": both,
             "mark": {"type": "line", "strokeDash": [4, 4], "strokeWidth": 1.5, "color": C["quiet"],
                      "aria": False}},
            {"data": {"values": points}, "encoding": both,
             "mark": {"type": "line", "color": C["detected"], "strokeWidth": 2, "aria": False}},
            {"data": {"values": points}, "encoding": {**both, **says},
             "mark": {"type": "point", "filled": True, "size": 60, "color": C["detected"],
                      "opacity": 1, "aria": True}},
            {"data": {"values": points}, "encoding": {**both, "text": {"field": "text"}},
             "mark": _text(**({"dy": 17} if flat else {"dx": 10, "dy": 12, "align": "left"}))},
            end,
        ],
    }  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within the range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [n * 10**p for p in powers for n in (1, 2, 5) if low <= n * 10**p <= high]


def history_spec(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """A band for each ratio: every record over the first one, all bands on one scale.

    Ratios are drawn over their first value, so that 0.4 and 75,600 can share a picture; the first
    and the last value stand beside the band. A ratio that moves far gets a higher band.
    """
    headings, bands, bottom = _laid_out(lines)
    points = [point for band in bands for point in band["points"]]
    count = len(lines)
    x = {
        "field": "record", "type": "quantitative", "title": None,
        "scale": {"domain": [-0.5, count - 0.5], "nice": False},
        "axis": {
            "values": sorted({0, count - 1}), "grid": False, "orient": "top", "domain": False,
            "labelExpr": f"{json.dumps([line['date'] for line in lines])}[datum.value]",
            "labelOverlap": False, "labelLimit": 400,
        },
    }  # fmt: skip
    y = {"field": "y", "type": "quantitative", "axis": None,
         "scale": {"domain": [0, bottom], "reverse": True, "nice": False}}  # fmt: skip
    at = {"x": x, "y": y}

    def beside(data: list[dict[str, Any]], place: float, field: str, **more: Any) -> dict[str, Any]:
        encoding = {"y": y, "x": {"value": place}, "text": {"field": field}}
        return {"data": {"values": data}, "encoding": encoding, "mark": _text(align="left", **more)}

    lines_at = [{key: band[key] for key in ("y", "label", "end")} for band in bands]
    size = 36 if count <= 8 else 18
    bar = [{"y": HEADING / 2 - ROW / 4, "to": HEADING / 2 + ROW / 4}]
    named = [{"y": HEADING / 2, "text": f"= times {bands[0]['factor']:.3g}"}]
    return _picture(
        {
            "width": PLOT,
            "height": bottom,
            "title": {
                "text": "Ratios of the benchmarks over time",
                "subtitle": "Each against its first value (grey line); equal heights are equal "
                "factors. Numbers: first and last value.",
                "anchor": "start", "frame": "bounds", "fontSize": 14, "subtitleFontSize": 12,
                "subtitleColor": C["muted"], "color": C["text"], "offset": 12,
            },
            "layer": [
                {"data": {"values": lines_at}, "encoding": {"y": y},
                 "mark": {"type": "rule", "color": C["grid"], "aria": False}},
                {"data": {"values": points},
                 "encoding": {**at, "detail": {"field": "label", "type": "nominal"}},
                 "mark": {"type": "line", "color": C["detected"], "strokeWidth": 1.5,
                          "aria": False}},
                {"data": {"values": points},
                 "encoding": {**at, "description": {"field": "says", "type": "nominal"}},
                 "mark": {"type": "point", "filled": True, "size": size, "opacity": 1,
                          "color": C["detected"], "aria": True}},
                beside(lines_at, -LABELS, "label"),
                beside(headings, -LABELS, "label", fontWeight="bold"),
                beside(lines_at, PLOT + 12, "end"),
                {"data": {"values": bar},
                 "encoding": {"y": y, "y2": {"field": "to"}, "x": {"value": PLOT + 15}},
                 "mark": {"type": "rule", "color": C["muted"], "strokeWidth": 2, "aria": False}},
                beside(named, PLOT + 24, "text", color=C["muted"]),
            ],
        }
    )  # fmt: skip


def _laid_out(
    lines: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    """Headings and bands with their places from the top, in pixels, and where the last one ends."""
    labels = dict.fromkeys(label for line in lines for label in line["ratios"])
    found = {label: _values(lines, label) for label in labels}
    farthest = max((_reach(values) for values in found.values()), default=1.0)
    per_log = ROW / 2 / math.log(HALF_BAND)
    if farthest > 1:
        per_log = min(per_log, HIGHEST / math.log(farthest))
    headings: list[dict[str, Any]] = []
    bands: list[dict[str, Any]] = []
    top = 0.0
    for heading, inside in ratios.grouped(labels).items():
        headings.append({"y": top + HEADING / 2, "label": heading})
        top += HEADING
        for label in inside:
            first = found[label][0][1]
            moved = [-per_log * math.log(value / first) for _, value in found[label]]
            y = top + max(ROW / 2, AIR - min(moved))
            points = [
                {"record": at, "y": round(y + move, 2), "label": label,
                 "says": _named(lines[at], label)}
                for (at, _), move in zip(found[label], moved)
            ]  # fmt: skip
            bands.append(
                {"y": y, "label": label, "points": points, "end": _from_to(found[label]),
                 "factor": math.exp(ROW / 2 / per_log)}
            )  # fmt: skip
            top = y + max(ROW / 2, AIR + max(moved))
        top += GAP
    return headings, bands, top


def _named(line: dict[str, Any], label: str) -> str:
    return f"{line['date']} {line['commit']}: {label} = {line['ratios'][label]:,g}"


def _values(lines: list[dict[str, Any]], label: str) -> list[tuple[int, float]]:
    found = ((at, line["ratios"].get(label)) for at, line in enumerate(lines))
    return [(at, value) for at, value in found if value is not None]


def _reach(values: list[tuple[int, float]]) -> float:
    """The largest factor between a value and the first one, either way.

    >>> _reach([(0, 2.0), (1, 1.0), (2, 3.0)])
    2.0
    """
    first = values[0][1]
    return max(max(value / first, first / value) for _, value in values)


def _from_to(values: list[tuple[int, float]]) -> str:
    """
    >>> _from_to([(0, 0.424), (1, 0.5), (2, 2950.0)]), _from_to([(1, 15.5)])
    ('0.424 → 2,950', '15.5')
    """
    first, last = values[0][1], values[-1][1]
    return f"{first:,g}" if len(values) == 1 else f"{first:,g} → {last:,g}"


def _text(**more: Any) -> dict[str, Any]:
    return {"type": "text", "fontSize": 12, "color": C["text"], "aria": False, **more}


def _picture(spec: dict[str, Any]) -> dict[str, Any]:
    look = {key: value for key, value in config("light").items() if key not in ("aria", "mark")}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **spec,
        "padding": 14,
        "background": C["page"],
        "config": {**look, "background": C["page"]},
    }


def said(svg: str) -> list[str]:
    """What a picture says, wherever its fonts put it: names of marks, then texts, in order."""
    marks = re.findall(r'aria-label="([^"]*)"[^>]*aria-roledescription="point"', svg)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [unescape(text) for text in (*marks, *texts)]


def pictures() -> dict[Path, dict[str, Any]]:
    """The specification of every picture, from the stored data."""
    names = ("streaming", "streaming_probes")
    grown = [json.loads((HERE / "results" / f"{name}.json").read_text()) for name in names]
    return {GROWTH: growth_spec(*grown), HISTORY: history_spec(ratios.history())}


def redraw() -> Iterable[Path]:
    """Write the pictures and the page's table anew."""
    for path, spec in pictures().items():
        path.write_bytes(draw(spec, "svg") + b"\n")
        yield path
    ratios.PAGE.write_text(ratios.drawn(ratios.PAGE.read_text(), ratios.history()))
    yield ratios.PAGE
