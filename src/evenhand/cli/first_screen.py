"""A run's first screen in the terminal: the same story, in the same words, as the report's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.runs.kinds import kind_of
from evenhand.runs.safe_text import readable
from evenhand.runs.story import Quiet
from evenhand.runs.wording import chance, count, defined, number, subject

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenhand.runs.card import MetricCard
    from evenhand.runs.finding import Finding
    from evenhand.runs.record import Run

NAMED = 8


def print_first_screen(run: Run, out: Console, limit: int = 10) -> None:
    """Is there a problem, where, how sure is that, and what next; then the findings."""
    facts = run.facts
    kind = kind_of(facts)
    story = kind.story(run, limit)
    for line in story.asked:
        _line(out, line, style="dim")
    _head(out, story.questions[0])
    _line(out, story.problem, style="bold red" if story.alarming else "bold")
    _head(out, story.questions[1])
    for place in story.where:
        _line(out, place.sentence)
    _head(out, story.questions[2])
    for line in story.sure:
        _line(out, line)
    _head(out, f"Strongest findings (false-discovery rate {story.rate:.0%})")
    if not story.strongest:
        _line(out, f"none: no {story.noun} was detected")
    for position, finding in enumerate(story.strongest, start=1):
        _finding(out, position, finding, kind.card(facts, finding), story.model)
    if story.controls:
        seen = sum(bool(f.detected) for f in story.controls)
        text = f"{seen} of {len(story.controls)} method checks (not about people) seen"
        _line(out, text, style="dim")
    if story.quiet:
        _head(out, f"Tested, no {story.noun} detected")
        for part in story.quiet:
            _quiet(out, part)
    for label, why in story.skipped.items():
        _line(out, f"Not run: {label} ({why})")
    out.print()
    out.print(_text(f"Read it:   {run.report}"), soft_wrap=True)
    for step in story.steps:
        out.print(_text(f"Next:      {step.command}   # {step.why.lower()}"), soft_wrap=True)


def numbers(finding: Finding, card: MetricCard) -> str:
    """The numbers of a finding on one line."""
    parts = [f"{card.name} {number(finding.value, sign=True)}"]
    if defined(finding.low):
        parts.append(f"[{number(finding.low)}, {number(finding.high)}]")
    if defined(finding.shrunken):
        parts.append(f"shrunken {number(finding.shrunken, sign=True)}")
    if defined(finding.q):
        parts.append(f"q {chance(finding.q)}")
    parts.append(f"n {finding.n:,} {finding.units}".rstrip())
    if defined(finding.floor):
        parts.append(f"noise floor {number(finding.floor)}")
    if finding.coverage < 1:
        parts.append(f"coverage {finding.coverage:.0%}")
    return "  ".join(parts)


def _finding(out: Console, position: int, finding: Finding, card: MetricCard, audited: str) -> None:
    from rich.padding import Padding

    out.print(Padding(_hanging(f"{position:>2}  ", finding.sentence), (0, 0, 0, 2)))
    where = f"  ({finding.model})" if finding.model not in ("", audited) else ""
    doubt = ""
    if defined(finding.low) and finding.low <= finding.ideal <= finding.high:
        doubt = f"  interval reaches {number(finding.ideal)}"
    out.print(Padding(_text(numbers(finding, card) + where + doubt, "dim"), (0, 0, 0, 6)))
    if finding.caution:
        out.print(Padding(_text(finding.caution, "yellow"), (0, 0, 0, 6)))


def _quiet(out: Console, part: Quiet) -> None:
    names = list(dict.fromkeys(subject(f, part.card) for f in part.findings))
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    head = f"{part.title} {count(len(part.findings), 'test')}: {'; '.join(names[:NAMED])}{more}."
    _line(out, head)
    _line(out, part.could, style="dim")


def _head(out: Console, text: str) -> None:
    out.print()
    out.print(_text(text, "bold"))


def _line(out: Console, text: str, style: str = "") -> None:
    from rich.padding import Padding

    out.print(Padding(_text(text, style), (0, 0, 0, 2)))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(readable(text, 600), style=style)


def _hanging(mark: str, text: str) -> Table:
    """A number in front, the text beside it, wrapped lines under the text."""
    from rich.table import Table

    grid = Table.grid(padding=0)
    grid.add_column(width=len(mark))
    grid.add_column()
    grid.add_row(mark, _text(text))
    return grid
