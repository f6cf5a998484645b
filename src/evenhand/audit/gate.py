"""May it ship? A run against limits, by interval rather than by point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.errors import SpecError, unknown
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run


def decide(
    run: Run, limits: Sequence[str], *, allow: int = 0, undecided: str = "fail"
) -> dict[str, Any]:
    """Check a run against limits.

    Args:
        run: a finished run.
        limits: ID=VALUE; distance of the finding from its ideal that is still accepted.
        allow: detected findings accepted when no limit is given.
        undecided: what an interval that straddles its limit counts as, fail or pass.

    Returns:
        `passed` and one row per check with its verdict: pass, fail, undecided or undefined.
    """
    if undecided not in ("fail", "pass"):
        raise SpecError(f"--undecided {undecided!r}: expected fail or pass.")
    if limits:
        found = {f.id: f for f in run.findings}
        checks = [_check(found, limit) for limit in limits]
    else:
        detected = sum(1 for f in run.findings if f.detected)
        verdict = "pass" if detected <= allow else "fail"
        checks = [
            {"check": "detected findings", "value": detected, "limit": allow, "verdict": verdict}
        ]
    bad = {"fail", "undefined"} | ({"undecided"} if undecided == "fail" else set())
    return {"passed": not any(c["verdict"] in bad for c in checks), "checks": checks}


def _check(found: dict[str, Finding], limit: str) -> dict[str, Any]:
    place, _, text = limit.rpartition("=")
    try:
        most = float(text)
    except ValueError:
        raise SpecError(f"--limit {limit!r}: expected ID=VALUE with a number.") from None
    if place not in found:
        hint = "List them with: evenhand show RUN --json -"
        raise SpecError(unknown("finding", place, found, where="--limit", hint=hint))
    finding = found[place]
    return {
        "check": place,
        "value": finding.value,
        "limit": most,
        "verdict": _verdict(finding, most),
    }


def _verdict(finding: Finding, most: float) -> str:
    """Compare the interval of |value - ideal| with the limit."""
    low, high, ideal = finding.low, finding.high, finding.ideal
    if finding.value != finding.value:
        return "undefined"
    if low != low or high != high:
        low = high = finding.value
    nearest = 0.0 if low <= ideal <= high else min(abs(low - ideal), abs(high - ideal))
    farthest = max(abs(low - ideal), abs(high - ideal))
    if farthest <= most:
        return "pass"
    return "fail" if nearest > most else "undecided"
