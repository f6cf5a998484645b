"""The charts of a run: its tables, drawn by whoever made them."""

from __future__ import annotations

from evenhand.charts.base import About, Drawn, generic
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import rate_of


def charts_of(run: Run, label: str) -> list[Drawn]:
    """All charts of one part of a run, in its maker's order; items are left out."""
    facts = run.facts
    entry = facts["probes"].get(label, {})
    findings = tuple(f for f in run.findings if f.probe == label)
    builders = kind_of(facts).charts(facts, label)
    order = list(builders)
    names = [n for n in run.tables(label) if n != "items"]
    drawn: list[Drawn] = []
    for name in sorted(names, key=lambda n: (order.index(n) if n in order else len(order), n)):
        about = About(label, str(entry.get("probe", label)), name, rate_of(facts), findings, entry)
        table = run.table(label, name)
        if table.num_rows:
            drawn += builders.get(name, generic)(table, about)
    return drawn
