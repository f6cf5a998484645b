"""A run's first screen in the terminal: the same story, in the same words, as the report's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.cli.calling import runnable
from evenhand.runs.kinds import kind_of
from evenhand.runs.safe_text import readable
from evenhand.runs.story import DIFFERING, UNSEEN, Quiet
from evenhand.runs.wording import chance, count, defined, number, subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenhand.runs.card import MetricCard
    from evenhand.runs.finding import Finding
    from evenhand.runs.harms import Harmed
    from evenhand.runs.record import Run
    from evenhand.runs.story import Story

NAMED = 8
LINES = 6
"""Harms on the first screen."""
DIFFERING_LINES = 4
UNSEEN_LINES = 5
STEPS = 3


def print_first_screen(run: Run, out: Console, limit: int = 10, *, whole: bool = False) -> None:
    """What a person who must decide reads first; with `whole`, the numbers of all of it below.

    Args:
        limit: how many of the strongest findings are printed with their numbers.
        whole: print them even where the first screen says it all.
    """
    story = kind_of(run.facts).story(run, limit)
    for line in story.asked:
        _line(out, line, style="dim")
    _head(out, story.questions[0])
    _line(out, story.problem, style="bold red" if story.alarming else "bold")
    _head(out, story.questions[1])
    _harms(out, story, whole=whole)
    _head(out, story.questions[2])
    for line in story.sure:
        _line(out, line)
    if story.outcome:
        _unseen(out, story, whole=whole)
    for label, why in story.skipped.items():
        _line(out, f"Not run: {label} ({why})")
    if whole or not story.outcome:
        _numbers(out, run, story, limit)
    out.print()
    out.print(_text(f"Read it:   {run.report}"), soft_wrap=True)
    for step in story.steps if whole or not story.outcome else story.steps[:STEPS]:
        command = f"{runnable(step.command)}   # {step.why.lower()}"
        out.print(_text(f"Next:      {command}"), soft_wrap=True)


def _harms(out: Console, story: Story, *, whole: bool) -> None:
    """Who is worse off, or where a kind of run without harms found what it looked for."""
    if not story.outcome:
        for place in story.where:
            _line(out, place.sentence)
        return
    if not story.harmed:
        _line(out, story.nobody)
    _listed(out, story.harmed, LINES, "more harm", whole=whole)
    if story.differing:
        _head(out, DIFFERING)
        _listed(out, story.differing, DIFFERING_LINES, "more difference", whole=whole)
    for line in filter(None, (story.legend, story.undirected)):
        _line(out, line, style="dim")


def _listed(out: Console, lines: Sequence[Harmed], most: int, noun: str, *, whole: bool) -> None:
    """Print numbered lines, the first ones where they are many."""
    from rich.padding import Padding

    shown = lines if whole else lines[:most]
    for position, line in enumerate(shown, start=1):
        out.print(Padding(_hanging(f"{position:>2}  ", line.sentence), (0, 0, 0, 2)))
    if rest := len(lines) - len(shown):
        _line(out, f"    and {count(rest, noun)} (--all)")


def _unseen(out: Console, story: Story, *, whole: bool) -> None:
    """What was not found, with the size that would have been."""
    if not story.quiet:
        return
    _head(out, UNSEEN)
    shown = story.unseen if whole else story.unseen[:UNSEEN_LINES]
    for part in shown:
        _line(out, part.brief)
    if len(shown) < len(story.quiet):
        _line(out, f"and {count(len(story.quiet) - len(shown), 'more measure')} (--all)")


def _numbers(out: Console, run: Run, story: Story, limit: int) -> None:
    """The same findings for a statistician."""
    facts = run.facts
    kind = kind_of(facts)
    if story.outcome:
        _head(out, "The numbers")
        for line in story.exact:
            _line(out, line)
        for place in story.where:
            _line(out, place.sentence)
    _head(out, f"Strongest findings (false-discovery rate {100 * story.rate:.0f} %)")
    if not story.strongest:
        _line(out, f"none: {story.nothing}")
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
    if story.inconclusive:
        _head(out, "Inconclusive: measured by probes that cannot judge this model")
        for finding in story.inconclusive[:limit]:
            card = kind.card(facts, finding)
            text = f"{finding.id}  {numbers(finding, card)}"
            _line(out, f"{text}  {'detected' if finding.detected else 'not detected'}")
        if len(story.inconclusive) > limit:
            _line(out, f"and {count(len(story.inconclusive) - limit, 'more finding')}")


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
    if defined(finding.margin):
        parts.append(f"margin {number(finding.margin)}")
    if defined(finding.floor):
        parts.append(f"noise floor {number(finding.floor)}")
    if finding.coverage < 1:
        parts.append(f"coverage {100 * finding.coverage:.0f} %")
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
        seen = f"near the limit of detection ({number(finding.detectable)}): may be overstated"
        out.print(Padding(_text(seen, "yellow"), (0, 0, 0, 6)))


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
