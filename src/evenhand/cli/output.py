"""What commands print: progress, findings, tables, JSON. Model text is never trusted."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.calling import runnable

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.audit.gate import Gate
    from evenhand.audit.sizing import Plan
    from evenhand.runs.compared import Comparison
    from evenhand.runs.record import Run


WIDE = 10_000
PROSE = 100
"""Columns where there is no terminal: tables as wide as they are, sentences wrapped."""
_quiet = ContextVar("quiet", default=False)
_stdout_taken = ContextVar("stdout_taken", default=False)
"""Whether an output option names standard output, so that it must hold nothing else."""


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Inside: nothing on standard error but errors."""
    before = _quiet.set(quiet or _quiet.get())
    try:
        yield
    finally:
        _quiet.reset(before)


def free_stdout(taken: bool = True) -> None:
    """Print for people on standard error from now on, since an output goes to standard output."""
    _stdout_taken.set(taken)


def console(*, stderr: bool = False, always: bool = False) -> Console:
    """The terminal, which no text drives, whoever wrote it.

    Piped, nothing is cut or broken: ids, paths and commands stay whole.

    Args:
        always: print on standard error even where quiet was asked for.
    """
    from rich.console import Console

    class Screen(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            texts = (clean(runnable(o)) if isinstance(o, str) else o for o in objects)
            super().print(*texts, **how)

    made = Screen(
        stderr=stderr or _stdout_taken.get(),
        highlight=False,
        soft_wrap=False,
        markup=False,
        emoji=False,
        quiet=stderr and not always and _quiet.get(),
    )
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


def prose() -> Console:
    """The terminal for sentences: wrapped where lines can be read, be it into a file."""
    made = console()
    made.width = min(made.width, PROSE)
    return made


def clean(text: object) -> str:
    """Text without control or direction characters, so that it cannot drive the terminal.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return "".join(
        "�" if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t" else c
        for c in str(text)
    )


@contextmanager
def notes() -> Iterator[None]:
    """Warnings of the work inside as plain lines on standard error."""
    import warnings

    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in () if _quiet.get() else noted:
        sys.stderr.write(f"note: {clean(runnable(str(warning.message)))}\n")


def write_json(value: Any, target: str | None) -> bool:
    """Write strict JSON to a file or, with "-", to standard output. False when not asked."""
    if target is None:
        return False
    from evenhand.strict import plain

    text = json.dumps(plain(value), indent=1, ensure_ascii=False)
    if target == "-":
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    else:
        from evenhand.writing import write_bytes

        write_bytes(Path(target), (text + "\n").encode("utf-8", "backslashreplace"), "--json")
    return True


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """A number for people; a dash when it is undefined."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}"


class RichProgress:
    """One line per ask: label, bar, inputs done, time left.

    Nothing is printed, the banner neither, before the first ask begins: a mistake found earlier
    is then all that a user sees.
    """

    def __init__(self, banner: str = "") -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("  {task.description:<18}"),
            BarColumn(24),
            MofNCompleteColumn(),
            TextColumn("inputs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console(stderr=True),
        )
        self._banner = banner
        self._task: Any = None

    def __enter__(self) -> RichProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._task is not None:
            self._progress.stop()

    def note(self, text: str) -> None:
        """A line under the banner."""
        if self._banner:
            self._progress.console.print(self._banner, markup=False)
            self._banner = ""
        if text:
            self._progress.console.print(f"  {clean(text)}", markup=False)

    def start(self, label: str, total: int, done: int) -> None:
        self.note("")
        self._progress.start()
        self._task = self._progress.add_task(clean(label), total=total, completed=done)

    def advance(self, inputs: int) -> None:
        self._progress.advance(self._task, inputs)

    def finish(self) -> None:
        self._progress.refresh()


def give(run: Run, json: str | None, limit: int = 10, *, whole: bool = False) -> None:
    """A run as one JSON object where asked for, else as its first screen."""
    from evenhand.runs.kinds import kind_of

    if json is None:
        print_run(run, limit, whole=whole)
    else:
        write_json(kind_of(run.facts).contract(run), json)


def print_run(run: Run, limit: int = 10, *, whole: bool = False) -> None:
    """The first screen: may it ship, who is worse off, how far to trust this, what next."""
    from evenhand.cli.first_screen import print_first_screen

    print_first_screen(run, prose(), limit, whole=whole)


def print_gate(gate: Gate) -> None:
    """What stands in the way, each with its reason and sentence, and the outcome."""
    from evenhand.runs.controls import CANNOT_TELL
    from evenhand.runs.wording import count

    screen = console()
    for check in gate.failing:
        if check.outcome == CANNOT_TELL:
            continue
        span = f"{number(check.value)} [{number(check.low)}, {number(check.high)}]"
        screen.print(f"{check.outcome}: {clean(check.id)}  {span}", markup=False)
        screen.print(f"  {clean(check.sentence)}", markup=False)
        screen.print(f"  {clean(check.reason)}", markup=False)
    left_out = [check.id.partition("/")[0] for check in gate.of(CANNOT_TELL)]
    for label, reason in gate.cannot_judge.items():
        checks = count(left_out.count(label), "finding")
        text = f"cannot tell: {label}, {checks}: it cannot judge this model, since {reason}"
        screen.print(clean(text), markup=False)
    good = len(gate.checks) - len(gate.failing)
    screen.print(f"{gate.outcome}  ({good} of {len(gate.checks)} checks passed)")
    screen.print(clean(gate.reason), markup=False)


def print_plan(plan: Plan) -> None:
    """What each metric needs, and what the whole run takes."""
    rows = []
    for r in plan.rows:
        over = "; ".join(f"{c} {a:,} -> {b:,}" for c, (a, b) in (r.levels or {}).items())
        varies = ", ".join(f"{c} {100 * v:.0f} %" for c, v in (r.varies or {}).items())
        rows.append(
            {
                "probe": r.probe,
                "metric": r.metric,
                "margin": r.margin,
                "pilot": f"{r.asked:,} {r.units}",
                "needed": f"{r.needed:,}" if r.needed else "-",
                "items": f"{r.items:,}" if r.items else "-",
                "time": "-" if r.seconds is None else f"{r.seconds:,.0f} s",
                **({"cost": "-" if r.cost is None else f"{r.cost:.2f}"} if plan.cost else {}),
                "levels": over or "-",
                "varies by": varies or "-",
            }
        )
    print_table(
        rows, f"For {100 * plan.power:.0f} % power at an error rate of {100 * plan.error:.0f} %"
    )
    for r in (r for r in plan.rows if r.reason):
        console().print(clean(f"{r.probe}, {r.metric}: {r.reason}."), markup=False)
    paid = f", cost {plan.cost:.2f}" if plan.cost is not None else ""
    told = f"In all about {plan.seconds:,.0f} s{paid}, according to the pilot {plan.pilot}."
    console().print(clean(told), markup=False)


def print_changes(compared: Comparison) -> None:
    """Each later run against the first: the verdict, then for whom and how much."""
    from evenhand.runs.compared import BETTER, WORSE

    screen = console()
    for change in compared.changes:
        screen.print(f"{clean(change.after)} against {clean(change.before)}", markup=False)
        screen.print(clean(change.headline), markup=False)
        for decision in (*change.of(WORSE), *change.of(BETTER)):
            screen.print(f"  {clean(decision.sentence)}", markup=False)
        if change.reason:
            screen.print(f"  {clean(change.reason)}", markup=False)
        if change.stands:
            names = ("what", "before", "after", "worse", "margin", "verdict")
            rows = [{name: row[name] for name in names} for row in change.stands]
            print_table(rows, "What the model is asked to do")


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Any list of rows as a terminal table."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        console().print(f"{title}: none" if title else "none", markup=False)
        return
    shown = Text(clean(title)) if title else None
    table = Table(title=shown, box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        table.add_column(Text(clean(name)), overflow="fold")
    for row in rows:
        cells = [number(v) if isinstance(v, float) else clean(v) for v in row.values()]
        table.add_row(*map(Text, cells))
    console().print(table)
