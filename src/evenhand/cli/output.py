"""What commands print: progress, findings, tables, JSON. Model text is never trusted."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.findings import Finding
    from evenhand.record import Run


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def clean(text: object) -> str:
    """Text without control or direction characters, so that it cannot drive the terminal.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return "".join(
        "�" if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t" else c
        for c in str(text)
    )


def write_json(value: Any, target: str | None) -> bool:
    """Write strict JSON to a file or, with "-", to standard output. False when not asked."""
    if target is None:
        return False
    from evenhand.findings import plain

    text = json.dumps(plain(value), indent=1, ensure_ascii=False)
    if target == "-":
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    else:
        from evenhand.runner.store import replace

        replace(Path(target), (text + "\n").encode("utf-8", "backslashreplace"))
    return True


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """A number for people; a dash when it is undefined."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def p_text(value: float) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


class RichProgress:
    """One line per ask: label, bar, inputs done, time left."""

    def __init__(self) -> None:
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
        self._task: Any = None

    def __enter__(self) -> RichProgress:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def start(self, label: str, total: int, done: int) -> None:
        self._task = self._progress.add_task(clean(label), total=total, completed=done)

    def advance(self, inputs: int) -> None:
        self._progress.advance(self._task, inputs)

    def finish(self) -> None:
        self._progress.refresh()


def finding_lines(finding: Finding) -> tuple[str, str]:
    """The sentence, and the numbers behind it."""
    parts = [f"{finding.metric} {number(finding.value, sign=True)}"]
    if math.isfinite(finding.low):
        parts.append(f"[{number(finding.low)}, {number(finding.high)}]")
    if math.isfinite(finding.q):
        parts.append(f"q {p_text(finding.q)}")
    parts.append(f"n {finding.n:,}")
    if math.isfinite(finding.floor):
        parts.append(f"noise floor {number(finding.floor)}")
    if finding.coverage < 1:
        parts.append(f"coverage {finding.coverage:.0%}")
    return clean(finding.sentence), "  ".join(parts)


def print_run(run: Run, limit: int = 10) -> None:
    """The first screen: strongest findings, what was not detected, where to read on."""
    from evenhand.findings import strongest

    out = console()
    facts = run.facts
    rate = facts["work"]["suite"]["false_discovery_rate"]
    findings = run.findings
    best = strongest(findings, limit)
    out.print(f"[bold]Strongest findings[/bold] (false-discovery rate {rate:.0%})")
    if not best:
        out.print("  none: no difference was detected")
    for place, finding in enumerate(best, start=1):
        sentence, numbers = finding_lines(finding)
        out.print(f"  {place:>2}  {sentence}", markup=False)
        out.print(f"      {numbers}", markup=False, style="dim")
    _print_quiet(out, findings)
    for label, entry in facts["probes"].items():
        if entry.get("skipped"):
            out.print(f"Not run: {label} ({entry['skipped']})", markup=False)
    out.print(f"Read it:   {run.report}", markup=False)


def _print_quiet(out: Console, findings: Sequence[Finding]) -> None:
    """Tests without a detection, one line per probe, with the effect they could have seen."""
    by_probe: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.detected is False:
            by_probe.setdefault(finding.probe, []).append(finding)
    for probe, rows in by_probe.items():
        names = ", ".join(clean(f.attribute or f.id) for f in rows[:6])
        more = f" and {len(rows) - 6} more" if len(rows) > 6 else ""
        seen = [f.detectable for f in rows if math.isfinite(f.detectable)]
        could = f" (could have seen {number(max(seen))} or more)" if seen else ""
        out.print(f"Tested, no difference detected: {probe}: {names}{more}{could}", markup=False)


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Any list of rows as a terminal table."""
    from rich.table import Table

    if not rows:
        console().print(f"{title}: none" if title else "none")
        return
    table = Table(title=title or None, box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        cells = [number(v) if isinstance(v, float) else clean(v) for v in row.values()]
        table.add_row(*cells)
    console().print(table)
