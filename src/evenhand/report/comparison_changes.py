"""What changed between runs of the same questions: words for the comparison page."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass

from evenhand.runs.compared import BETTER, WORSE, Change, Comparison, FindingChange
from evenhand.runs.wording import count

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
        f"Worse and better: shown at {100 * compared.rate:.0f} % over all findings, and not shown "
        "to be smaller than the margin. Same: shown to have moved by less than the margin. Cannot "
        "tell: neither."
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
