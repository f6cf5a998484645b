"""What the formats share: safe names, safe text, standard errors."""

from __future__ import annotations

import json
import re
from datetime import datetime
from statistics import NormalDist
from typing import Any

from evenhand.report.build import homeless
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.runs.safe_text import readable
from evenhand.runs.wording import defined
from evenhand.strict import plain

WHOLE = 10**9


def safe(text: object, longest: int = WHOLE) -> str:
    """Text that any UTF-8 reader takes: no control or direction characters, no half ones."""
    return readable(str(text), longest)


def file_name(text: str) -> str:
    """A name for a file made of anything.

    >>> file_name("../../etc/passwd"), file_name("org/model v1")
    ('etc-passwd', 'org-model-v1')
    """
    short = re.sub(r"[^A-Za-z0-9._-]+", "-", homeless(text)).strip(".-")[:100]
    return short.lstrip(".-") or "model"


def for_others(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files that leave the machine: in text no path tells whose it was."""
    return {
        name: raw if b"\0" in raw else homeless(raw.decode()).encode()
        for name, raw in files.items()
    }


def as_json(value: Any) -> bytes:
    """Strict JSON; half characters as escapes."""
    return (json.dumps(plain(value), indent=1, ensure_ascii=True) + "\n").encode("ascii")


def standard_error(finding: Finding) -> float | None:
    """Its own, or from the width of its interval (normal approximation); None without either."""
    if defined(finding.error):
        return finding.error
    if not (defined(finding.low) and defined(finding.high)):
        return None
    return (finding.high - finding.low) / (2 * NormalDist().inv_cdf((1 + finding.level) / 2))


def distance(finding: Finding) -> tuple[float, float | None, float | None]:
    """|value - ideal| with its interval; the lower end is 0 when the interval holds the ideal."""
    value = abs(finding.value - finding.ideal)
    if not (defined(finding.low) and defined(finding.high)):
        return value, None, None
    ends = sorted(abs(end - finding.ideal) for end in (finding.low, finding.high))
    inside = finding.low <= finding.ideal <= finding.high
    return value, 0.0 if inside else ends[0], ends[1]


def finished_at(run: Run) -> float:
    """When the run ended, in seconds since 1970; 0 when unknown."""
    facts = run.facts
    try:
        return datetime.fromisoformat(str(facts.get("finished") or facts["started"])).timestamp()
    except (KeyError, ValueError):
        return 0.0


def version(run: Run) -> str:
    return str(run.facts.get("environment", {}).get("evenhand", "unknown"))


def details(finding: Finding) -> dict[str, str]:
    """What the formats have no field for, as text."""
    numbers = ("p", "q", "floor", "detectable", "coverage", "ideal")
    found = {k: repr(getattr(finding, k)) for k in numbers if defined(getattr(finding, k))}
    return {
        **found,
        "n": str(finding.n),
        "sentence": safe(finding.sentence, 2_000),
        "detected": {True: "yes", False: "no", None: "not a test"}[finding.detected],
        "counts": "yes" if finding.counts else "no",
        "groups": safe(", ".join(map(str, finding.groups)), 500),
        "attribute": safe(finding.attribute, 500),
        "method": safe(finding.method, 500),
        "as_published": "yes" if finding.as_published else "no",
    }
