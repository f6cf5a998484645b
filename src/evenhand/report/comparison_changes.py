"""What changed between runs of the same questions: words and charts for the comparison page."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass

from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.marks import VERDICTS, Row, dot_plot, finite, heatmap, slope
from evenhand.runs.compared import BETTER, ORDER, WORSE, Across, Change, Comparison, FindingChange
from evenhand.runs.wording import count

LINES = 8
GROUPS = 3
ROWS = 40
NAMED = 5
PAIRED = (
    "Numbers are paired item by item: the same texts put to both models; q is corrected over all."
)


@dataclass(frozen=True)
class Answers:
    """The first screen of a comparison."""

    problem: tuple[str, ...]
    where: tuple[str, ...]
    sure: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    questions: tuple[str, ...] = (
        "Better or worse?",
        "For whom?",
        "How sure is that?",
        "What next?",
    )


def answers(compared: Comparison) -> Answers:
    """Put a comparison into words; nothing is computed but counts."""
    changes = compared.changes
    several = len(changes) > 1
    problem = [f"{c.after} against {c.before}. {c.headline}" for c in changes]
    where = [line for c in changes for line in (*_harms(c, several), *_moved(c, several))]
    verdicts = (
        f"Worse and better: shown at {compared.rate:.0%} over all findings, and not shown to be "
        f"smaller than the margin. Same: shown to have moved by less than the margin. Cannot tell: "
        f"neither."
    )
    reasons = [f"{c.after}: {c.reason}" for c in changes if c.reason]
    kept = [f"{c.after}: " * several + line for c in changes for line in _stands(c)]
    first, last = shlex.quote(compared.runs[0]), shlex.quote(compared.runs[-1])
    steps = (
        ("Decide whether it may ship", f"evenhand gate {last} --baseline {first}"),
        ("Read the report of the last run", f"evenhand show {last}"),
        ("Look at the items behind a number", f"evenhand view {last}"),
    )
    return Answers(tuple(problem), tuple(where), (PAIRED, verdicts, *kept, *reasons), steps)


def _harms(change: Change, several: bool) -> list[str]:
    """For whom it became worse or better, and how much."""
    told = []
    for verdict in (WORSE, BETTER):
        own = change.of(verdict)
        told += [d.sentence for d in own[:NAMED]]
        if len(own) > NAMED:
            told.append(f"... and {len(own) - NAMED} more {verdict}.")
    return [f"{change.after}: {line}" for line in told] if several else told


def _stands(change: Change) -> list[str]:
    """Whether the model still does what it is asked, beside the verdict."""
    tally = Counter(str(row["verdict"]) for row in change.stands)
    if not tally:
        return []
    counts = ", ".join(f"{n} {verdict}" for verdict, n in tally.items())
    lost = [str(r["what"]) for r in change.stands if r["verdict"] == "broken"]
    which = f" (broken: {'; '.join(lost)})" if lost else ""
    return [f"What the model is asked to do (order of names, negation, mass): {counts}{which}."]


def _with(change: Change, status: str) -> list[str]:
    rows = [r for r in change.findings if r.status == status]
    rows.sort(key=lambda r: -abs(r.distance_after - r.distance_before))
    return [_named(r) for r in rows]


def _named(row: FindingChange) -> str:
    name = row.finding.rpartition("/")[2] or row.finding
    turned = row.status == "persisted" and row.before * row.after < 0
    return f"{name} (turned round)" if turned else name


def _moved(change: Change, several: bool) -> list[str]:
    """Which findings appeared, persisted and are gone; how many numbers moved."""
    out = []
    for status in ("appeared", "persisted", "gone"):
        names = list(dict.fromkeys(_with(change, status)))
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            out.append(f"{status.capitalize()}: {', '.join(names[:NAMED])}{more}")
    tested = change.items
    moved = [r for r in tested if r.verdict in ("smaller", "larger")]
    if tested:
        out.append(
            f"Scores shown to move: {len(moved)} of {count(len(tested), 'number')}, paired item by "
            f"item"
        )
    return [f"{change.after}: {line}" for line in out] if several else out


def charts(compared: Comparison) -> list[tuple[str, list[Drawn]]]:
    """Sections of the page: one for each later run against the first."""
    out: list[tuple[str, list[Drawn]]] = []
    for change in compared.changes:
        title = f"{change.after} against {change.before}"
        own = [d for part in change.parts for d in part.drawn]
        drawn = [*_decisions(change), *_slopes(change), *_sizes(change), *own, *_findings(change)]
        out.append((title, drawn))
    return out


def _decisions(change: Change) -> list[Drawn]:
    """Every finding with its verdict, and what the model is asked to do."""
    out: list[Drawn] = []
    rows = tuple(vars(d) for verdict in ORDER for d in change.of(verdict))
    if rows:
        columns = (
            "finding", "verdict", "whom", "before", "after", "change", "low", "high", "margin",
            "q", "n", "needed",
        )  # fmt: skip
        caption = (
            "Distances from the ideal, paired on the same items; low and high are the 95 % "
            "interval of the change, needed is how many units would tell."
        )
        out.append(Listing("Better, worse, same or cannot tell", caption, columns, rows))
    if change.stands:
        asked = ("what", "probe", "before", "after", "worse", "low", "high", "margin", "verdict")
        caption = "A gap that a model no longer shows because it no longer answers is no gain."
        out.append(Listing("Does it still do what it is asked?", caption, asked, change.stands))
    return out


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
            {"finding": r.finding.rpartition("/")[2], "run": stage, "value": getattr(r, stage),
             "status": r.status}
            for r in own for stage in ("before", "after")
        ]  # fmt: skip
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
        {"number": f"{r.probe}: " * several + r.number.replace("_", " "), "n": r.n,
         "change": r.size_change, "low": r.size_low, "high": r.size_high,
         "q": r.q_size, "verdict": VERDICTS[int(r.verdict not in ("smaller", "larger"))]}
        for r in sorted(known, key=lambda r: r.size_change)[:ROWS]
    ]  # fmt: skip
    if not rows:
        return []
    spec = dot_plot(rows, "change", "number", "change of the mean size")
    caption = (
        "Left of the line the numbers of the same items came nearer to zero, right of it they "
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
    caption = "What got worse comes first. A sentence speaks of the later run where it has one."
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
            for r in own[:ROWS] for m, f in zip(compared.names, r.found) if f and finite(f.value)
        ]  # fmt: skip
        if len(own) > 1 and cells:
            spec = heatmap(cells, "model", "finding", "value", "value", numbers=True)
            caption = f"{count(len(own), 'finding')} in every run; grey means zero."
            out.append(Chart(f"{name} over models", caption, spec))
    return out
