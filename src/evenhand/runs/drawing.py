"""The charts of a run: its tables, drawn by whoever made them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from evenhand.charts.base import About, Chart, Drawn, generic
from evenhand.charts.standalone import Plot, Plots
from evenhand.errors import SpecError, unknown
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


def plots_of(run: Run, what: str = "*", *, mode: str = "light") -> Plots:
    """The charts of a run by part, or by part and title, with wildcards.

    Args:
        what: `underspecified`, `underspecified/Lean*`, `*/words`.
        mode: light or dark.

    Raises:
        SpecError: no chart is called so; the message lists those there are.
    """
    found = [
        Plot(drawn, label, mode)
        for label, entry in run.facts["probes"].items()
        if not entry.get("skipped")
        for drawn in charts_of(run, label)
        if isinstance(drawn, Chart)
    ]
    chosen = [p for p in found if _called(p, what)]
    if not found:
        raise SpecError(f"{run.folder}: none of its probes draws a chart of what it found.")
    if not chosen:
        names = [f"{p.label}/{p.title}" for p in found]
        raise SpecError(unknown("chart", what, names, where=str(run.folder)))
    return Plots(tuple(chosen))


def _called(plot: Plot, what: str) -> bool:
    names = (plot.label, f"{plot.label}/{plot.title}")
    return any(fnmatchcase(name.lower(), what.lower()) for name in names)
