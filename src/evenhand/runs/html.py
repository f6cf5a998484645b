"""Runs, findings and comparisons where they are the last value of a notebook cell.

Plain HTML without scripts or colours of its own, so that it follows the notebook's theme; text of
models is escaped and made readable (`safe_text`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand.runs.kinds import kind_of
from evenhand.runs.safe_text import readable
from evenhand.runs.wording import chance, count, defined, number

if TYPE_CHECKING:
    from evenhand.runs.compared import Comparison
    from evenhand.runs.finding import Finding
    from evenhand.runs.record import Run

SHOWN = 20
"""Rows of a table before it says how many more there are."""
LEFT = "text-align:left;vertical-align:top"


def told(text: object) -> str:
    """Any text, safe to stand in a page.

    >>> told("<b>\\x1b")
    '&lt;b&gt;�'
    """
    return escape(readable(str(text)))


def box(title: str, *parts: str) -> str:
    """A titled part of a cell."""
    head = f"<p><strong>{told(title)}</strong></p>" if title else ""
    return f"<div class='evenhand'>{head}{''.join(parts)}</div>"


def paragraph(text: str) -> str:
    return f"<p>{told(text)}</p>" if text else ""


def bullets(lines: Iterable[str]) -> str:
    rows = "".join(f"<li>{told(line)}</li>" for line in lines)
    return f"<ul>{rows}</ul>" if rows else ""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under their heads; more than a screenful is cut, and says so.

    >>> "3 more" in table(["x"], [[k] for k in range(23)])
    True
    """
    cells = [f"<td style='{LEFT}'>{{}}</td>".format] * len(head)
    heads = "".join(f"<th style='{LEFT}'>{told(name)}</th>" for name in head)
    body = "".join(
        f"<tr>{''.join(cell(told(value)) for cell, value in zip(cells, row))}</tr>"
        for row in rows[:SHOWN]
    )
    more = f"<p>and {count(len(rows) - SHOWN, 'more row')}</p>" if len(rows) > SHOWN else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"


def interval(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]" if defined(low) else ""


def verdict(finding: Finding) -> str:
    """Whether a difference was detected, in a word."""
    if not defined(finding.value):
        return finding.reason or "undefined"
    if finding.detected is None:
        return "no test"
    return "detected" if finding.detected else "not detected"


def findings_table(findings: Sequence[Finding]) -> str:
    """Findings in their order, one a row."""
    head = ("finding", "value", "95 % interval", "q", "n", "", "in words")
    rows = [
        (
            f.id,
            number(f.value),
            interval(f.low, f.high),
            chance(f.q) if defined(f.q) else "",
            f"{f.n:,} {f.units}".strip(),
            verdict(f),
            f.sentence,
        )
        for f in findings
    ]
    return box(count(len(findings), "finding"), table(head, rows))


def finding_page(f: Finding) -> str:
    """One finding with everything needed to believe or doubt it."""
    margin = "" if not defined(f.margin) else f"margin {number(f.margin)}"
    rows: list[tuple[str, object]] = [
        (f.metric, f"{number(f.value)} {interval(f.low, f.high)} (ideal {number(f.ideal)})"),
        ("verdict", ", ".join(filter(None, (verdict(f), margin)))),
        ("groups", " / ".join(f.groups)),
        ("about", f.attribute),
        ("worse off", f.harm),
        ("difference", f.difference),
        ("q", chance(f.q) if defined(f.q) else ""),
        ("n", f"{f.n:,} {f.units}".strip()),
        ("beyond these", ", ".join(f.generalises_over)),
        ("caution", f.caution),
        ("method", f.method),
        ("reason", f.reason),
    ]
    return box(f.id, paragraph(f.sentence), _facts((k, v) for k, v in rows if v))


def _facts(rows: Iterable[tuple[str, object]]) -> str:
    body = "".join(
        f"<tr><th style='{LEFT}'>{told(name)}</th><td style='{LEFT}'>{told(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def run_page(run: Run) -> str:
    """The first screen of a run: the same story as in the report and in the terminal."""
    facts = run.facts
    name = f"{run.folder} ({facts.get('kind', 'audit')}, {run.status})"
    if run.status != "finished":
        place = shlex.quote(str(run.folder))
        return box(name, paragraph(f"Resume it with: evenhand resume {place}"))
    kind = kind_of(facts)
    story = kind.story(run)
    where = [harm.sentence for harm in story.harmed] or [p.sentence for p in story.where]
    if story.outcome and not story.harmed:
        where = [story.nobody]
    where += [line.sentence for line in story.differing]
    parts = zip(story.questions, ([story.problem], where, list(story.sure)))
    asked = [f"<h4>{told(question)}</h4>{bullets(lines)}" for question, lines in parts]
    strongest = findings_table(run.strongest) if story.strongest else ""
    return box(story.title, paragraph(name), *asked, strongest, paragraph(f"Report: {run.report}"))


def comparison_page(compared: Comparison) -> str:
    """Each later run against the first: the verdict, then every decision."""
    head = ("finding", "verdict", "before", "after", "change", "95 % interval", "in words")
    parts = []
    for change in compared.changes:
        rows = [
            (
                d.finding,
                d.verdict,
                number(d.before),
                number(d.after),
                number(d.change),
                interval(d.low, d.high),
                d.sentence,
            )
            for name in ("worse", "better", "cannot tell", "same")
            for d in change.of(name)
        ]
        title = f"{change.after} against {change.before}"
        told_ = paragraph(change.headline) + paragraph(change.reason)
        parts.append(box(title, told_, table(head, rows) if rows else ""))
    return box("", *parts)


def mapping_page(title: str, lines: Sequence[str], facts: Mapping[str, Any]) -> str:
    """Anything else: a title, what it says, and facts by name."""
    return box(title, *map(paragraph, lines), _facts((k, v) for k, v in facts.items() if v != ""))
