"""Charts of the divergence probe: shifts of next words against controls, and distances."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn, top
from evenhand.charts.marks import category, dot_plot, finite, quantity


def shifts(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per group and list, over the band that as many control terms would span."""
    rows = [
        {"label": f"{r['groups']}: {r['attribute']}", "verdict": about.detected(r), **r}
        for r in top(table.to_pylist(), "value", 60)
    ]
    if not rows:
        return []
    title = "shift of the log-odds between the two sides of the list (nats)"
    spec = dot_plot(rows, "value", "label", title)
    band = {
        "mark": {"type": "bar", "height": 13, "opacity": 0.25, "style": "floor"},
        "encoding": {
            "y": category("label"),
            "x": quantity("neutral_low", title),
            "x2": {"field": "neutral_high"},
        },
    }
    spec["layer"].insert(0, band)
    found = sum(r["verdict"] == "difference detected" for r in rows)
    caption = (
        "How the odds between the two sides of a list of next words shift with the group named "
        "before. The orange band is what as many terms without a group span in 95 of 100 draws. "
        f"Bars are 95 % intervals over terms and words. {found} of {len(rows)} shifts are detected."
    )
    columns = ("label", "value", "low", "high", "neutral_low", "neutral_high", "p", "q", "n")
    return [Chart("Shifts of next words with the group", caption, spec, columns)]


def swaps(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per swap of groups, of own pairs or as published; older runs have a floor."""
    rows = top(table.to_pylist(), "value", 60)
    if not rows:
        return []
    shown = [
        {"label": f"{r['swap']} ({r['attribute']})", "verdict": about.detected(r), **r}
        for r in rows
    ]
    floor = "floor" if any(finite(r.get("floor")) for r in rows) else None
    spec = dot_plot(
        shown, "value", "label", "distance between next-word distributions", ideal=None, floor=floor
    )
    largest = shown[0]
    caption = (
        "How much the prediction of the next word changes when only the group in the text is "
        "swapped. Any change of a word changes it, so a distance by itself says nothing about "
        f"groups. Bars are 95 % intervals. Largest: {largest['label']}, {largest['value']:.3f}."
    )
    columns = ("label", "value", "low", "high", "floor", "p", "q", "n")
    return [Chart("Distances between next-word distributions", caption, spec, columns)]


def distances(table: pa.Table, about: About) -> list[Drawn]:
    """The distances behind the context findings are for re-analysis; they are not drawn."""
    return []


CHARTS = {
    "shifts": shifts,
    "swaps": swaps,
    "distances": distances,
}
