"""Who is worse off: the detected findings of one harm and group told in one line.

A detected difference that shows nobody to be worse off becomes a line without a `who`.

A reader without statistics wants the group, the harm and the size, not forty lines that differ in
one word each. Findings with the same harm to the same group, of the same metric, become one line
that names what they are about, with whom the group is compared, and spans their sizes; every number
in it is that of a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from evenhand.runs.absolute import absolute_of
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import defined, listed, people, sentence_case

DOUBTED = "*"
"""Behind a size that is near the limit of detection."""
OTHERS = "\x00"
"""Stands for those with whom somebody is compared, while lines are put together."""
COMPARED = 4


@dataclass(frozen=True)
class Harmed:
    """One harm to one group.

    Attributes:
        who, how: the group that is worse off, and in which way; without a `who`, what differs.
        findings: those that show it, the largest first.
        card: of their metric.
        reaching: how many of them reach their margin.
    """

    who: str
    how: str
    findings: tuple[Finding, ...]
    card: MetricCard
    reaching: int

    @property
    def head(self) -> str:
        return sentence_case(self.who)

    @property
    def about(self) -> str:
        return listed(list(dict.fromkeys(f.attribute for f in self.findings if f.attribute)))

    @property
    def size(self) -> str:
        """The sizes of the findings on the scale that can be pictured: one, or from the smallest
        to the largest; marked where one of them is near the limit of detection."""
        sizes = sorted(abs(f.value - f.ideal) for f in self.findings)
        ends = dict.fromkeys(self.card.pictured(size) for size in (sizes[0], sizes[-1]))
        return " to ".join(ends) + (DOUBTED if any(f.caution for f in self.findings) else "")

    @property
    def interval(self) -> str:
        """From the lowest to the highest end of their intervals, on the same scale."""
        ends = [end for f in self.findings if defined(f.low) for end in _ends(f)]
        if not ends:
            return ""
        low, high = (self.card.pictured(end) for end in (min(ends), max(ends)))
        return f"[{low}, {high}]"

    @property
    def text(self) -> str:
        """What stands behind the name of the group."""
        alone = self._alone if self.who else {}
        form = self.card.told_absolute if alone else self.card.told
        form = form if self.about else form.replace(" ({about})", "")
        told = form.format(about=self.about, size=self.size, **alone)
        how = f": {self.how}" if self.who and self.how else sentence_case(self.how)
        return f"{how}{told} {self.interval}".rstrip() + "."

    @property
    def _alone(self) -> dict[str, str]:
        """The sizes at the questions alone, of findings that compare them with others."""
        numbers = [absolute_of(f) for f in self.findings]
        if not (self.card.told_absolute and all(map(defined, sum(numbers, ())))):
            return {}
        sizes = sorted(abs(value) for value, _, _ in numbers)
        ends = [abs(end) for _, *both in numbers for end in both]
        span = dict.fromkeys(self.card.pictured(size) for size in (sizes[0], sizes[-1]))
        low, high = (self.card.pictured(end) for end in (min(ends), max(ends)))
        return {"absolute": " to ".join(span), "absolute_interval": f"[{low}, {high}]"}

    @property
    def verdict(self) -> str:
        """The size against the margin."""
        margin = self.findings[0].margin
        if not defined(margin):
            return "No margin is set."
        scale = self.card.scale.format(size=f"{self.card.on_scale(margin):.3g}")
        number, all_of_them = len(self.findings), self.reaching == len(self.findings)
        if not self.reaching:
            return f"Within the margin ({scale})."
        some = "" if all_of_them else f", {self.reaching} of {number}"
        return f"Reaches the margin ({scale}){some}."

    @property
    def sentence(self) -> str:
        return f"{self.head}{self.text} {self.verdict}"

    @property
    def rank(self) -> tuple[bool, float]:
        """Harms that reach their margin first, then by size in units of the margin, since probes
        measure on different scales."""
        largest = abs(self.findings[0].value - self.findings[0].ideal)
        margin = self.findings[0].margin
        return not self.reaching, -(largest / margin if margin > 0 else 0.0)


def gravity(finding: Finding) -> tuple[int, float, float]:
    """Sort findings: harms found, other differences, nothing found, no test; then by size in
    units of the margin, and by q.

    >>> found = Finding("a/x", "a", "m", 0.2, "", margin=0.1, detected=True, harm="h", q=0.01)
    >>> gravity(found) < gravity(Finding("a/y", "a", "m", 9.0, "", detected=False))
    True
    """
    kind = 3 if finding.detected is None else 2 if not finding.detected else not finding.harm
    size = abs(finding.value - finding.ideal) / finding.margin if finding.margin > 0 else 0.0
    return int(kind), -size if defined(size) else 0.0, finding.q if defined(finding.q) else 2.0


def _other(who: str, groups: Sequence[str]) -> str:
    """Return the people that those who are worse off are compared with.

    >>> _other("speakers of AAE", ("AAE", "SAE")), _other("women", ("male", "female"))
    ('SAE', 'men')
    """
    named = map(people, groups)
    return next((p for p in named if not re.search(rf"\b{re.escape(p)}\b", who)), "")


def _ends(finding: Finding) -> tuple[float, float]:
    """The interval seen in the direction of the value."""
    low, high = finding.low - finding.ideal, finding.high - finding.ideal
    return (low, high) if finding.value >= finding.ideal else (-high, -low)


def folded(
    findings: Sequence[Finding], card: Callable[[Finding], MetricCard], failed: Collection[str]
) -> tuple[Harmed, ...]:
    """Detected findings that say who is worse off or what differs, one line each, gravest first.

    Lines without a `who` are those of differences that show nobody to be worse off.

    Args:
        findings: those that count.
        card: the metric card of a finding.
        failed: ids of those that reach their margin.
    """
    parts: dict[tuple[str, ...], list[Finding]] = {}
    others: dict[tuple[str, ...], dict[str, None]] = {}
    for finding in findings:
        if finding.detected and (finding.harm or finding.difference):
            who, _, how = finding.harm.partition(": ")
            how = how if finding.harm else finding.difference
            other = _other(who, finding.groups) if finding.harm else ""
            if other:
                how = re.sub(rf"\b{re.escape(other)}\b", OTHERS, how)
            key: tuple[str, ...] = (finding.probe, finding.metric, who, how)
            parts.setdefault(key, []).append(finding)
            others.setdefault(key, {})[other] = None
    out = []
    for key, rows in parts.items():
        how = key[-1].replace(OTHERS, listed(list(others[key]), COMPARED))
        rows.sort(key=lambda f: (-abs(f.value - f.ideal), f.id))
        reaching = sum(f.id in failed for f in rows)
        out.append(Harmed(key[2], how, tuple(rows), card(rows[0]), reaching))
    return tuple(sorted(out, key=lambda h: h.rank))
