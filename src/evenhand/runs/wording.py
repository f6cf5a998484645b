"""How numbers and findings are worded, the same in the report, viewer and terminal."""

from __future__ import annotations

import math

from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding


def defined(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def number(value: float | None, *, sign: bool = False) -> str:
    """Three digits that count; a dash for an undefined number.

    >>> number(0.0864896), number(-1.5), number(12345.6), number(0.00042, sign=True)
    ('0.086', '−1.500', '12,346', '+0.00042')
    """
    if not defined(value):
        return "–"
    assert value is not None
    size = abs(value)
    if size >= 1000:
        text = f"{size:,.0f}"
    elif size >= 100:
        text = f"{size:.1f}"
    elif size == 0:
        text = "0"
    elif size >= 0.01:
        text = f"{size:.3f}"
    else:
        text = f"{size:.2g}"
    mark = "−" if value < 0 else "+" if sign and value > 0 else ""
    return mark + text


def chance(value: float | None) -> str:
    """A p or q value; never 0.

    >>> chance(0.00002), chance(0.0312), chance(float("nan"))
    ('< 0.001', '0.031', '–')
    """
    if not defined(value):
        return "–"
    assert value is not None
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int, one: str, many: str = "") -> str:
    """A count with its noun.

    >>> count(1, "test"), count(1200, "test")
    ('1 test', '1,200 tests')
    """
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def interval_name(finding: Finding) -> str:
    """What the interval of a finding is called; that of one picked among many is wider.

    >>> interval_name(Finding("a/x", "a", "m", 0.1, "", level=0.98958))
    '99.0 % interval'
    """
    return f"{100 * finding.level:.{0 if finding.level == 0.95 else 1}f} % interval"


def subject(finding: Finding, card: MetricCard) -> str:
    """What a finding is about, without claiming anything.

    >>> about = Finding("u/gap/nurse", "u", "gap", 0.1, "", groups=("female", "male"),
    ...     attribute="nurse")
    >>> subject(about, MetricCard("gap", "measured gap"))
    'nurse (female / male)'
    """
    groups = " / ".join(map(str, finding.groups))
    about = finding.attribute or finding.id.rpartition("/")[2]
    if not groups:
        return f"{about}, {card.name}"
    return f"{about} ({groups})"
