"""One look for charts on light and dark pages and in exported figures.

Blue and vermilion (Okabe and Ito) stay apart for colour-blind readers; both reach 3 to 1 on
their background.
"""

from __future__ import annotations

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"
COLOURS: dict[str, dict[str, Any]] = {
    "light": {
        "text": "#1b1f24",
        "muted": "#57606a",
        "grid": "#e3e6ea",
        "page": "#ffffff",
        "detected": "#0072B2",
        "quiet": "#767d86",
        "floor": "#B34700",
        "diverging": ["#B34700", "#E8A36F", "#EDEFF2", "#7FB6DC", "#005A9C"],
        "ramp": ["#EDEFF2", "#7FB6DC", "#00406E"],
        "category": [
            "#0072B2",
            "#D55E00",
            "#007A5A",
            "#A34E88",
            "#8A6D00",
            "#3A6EA5",
            "#6B4C9A",
            "#4D4D4D",
        ],
    },
    "dark": {
        "text": "#e6e9ee",
        "muted": "#a4adb8",
        "grid": "#333a44",
        "page": "#15181d",
        "detected": "#56B4E9",
        "quiet": "#939ba6",
        "floor": "#F0934A",
        "diverging": ["#F0934A", "#9A5A2A", "#2A2F37", "#2C6F9E", "#6CC1F5"],
        "ramp": ["#2A2F37", "#2C6F9E", "#9FDBFF"],
        "category": [
            "#56B4E9",
            "#F0934A",
            "#3FC79A",
            "#DE9BC8",
            "#E3C94B",
            "#9DB7E8",
            "#B79CE0",
            "#C9CED6",
        ],
    },
}


def config(mode: str = "light") -> dict[str, Any]:
    """Vega-Lite configuration for a light or dark background.

    >>> config("dark")["view"]["stroke"] is None
    True
    """
    c = COLOURS[mode]
    return {
        "background": "transparent" if mode == "dark" else None,
        "font": FONT,
        "view": {"stroke": None},
        "axisY": {"labelOverlap": False},
        "aria": False,
        "mark": {"aria": False},
        "axis": {
            "labelColor": c["text"],
            "titleColor": c["muted"],
            "gridColor": c["grid"],
            "tickColor": c["grid"],
            "domainColor": c["grid"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titleLimit": 600,
            "labelOverlap": "greedy",
            "labelSeparation": 8,
        },
        "legend": {
            "labelColor": c["text"],
            "titleColor": c["muted"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "rule": {"color": c["muted"]},
        "line": {"color": c["detected"]},
        "bar": {"color": c["detected"]},
        "point": {"color": c["detected"]},
        "text": {"color": c["text"]},
        "style": {"floor": {"color": c["floor"]}, "strong": {"color": c["page"]}},
        "range": {
            "category": c["category"],
            "diverging": c["diverging"],
            "ramp": c["ramp"],
            "ordinal": [c["detected"], c["quiet"]],
        },
    }
