"""Small builders of Vega-Lite specifications: plain dicts, no colours, no fonts.

Colours come from the theme (`theme.py`), so one specification serves light and dark pages and
exported figures. What is detected is shown by shape and fill as well as by colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VERDICTS = ["difference detected", "none detected"]


def finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def base(rows: Sequence[Row], **more: Any) -> Spec:
    """A specification on these rows; undefined numbers become null."""
    values = [{k: _plain(v) for k, v in row.items()} for row in rows]
    fit = {"type": "fit-x", "contains": "padding"}
    return {
        "$schema": SCHEMA,
        "width": "container",
        "autosize": fit,
        "data": {"values": values},
        **more,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:199] + "…"
    return value


def quantity(field: str, title: str, *, zero: bool = False, **more: Any) -> Row:
    scale = {"zero": zero, "nice": True, **more.pop("scale", {})}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def category(field: str, title: str | None = None, **more: Any) -> Row:
    """A category in the order of the rows."""
    return {"field": field, "type": "nominal", "title": title, "sort": None, **more}


def tooltip(*fields: str) -> list[Row]:
    """What a pointer shows; numbers with three digits that count."""
    return [{"field": f, "title": f.replace("_", " ")} for f in fields]


def verdict_scales(field: str = "verdict") -> Row:
    """Colour and shape of detected and not detected, told apart without colour too."""
    return {
        "color": {
            "field": field,
            "type": "nominal",
            "title": None,
            "scale": {"domain": VERDICTS, "range": "ordinal"},
            "legend": {"orient": "top", "symbolSize": 90},
        },
        "shape": {
            "field": field,
            "type": "nominal",
            "title": None,
            "scale": {"domain": VERDICTS, "range": ["circle", "diamond"]},
            "legend": {"orient": "top"},
        },
    }


def dot_plot(
    rows: Sequence[Row],
    value: str,
    label: str,
    title: str,
    *,
    low: str = "low",
    high: str = "high",
    ideal: float | None = 0.0,
    floor: str | None = None,
    verdict: str = "verdict",
) -> Spec:
    """Ranked dots with intervals, a line at the ideal value and ticks at the noise floor."""
    y = category(label, axis={"labelLimit": 230, "ticks": False, "domain": False})
    fields = [f for f in (label, value, low, high, "q", "n", floor) if f and f in rows[0]]
    layers: list[Spec] = []
    if ideal is not None:
        layers.append(
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": {"datum": ideal, "type": "quantitative"}},
            }
        )
    if low in rows[0] and high in rows[0]:
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 2, "style": "interval"},
                "encoding": {
                    "y": y,
                    "x": quantity(low, title),
                    "x2": {"field": high},
                    "color": verdict_scales(verdict)["color"] if verdict in rows[0] else {},
                },
            }
        )
    if floor:
        layers.append(
            {
                "mark": {"type": "tick", "thickness": 3, "size": 14, "style": "floor"},
                "encoding": {"y": y, "x": quantity(floor, title)},
            }
        )
    dots: Row = {"y": y, "x": quantity(value, title), "tooltip": tooltip(*fields)}
    if verdict in rows[0]:
        dots |= verdict_scales(verdict)
    layers.append(
        {"mark": {"type": "point", "filled": True, "size": 80, "opacity": 1}, "encoding": dots}
    )
    for layer in layers:
        if layer["encoding"].get("color") == {}:
            del layer["encoding"]["color"]
    return base(rows, height={"step": 19}, layer=layers)


def heatmap(
    rows: Sequence[Row],
    x: str,
    y: str,
    value: str,
    title: str,
    *,
    numbers: bool = False,
    domain: tuple[float, float] | None = None,
    signed: bool = True,
) -> Spec:
    """Cells coloured from one side of zero to the other (grey means zero), or from low to high."""
    values = [r[value] for r in rows if finite(r.get(value))] or [0.0]
    most = max(map(abs, values)) or 1.0
    low, high = domain or ((-most, most) if signed else (min(values), max(values)))
    scale = {"domain": [low, 0, high], "range": "diverging", "interpolate": "rgb"}
    if not signed:
        scale = {"domain": [low, high], "range": "ramp", "interpolate": "rgb"}
    colour = quantity(value, title, scale=scale)
    colour["legend"] = {"orient": "top", "gradientLength": 220, "titleLimit": 400}
    ends: Row = {
        "x": category(
            x, axis={"labelAngle": -45, "labelLimit": 150, "ticks": False, "labelOverlap": False}
        ),
        "y": category(y, axis={"labelLimit": 140, "ticks": False}),
    }
    fields = [f for f in (y, x, value, "low", "high", "q", "n") if f in rows[0]]
    cells = {
        "mark": {"type": "rect"},
        "encoding": {**ends, "color": colour, "tooltip": tooltip(*fields)},
    }
    layers: list[Spec] = [cells]
    if numbers:
        strong = f"abs(datum[{value!r}]) > {0.6 * max(abs(low), abs(high))}"
        if not signed:
            strong = f"datum[{value!r}] > {low + 0.6 * (high - low)}"
        text = {"text": {"field": value, "format": "+.2f" if signed else ".2f"}}
        for test, style in ((f"!({strong})", "weak"), (strong, "strong")):
            layers.append(
                {
                    "transform": [{"filter": test}],
                    "mark": {"type": "text", "fontSize": 10, "style": style},
                    "encoding": {**ends, **text},
                }
            )
    return base(rows, height={"step": 17}, layer=layers)


def bars(rows: Sequence[Row], value: str, label: str, title: str) -> Spec:
    """Horizontal bars from zero, in the order of the rows."""
    marks = {
        "y": category(label, axis={"labelLimit": 230, "ticks": False, "domain": False}),
        "x": quantity(value, title, zero=True),
        "tooltip": tooltip(label, value),
    }
    return base(rows, height={"step": 22}, mark={"type": "bar", "height": 12}, encoding=marks)


def volcano(rows: Sequence[Row], effect: str, q: str, label: str, title: str) -> Spec:
    """Effect against evidence; rows must hold `evidence` = -log10 q."""
    named = [r for r in rows if r.get("named")]
    dots = {
        "mark": {"type": "point", "filled": True, "opacity": 0.7},
        "encoding": {
            "x": quantity(effect, title),
            "y": quantity("evidence", "evidence (−log10 q)", zero=True),
            "tooltip": tooltip(label, effect, q),
            **verdict_scales(),
        },
    }
    names = {
        "data": {"values": [{k: _plain(v) for k, v in r.items()} for r in named]},
        "mark": {"type": "text", "dy": -9, "fontSize": 10},
        "encoding": {
            "x": quantity(effect, title),
            "y": quantity("evidence", "evidence (−log10 q)", zero=True),
            "text": {"field": label},
        },
    }
    return base(rows, height=340, layer=[dots, names])


def scatter(
    rows: Sequence[Row],
    x: str,
    y: str,
    titles: tuple[str, str],
    *,
    label: str,
    group: str | None = None,
    axes: bool = True,
) -> Spec:
    """Points on two axes, coloured and shaped by group; without axes where they mean nothing."""
    fields = [label, x, y] + ([group] if group else [])
    marks: Row = {"x": quantity(x, titles[0]), "y": quantity(y, titles[1])}
    marks["tooltip"] = tooltip(*fields)
    if group:
        legend = {"orient": "top", "columns": 2, "labelLimit": 260}
        marks["color"] = {**category(group), "legend": legend}
        marks["shape"] = category(group)
    if not axes:
        marks["x"]["axis"] = marks["y"]["axis"] = None
    return base(
        rows, height=340, mark={"type": "point", "filled": True, "size": 70}, encoding=marks
    )


def slope(rows: Sequence[Row], label: str, stage: str, value: str, title: str) -> Spec:
    """Before and after: one line per row label, from stage to stage."""
    marks = {
        "x": category(stage, axis={"labelAngle": 0, "labelFontSize": 12}),
        "y": quantity(value, title),
        "color": {**category(label), "legend": {"orient": "bottom", "columns": 2}},
        "tooltip": tooltip(label, stage, value),
    }
    mark = {"type": "line", "point": {"filled": True, "size": 70}, "strokeWidth": 2}
    return base(rows, height=320, mark=mark, encoding=marks)


def frontier(
    rows: Sequence[Row],
    x: str,
    y: str,
    titles: tuple[str, str],
    *,
    label: str,
    group: str | None = None,
    order: str | None = None,
    named: str | None = None,
) -> Spec:
    """Trade-off: what is given up (x) for what is gained (y).

    Points of a group are joined in the order of x, or of the column `order`; texts of the column
    `named` are shown beside their points.
    """
    spec = scatter(rows, x, y, titles, label=label, group=group)
    dots = {"mark": spec.pop("mark"), "encoding": spec.pop("encoding")}
    line = {
        "mark": {"type": "line", "strokeDash": [3, 3], "opacity": 0.6},
        "encoding": {
            "x": quantity(x, titles[0]),
            "y": quantity(y, titles[1]),
            **({"color": category(group)} if group else {}),
            **({"order": {"field": order, "type": "quantitative"}} if order else {}),
        },
    }
    layers = [line, dots]
    if named:
        beside = [{k: _plain(v) for k, v in r.items()} for r in rows if r.get(named)]
        ends = {"x": quantity(x, titles[0]), "y": quantity(y, titles[1])}
        layers.append(
            {
                "data": {"values": beside},
                "mark": {"type": "point", "size": 260, "strokeWidth": 2, "style": "floor"},
                "encoding": ends,
            }
        )
        layers.append(
            {
                "data": {"values": beside},
                "mark": {"type": "text", "align": "left", "dx": 14, "fontWeight": "bold"},
                "encoding": {**ends, "text": {"field": named}},
            }
        )
    return {**spec, "layer": layers}
