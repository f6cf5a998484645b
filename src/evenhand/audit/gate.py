"""May it ship? A run against a policy, by interval rather than by point.

The default policy fails a run when a finding that counts is detected and its interval reaches
beyond its margin; a finding without a margin fails when it is detected. A run in which nothing
could be tested on the audited model is undefined, never passed. Limits of one's own replace it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import RunError, SpecError, unknown
from evenhand.runs.counting import counted
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.record import Run

Outcome = Literal["passed", "failed", "undecided", "undefined"]
EXIT: dict[Outcome, int] = {"passed": 0, "failed": 1, "undecided": 3, "undefined": 3}


@dataclass(frozen=True)
class Check:
    """One finding against its margin.

    Attributes:
        id: the finding.
        outcome: passed, failed, undecided (the interval straddles the margin) or undefined.
        value, low, high: the finding's number and interval.
        margin: the distance from the ideal that is accepted (NaN: none is set).
        needed: about how many comparisons would decide an undecided check; None elsewhere.
        sentence: what the finding says.
    """

    id: str
    outcome: Outcome
    value: float
    low: float
    high: float
    margin: float = NAN
    needed: int | None = None
    sentence: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of a check."""
        return {name: value for name, value in self.__dict__.items() if name != "sentence"}


@dataclass(frozen=True)
class Gate:
    """The outcome of a run and what it rests on."""

    outcome: Outcome
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def failing(self) -> list[Check]:
        """The checks that stand in the way of passing."""
        return [c for c in self.checks if c.outcome != "passed"]

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand gate --json`)."""
        checks = [c.as_dict() for c in self.checks]
        return {"outcome": self.outcome, "passed": self.passed, "checks": checks}


def gate(
    run: Run | str | Path,
    limits: Sequence[str] = (),
    *,
    allow: int = 0,
    undecided: str | None = None,
) -> Gate:
    """Decide whether a run passes.

    Args:
        run: a finished run, or its folder.
        limits: ID=VALUE: the distance of a finding from its ideal that is still accepted;
            without any, the default policy holds.
        allow: so many failing findings are accepted by the default policy.
        undecided: `fail` or `pass`: what an interval that straddles its limit counts as.

    Raises:
        RunError: the run is not finished, so that it can be neither passed nor failed.
        SpecError: a limit names no finding, or is no number.
    """
    if undecided not in (None, "fail", "pass"):
        raise SpecError(f"--undecided {undecided!r}: expected fail or pass.")
    opened = run if isinstance(run, Run) else Run.open(run)
    if opened.status != "finished":
        raise RunError(
            f"{opened.folder}: the run is {opened.status!r}, and only finished runs are judged. "
            f"Resume it with: evenhand resume {shlex.quote(str(opened.folder))}"
        )
    if limits:
        found = {f.id: f for f in opened.findings}
        return _worst([_limited(found, limit, undecided) for limit in limits])
    checks = tuple(_check(f) for f in counted(opened.findings))
    failed = sum(c.outcome == "failed" for c in checks)
    tested = any(c.outcome != "undefined" for c in checks)
    return Gate("failed" if failed > allow else "passed" if tested else "undefined", checks)


def _check(finding: Finding) -> Check:
    """A finding under the default policy."""
    within = _distances(finding)[1] <= finding.margin  # False where either is undefined
    if finding.detected and not within:
        return _made(finding, "failed", finding.margin)
    return _made(finding, "passed" if math.isfinite(finding.value) else "undefined", finding.margin)


def _limited(found: dict[str, Finding], limit: str, undecided: str | None) -> Check:
    """A finding against a limit of one's own."""
    place, _, text = limit.rpartition("=")
    try:
        most = float(text)
    except ValueError:
        most = NAN
    if not most >= 0:
        raise SpecError(f"--limit {limit!r}: expected ID=VALUE with a number of 0 or more.")
    if place not in found:
        hint = "List them with: evenhand show RUN --json -"
        raise SpecError(unknown("finding", place, found, where="--limit", hint=hint))
    finding = found[place]
    near, far = _distances(finding)
    outcome: Outcome = "passed" if far <= most else "failed"
    if not math.isfinite(finding.value):
        outcome = "undefined"
    elif near <= most < far and undecided != "fail":
        outcome = "passed" if undecided == "pass" else "undecided"
    return _made(finding, outcome, most)


def _distances(finding: Finding) -> tuple[float, float]:
    """The nearest and the farthest distance from the ideal that the interval allows.

    >>> _distances(Finding("a/x", "a", "m", 0.2, "", low=-0.1, high=0.5))
    (0.0, 0.5)
    """
    low, high, ideal = finding.low, finding.high, finding.ideal
    if math.isnan(low) or math.isnan(high):
        low = high = finding.value
    ends = sorted((abs(low - ideal), abs(high - ideal)))
    return (0.0 if low <= ideal <= high else ends[0]), ends[1]


def _made(finding: Finding, outcome: Outcome, margin: float) -> Check:
    needed = _needed(finding, margin) if outcome == "undecided" else None
    return Check(
        finding.id, outcome, finding.value, finding.low, finding.high, margin, needed,
        finding.sentence,
    )  # fmt: skip


def _needed(finding: Finding, margin: float) -> int | None:
    """Comparisons at which an interval that shrinks as 1 / sqrt(n) leaves the margin.

    >>> _needed(Finding("a/x", "a", "m", 0.2, "", low=0.0, high=0.4, n=10), 0.1)
    40
    """
    room = abs(abs(finding.value - finding.ideal) - margin)
    half = (finding.high - finding.low) / 2
    return math.ceil(finding.n * round((half / room) ** 2, 9)) if room > 0 else None


def _worst(checks: Sequence[Check]) -> Gate:
    order: tuple[Outcome, ...] = ("failed", "undefined", "undecided")
    seen = {c.outcome for c in checks}
    return Gate(next((o for o in order if o in seen), "passed"), tuple(checks))
