"""THE rule of which findings count: headline, terminal, report, gate, exports, viewer and compare.

A finding counts when it is about the audited model, checks no method, is no placebo, and is a
test. What does not count may still be shown, as context.
"""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.runs.finding import Finding


def counts(finding: Finding, audited: str) -> bool:
    """Whether a finding counts for or against the audited model.

    >>> counts(Finding("a/x", "a", "m", 0.1, "", model="mine", detected=True), "mine")
    True
    >>> counts(Finding("a/x", "a", "m", 0.1, "", model="other", detected=True), "mine")
    False
    """
    return (
        finding.model == audited
        and not finding.control
        and not finding.placebo
        and finding.detected is not None
    )


def counted(findings: Iterable[Finding]) -> list[Finding]:
    """Those that count."""
    return [f for f in findings if f.counts]


def undefined(findings: Iterable[Finding], audited: str) -> list[Finding]:
    """Tests of the audited model that could not be made: their value is undefined, with a reason.

    >>> nothing = float("nan")
    >>> len(undefined([Finding("a/x", "a", "m", nothing, "", model="mine")], "mine"))
    1
    """
    return [
        f
        for f in findings
        if f.model == audited and not f.control and not f.placebo and f.value != f.value
    ]
