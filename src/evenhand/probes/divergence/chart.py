"""Charts of the divergence probe: group swaps against neutral swaps."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn, top
from evenhand.charts.marks import dot_plot, finite


def swaps(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per swap of groups, with the neutral floor as a tick."""
    rows = top(table.to_pylist(), "value", 60)
    if not rows:
        return []
    shown = [
        {"label": f"{r['swap']} ({r['attribute']})", "verdict": about.detected(r), **r}
        for r in rows
    ]
    floor = "floor" if any(finite(r.get("floor")) for r in rows) else None
    title = "shift of the next word (squared Hellinger distance, 0 to 1)"
    if floor:  # with neutral swaps the value is a ratio, and neutral swaps stand at 1
        title = "shift of the next word, times that of a neutral swap of words"
    spec = dot_plot(shown, "value", "label", title, ideal=None, floor=floor)
    largest = shown[0]
    caption = (
        "How far the prediction of the next word moves when only the group in the text is "
        "swapped. The orange tick is what swapping words without a social meaning does in the "
        "same prompts: only a dot well right of its tick says something about groups. Bars are "
        f"95 % intervals. Largest: {largest['label']}, {largest['value']:.3f}"
        + (f" (tick at {largest['floor']:.3f})." if finite(largest.get("floor")) else ".")
    )
    columns = ("label", "value", "low", "high", "floor", "p", "q", "n")
    return [Chart("Group swaps against neutral swaps", caption, spec, columns)]


CHARTS = {
    "swaps": swaps,
}
