"""Charts and tables of a comparison, for its page and for `Comparison.plot`."""

from __future__ import annotations

from fnmatch import fnmatchcase

from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.marks import VERDICTS, Row, dot_plot, finite, heatmap, slope
from evenhand.charts.standalone import Plot, Plots
from evenhand.errors import SpecError, unknown
from evenhand.runs.compared import (
    BETTER,
    ORDER,
    WORSE,
    Across,
    Change,
    Comparison,
    FindingChange,
)
from evenhand.runs.wording import count

LINES = 8
GROUPS = 3
ROWS = 40


def plots_of(compared: Comparison, what: str = "*", *, mode: str = "light") -> Plots:
    """The charts of a comparison by title, with wildcards."""
    sections = [*charts(compared), ("All models", models(compared))]
    found = [
        Plot(drawn, title, mode)
        for title, some in sections
        for drawn in some
        if isinstance(drawn, Chart)
    ]
    chosen = [p for p in found if fnmatchcase(p.title.lower(), what.lower())]
    if not chosen:
        raise SpecError(unknown("chart", what, [p.title for p in found], where="comparison"))
    return Plots(tuple(chosen))


def charts(compared: Comparison) -> list[tuple[str, list[Drawn]]]:
    """Sections of the page: one for each later run against the first."""
    out: list[tuple[str, list[Drawn]]] = []
    for change in compared.changes:
        title = f"{change.after} against {change.before}"
        own = [d for part in change.parts for d in part.drawn]
        drawn = [
            *_decisions(change),
            *_changes(change),
            *_slopes(change),
            *_sizes(change),
            *own,
            *_findings(change),
        ]
        out.append((title, drawn))
    return out


def _decisions(change: Change) -> list[Drawn]:
    """Every finding with its verdict, and what the model is asked to do."""
    out: list[Drawn] = []
    rows = tuple(vars(d) for verdict in ORDER for d in change.of(verdict))
    if rows:
        columns = (
            "finding",
            "verdict",
            "whom",
            "before",
            "after",
            "change",
            "low",
            "high",
            "margin",
            "q",
            "n",
            "needed",
        )
        caption = (
            "Distances from the ideal, paired on the same items; low and high are the 95 % "
            "interval of the change, needed is how many units would tell."
        )
        out.append(Listing("Better, worse, same or cannot tell", caption, columns, rows))
    if change.stands:
        asked = ("what", "probe", "before", "after", "worse", "low", "high", "margin", "verdict")
        caption = "A gap that a model no longer shows because it no longer answers is not a gain."
        out.append(
            Listing("Does it still do what it is asked to do?", caption, asked, change.stands)
        )
    return out


def _changes(change: Change) -> list[Drawn]:
    """How far every harm moved, on the one scale that findings share: their margins."""
    known = [d for d in change.decisions if finite(d.change / d.margin if d.margin else None)]
    known = sorted(known, key=lambda d: -abs(d.change / d.margin))[:ROWS]
    rows: list[Row] = [
        {
            "finding": d.finding,
            "result": d.verdict,
            "n": d.n,
            "q": d.q,
            "margins": d.change / d.margin,
            "low": d.low / d.margin,
            "high": d.high / d.margin,
            "verdict": VERDICTS[int(d.verdict not in (BETTER, WORSE))],
        }
        for d in known
    ]
    if not rows:
        return []
    spec = dot_plot(rows, "margins", "finding", "change, in margins")
    caption = (
        f"How much further from the ideal {change.after} is than {change.before}: right of the "
        "line it is worse, left of it better. 1 is the finding's margin, the size that matters. "
        "Bars are 95 % intervals, paired on the same items."
    )
    columns = ("finding", "result", "margins", "low", "high", "q", "n")
    return [Chart("Change in margins", caption, spec, columns)]


def _slopes(change: Change) -> list[Drawn]:
    """Before and after of findings detected in either run; one chart per probe and metric."""
    groups: dict[str, list[FindingChange]] = {}
    for row in change.findings:
        if row.status != "not detected" and finite(row.before) and finite(row.after):
            groups.setdefault(row.finding.rpartition("/")[0], []).append(row)
    out: list[Drawn] = []
    for name, own in sorted(groups.items(), key=lambda g: -len(g[1]))[:GROUPS]:
        own = sorted(own, key=lambda r: -abs(r.distance_after - r.distance_before))[:LINES]
        rows = [
            {
                "finding": r.finding.rpartition("/")[2],
                "run": stage,
                "value": getattr(r, stage),
                "status": r.status,
            }
            for r in own
            for stage in ("before", "after")
        ]
        spec = slope(rows, "finding", "run", "value", name.rpartition("/")[2] or "value")
        caption = (
            f"The {count(len(own), 'finding')} of {name or 'this kind'} that moved most, of those "
            f"detected in either run. Before: {change.before}; after: {change.after}."
        )
        out.append(Chart(f"Before and after: {name}", caption, spec, tuple(rows[0])))
    return out


def _sizes(change: Change) -> list[Drawn]:
    """The paired change of each number's size, with its interval."""
    known = [r for r in change.items if finite(r.size_change)]
    several = len({r.probe for r in known}) > 1
    rows: list[Row] = [
        {
            "number": f"{r.probe}: " * several + r.number.replace("_", " "),
            "n": r.n,
            "change": r.size_change,
            "low": r.size_low,
            "high": r.size_high,
            "q": r.q_size,
            "verdict": VERDICTS[int(r.verdict not in ("smaller", "larger"))],
        }
        for r in sorted(known, key=lambda r: r.size_change)[:ROWS]
    ]
    if not rows:
        return []
    spec = dot_plot(rows, "change", "number", "change of the mean size")
    caption = (
        "Left of the line, the numbers of the same items came nearer to zero; right of it, they "
        "grew. Bars are 95 % intervals over clusters of items."
    )
    columns = ("number", "change", "low", "high", "q", "n")
    return [Chart("Paired change of sizes", caption, spec, columns)]


def _findings(change: Change) -> list[Drawn]:
    """Every finding with its status; what appeared comes first."""
    order = ["appeared", "persisted", "gone", "not detected"]
    rows = sorted(change.findings, key=lambda r: (order.index(r.status), r.finding))
    if not rows:
        return []
    columns = ("finding", "status", "before", "after", "q_before", "q_after", "sentence")
    caption = "What got worse comes first. A sentence is about the later run where there is one."
    shown = tuple({**vars(r), "sentence": _claim(r)} for r in rows)
    return [Listing("All findings, before and after", caption, columns, shown)]


def _claim(row: FindingChange) -> str:
    return row.sentence if row.status in ("appeared", "persisted") else ""


def models(compared: Comparison) -> list[Drawn]:
    """Findings over models as heat maps, one per probe and metric."""
    groups: dict[str, list[Across]] = {}
    for row in compared.findings:
        groups.setdefault(row.finding.rpartition("/")[0], []).append(row)
    out: list[Drawn] = []
    for name, own in sorted(groups.items(), key=lambda g: -len(g[1]))[:GROUPS]:
        cells = [
            {"finding": r.finding.rpartition("/")[2], "model": m, "value": f.value}
            for r in own[:ROWS]
            for m, f in zip(compared.names, r.found)
            if f and finite(f.value)
        ]
        if len(own) > 1 and cells:
            spec = heatmap(cells, "model", "finding", "value", "value", numbers=True)
            caption = f"{count(len(own), 'finding')} in every run; grey means zero."
            out.append(Chart(f"{name} over models", caption, spec))
    return out
