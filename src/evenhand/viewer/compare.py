"""Runs side by side: every finding of one in the light of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evenhand.charts.base import Chart
from evenhand.charts.marks import Spec, base, category, finite, quantity, tooltip
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.wording import subject
from evenhand.viewer.filters import words_in
from evenhand.viewer.folders import Folders

MOST_RUNS = 12
DRAWN = 24


@dataclass(frozen=True)
class Across:
    """One finding in every run (None: not there)."""

    id: str
    about: str
    card: MetricCard
    findings: tuple[Finding | None, ...]

    @property
    def differs(self) -> bool:
        """Whether runs disagree on the verdict."""
        return len({f.detected for f in self.findings if f}) > 1

    @property
    def spread(self) -> float:
        values = [f.value for f in self.findings if f and finite(f.value)]
        return max(values) - min(values) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Table:
    """The comparison as shown."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    rows: list[Across]
    notice: str
    chart: Chart | None


def side_by_side(
    runs: Sequence[Run], folders: Folders, search: str = "", only_differing: bool = False
) -> Table:
    """All findings of several runs, those with the widest spread first within each metric."""
    facts = [run.facts for run in runs]
    cards = [partial(kind_of(f).card, f) for f in facts]
    names = tuple(run.folder.resolve().name for run in runs)
    known = [{f.id: f for f in folders.findings(run)} for run in runs]
    rows = []
    for place in dict.fromkeys(i for found in known for i in found):
        across = tuple(found.get(place) for found in known)
        first, card = next((f, card(f)) for f, card in zip(across, cards) if f)
        row = Across(place, subject(first, card), card, across)
        if words_in(search, row.id, row.about) and (row.differs or not only_differing):
            rows.append(row)
    models = [audited_name(f) for f in facts]
    titles = tuple(m if models.count(m) == 1 else f"{m} ({n})" for m, n in zip(models, names))
    return Table(names, titles, rows, _notice(facts), _chart(rows, titles))


def _notice(facts: Sequence[dict[str, Any]]) -> str:
    """Why the numbers may not be comparable."""
    for what in ("suite", "seed"):
        if len({repr(f["work"].get(what)) for f in facts}) > 1:
            return (
                f"These runs differ in their {what}, so equal names may stand for different "
                f"items: compare with care."
            )
    return ""


def _chart(rows: Sequence[Across], titles: Sequence[str]) -> Chart | None:
    """The findings that move most between runs, of the metric in which most of them move."""
    if not rows or len(titles) < 2:
        return None
    moved: dict[str, int] = {}
    for row in rows:
        moved[row.card.metric] = moved.get(row.card.metric, 0) + (row.spread > 0)
    metric = max(moved, key=lambda m: (moved[m], sum(r.card.metric == m for r in rows), m))
    drawn = sorted((r for r in rows if r.card.metric == metric), key=lambda r: -r.spread)[:DRAWN]
    name = drawn[0].card.name
    values = [
        {"finding": row.about, "run": title, "value": f.value, "low": f.low, "high": f.high}
        for row in drawn
        for title, f in zip(titles, row.findings)
        if f and finite(f.value)
    ]
    if not values:
        return None
    caption = f"The {len(drawn)} findings that differ most between the runs, with 95 % intervals."
    spec = _drawn(values, name, len(titles))
    return Chart(f"{name} by run", caption, spec)


def _drawn(values: list[dict[str, Any]], name: str, runs: int) -> Spec:
    """One row per finding, one dot with its interval per run."""
    y = category("finding", axis={"labelLimit": 230})
    offset = {"field": "run", "type": "nominal", "sort": None}
    colour = {**category("run"), "legend": {"orient": "top", "columns": 2, "labelLimit": 400}}
    return base(
        values,
        height={"step": max(8, 20 // runs), "for": "offset"},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "x": quantity("low", name),
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "x": quantity("value", name),
                    "color": colour,
                    "shape": {**category("run"), "legend": None},
                    "tooltip": tooltip("finding", "run", "value", "low", "high"),
                },
            },
        ],
    )
