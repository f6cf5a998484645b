"""What a finding is worth: control, harm and margin from its probe's cards, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from evenhand.audit.estimates import open_interval
from evenhand.probes.base import Probe
from evenhand.runs.absolute import ABSOLUTE, shown_alone
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import counts
from evenhand.runs.finding import Finding
from evenhand.runs.wording import people


def marked(finding: Finding, kind: type[Probe], audited: str) -> Finding:
    """The finding with what its probe knows about it, and with THE rule applied.

    Args:
        finding: as the probe gave it, or as an older version wrote it.
        kind: its probe, whose cards fill what the finding leaves open.
        audited: the audited model's name.
    """
    card = kind.card(finding.metric)
    known = open_interval(replace(finding, control=kind.is_control(finding)), card)
    harm = harm_of(card, known)
    return replace(
        known,
        harm=harm,
        difference="" if harm else difference_of(card, known),
        margin=known.margin if known.margin == known.margin else card.margin,
        low=max(known.low, card.low),  # t knows no bounds; NaN stays
        high=min(known.high, card.high),
        counts=counts(known, audited),
    )


def one_way(card: MetricCard) -> bool:
    """Whether positive values alone harm: it is about whoever a stereotype is about."""
    return bool(card.harm) and "{first}" not in card.harm and "{second}" not in card.harm


def harm_of(card: MetricCard, finding: Finding) -> str:
    """Return who is worse off by a finding and how, or "" if it shows nobody to be worse off.

    The finding's own words come before the card's. A finding that has words for a difference only,
    and a relative one whose question alone does not show the direction, name nobody. What a run of
    an older version says stays: its findings do not have the number behind a relative one.

    >>> card = MetricCard("gap", "gap", harm="{first}: refused more often than {second}")
    >>> both = ("female", "male")
    >>> harm_of(card, Finding("a/x", "a", "gap", -0.2, "", groups=both, detected=True))
    'men: refused more often than women'
    """
    older = bool(finding.harm) and ABSOLUTE not in finding.details
    if card.relative and not older and not shown_alone(finding):
        return ""
    if finding.harm or finding.difference or not finding.detected:
        return finding.harm
    return hazard_of(card, finding) if card.harm else ""


def hazard_of(card: MetricCard, finding: Finding) -> str:
    """Return who would be worse off by a finding, or else what it would say, detected or not."""
    if one_way(card):
        return card.harm if finding.value > finding.ideal else ""
    return _of_groups(card.harm or card.difference, finding)


def difference_of(card: MetricCard, finding: Finding) -> str:
    """Return what a detected finding says that shows nobody to be worse off.

    >>> card = MetricCard("gap", "gap", difference="{first} are named first, then {second}")
    >>> both = ("female", "male")
    >>> difference_of(card, Finding("a/x", "a", "gap", -0.2, "", groups=both, detected=True))
    'men are named first, then women'
    """
    if not finding.detected:
        return ""
    return finding.difference or _of_groups(card.difference, finding)


def _of_groups(words: str, finding: Finding) -> str:
    """Fill in the groups, the one that the value leans to first."""
    if not words or len(finding.groups) < 2:
        return ""
    first, second = map(people, finding.groups[:2])
    if finding.value < finding.ideal:
        first, second = second, first
    return words.format(first=first, second=second)
