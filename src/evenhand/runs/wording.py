"""How numbers and findings are worded, the same in the report, viewer and terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding

PEOPLE = {
    "female": "women",
    "male": "men",
    "woman": "women",
    "man": "men",
    "the others": "the others",
    "old": "old people",
    "young": "young people",
    "muslim": "Muslims",
    "christian": "Christians",
    "hindu": "Hindus",
    "buddhist": "Buddhists",
    "sikh": "Sikhs",
    "atheist": "atheists",
}
"""Groups of the packaged lexicons that are not called "X people"."""
ADJECTIVES = frozenset(
    "black white asian hispanic nonbinary jewish arab latino latina indigenous gay lesbian "
    "bisexual heterosexual transgender cisgender disabled able-bodied african european american "
    "native middle eastern".split()
)
LOWER = frozenset(
    "white nonbinary gay lesbian bisexual heterosexual transgender cisgender disabled able-bodied "
    "indigenous".split()
)


def people(group: str) -> str:
    """A group's name as a reader says it; names of groups that are not known stay.

    >>> [people(g) for g in ("female", "african_american_female", "black", "muslim", "male names")]
    ['women', 'African American women', 'Black people', 'Muslims', 'male names']
    >>> [people(g) for g in ("Black woman", "Asian", "old")]
    ['Black women', 'Asian people', 'old people']
    """
    plain = group.replace("_", " ")
    words = plain.lower().split(" ")
    *head, last = words
    if " ".join(words) in PEOPLE:
        return PEOPLE[" ".join(words)]
    if last in PEOPLE and set(head) <= ADJECTIVES:
        return " ".join([*(w if w in LOWER else w.capitalize() for w in head), PEOPLE[last]])
    if set(words) <= ADJECTIVES:
        return " ".join([*(w if w in LOWER else w.capitalize() for w in words), "people"])
    return plain


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a row, the first ones where they are many.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def sentence_case(text: str) -> str:
    """A first letter that is large, and the rest as it is."""
    return text[:1].upper() + text[1:]


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
