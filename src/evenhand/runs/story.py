"""What a run says on its first screen, before it is laid out: report, viewer and terminal share it.

Four questions come first. Of an audit: may it ship, who is worse off, how far to trust this, what
next. Each kind of run tells its own story (`RunKind.story`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from evenhand.runs.card import MetricCard
from evenhand.runs.controls import CANNOT_TELL
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.harms import Harmed
from evenhand.runs.wording import count, defined, listed, number, sentence_case

QUESTIONS = ("May it ship?", "Who is worse off", "How far to trust this", "What next?")
LEGEND = (
    "In brackets: where the true size lies, in 95 of 100 such cases or more. Of all that is listed "
    "here, about {rate} of 100 or fewer should be due to chance. A margin is the size that "
    "matters, and a harm reaches it when its brackets do."
)
DIFFERING = "Differences that show nobody to be worse off"
UNSEEN = "Not found, and what would have been seen in 80 of 100 such runs"


@dataclass(frozen=True)
class Verdict:
    """What the tests of one model came to; method checks are left out of the counts."""

    model: str
    what: str
    audited: bool
    tests: int
    detected: tuple[Finding, ...]
    inconclusive: int = 0
    """Further tests, of probes that cannot judge the model."""

    @property
    def sentence(self) -> str:
        if self.inconclusive and not self.tests:
            return (
                f"Cannot tell: all {count(self.inconclusive, 'test')} of {self.model} are of "
                f"probes that cannot judge it."
            )
        more = ""
        if self.inconclusive:
            more = f" {count(self.inconclusive, 'more test')} cannot be judged."
        if not self.tests:
            return f"Nothing was tested on {self.model}."
        if not self.detected:
            return (
                f"No difference between groups was detected in {self.model} "
                f"({count(self.tests, 'test')}).{more}"
            )
        return (
            f"Yes, in {len(self.detected):,} of {count(self.tests, 'test')}: {self.model} treats "
            f"groups differently there.{more}"
        )


@dataclass(frozen=True)
class Quiet:
    """Tests of one probe and metric without a detection."""

    title: str
    card: MetricCard
    findings: tuple[Finding, ...]
    smallest: float
    largest: float

    @property
    def could(self) -> str:
        """The effect that would have been seen in 80 of 100 cases."""
        if not defined(self.largest):
            return "It is not known how large an effect this run could have seen."
        finest = ""
        if number(self.smallest) != number(self.largest):
            finest = f" (the finest test: {number(self.smallest)})"
        return (
            f"A true {self.card.name} of {number(self.largest)} or more{finest} would "
            f"have been seen in 80 of 100 such runs; a smaller one may have been missed."
        )

    @property
    def brief(self) -> str:
        """What it was about, and the size that would have been seen, as a person pictures it."""
        about = list(dict.fromkeys(f.attribute for f in self.findings if f.attribute))
        groups = {f.groups for f in self.findings}
        pairs = f"; {count(len(groups), 'comparison')} of groups" if len(groups) > 1 else ""
        seen = "the size is not known"
        widest = max(self.card.high - self.card.ideal, self.card.ideal - self.card.low)
        if self.smallest > widest:
            seen = "nothing of any size for certain; more items are needed"
        elif defined(self.largest):
            most = self.smallest if self.largest > widest else self.largest
            seen = f"{self.card.scale.format(size=self.card.pictured(most))} or more"
            seen += " in the finest test" if self.largest > widest else ""
        return f"{sentence_case(self.card.name)} ({listed(about)}{pairs}): {seen}."


@dataclass(frozen=True)
class Place:
    """Where differences were found, by probe; without tests only a remark."""

    title: str
    hits: int = 0
    tests: int = 0
    about: str = ""

    @property
    def sentence(self) -> str:
        if not self.tests:
            return self.title
        about = f" {self.about}." if self.about else ""
        return f"{self.hits} of {self.tests}: {self.title}{about}"


@dataclass(frozen=True)
class Step:
    """Something to do next."""

    why: str
    command: str


@dataclass(frozen=True)
class Story:
    """The first screen of a run."""

    title: str
    model: str
    problem: str
    clearest: str
    where: tuple[Place, ...]
    sure: tuple[str, ...]
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]
    strongest: tuple[Finding, ...]
    quiet: tuple[Quiet, ...]
    undefined: tuple[Finding, ...]
    rate: float
    controls: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[str, ...] = QUESTIONS
    noun: str = "difference"
    kind: str = "bias audit"
    intro: str = (
        "Probes measure on different scales, so the list takes the strongest of each probe in turn."
    )
    beside: str = "About the whole model"
    asked: tuple[str, ...] = ()
    """How the model was asked."""
    rated: bool = True
    """Whether what is listed was detected at the false-discovery rate."""
    harmed: tuple[Harmed, ...] = ()
    """Who is worse off: one line per harm and group, the gravest first."""
    differing: tuple[Harmed, ...] = ()
    """What differs without showing that anybody is worse off, the gravest first."""
    undirected: str = ""
    """Other differences, by name."""
    outcome: str = ""
    """Of the gate under its default policy; empty where runs of this kind have none."""
    exact: tuple[str, ...] = ()
    """What a statistician is told beside `sure`."""
    cannot_judge: Mapping[str, str] = field(default_factory=dict)
    """Probes that cannot judge the model, with the reason."""
    inconclusive: tuple[Finding, ...] = ()
    """Findings of these probes: neither passed nor failed."""

    @property
    def nobody(self) -> str:
        """What is said where no harm is listed."""
        if self.outcome == CANNOT_TELL:
            return "Cannot tell: no probe can judge this model."
        if self.cannot_judge:
            return "Nobody was found to be worse off by the probes that can judge this model."
        return "Nobody was found to be worse off."

    @property
    def nothing(self) -> str:
        """What is said where no detected finding is listed."""
        if self.outcome == CANNOT_TELL:
            return "no probe can judge this model"
        return f"no {self.noun} was detected"

    def standing(self, finding: Finding) -> str:
        """Return why a finding is inconclusive; "" if its probe can judge the model."""
        reason = self.cannot_judge.get(finding.probe, "")
        return f"Cannot tell: {reason}." if reason else ""

    @property
    def unseen(self) -> tuple[Quiet, ...]:
        """What was not found, one measure of each probe in turn."""
        probes: dict[str, list[Quiet]] = {}
        for part in self.quiet:
            probes.setdefault(part.title, []).append(part)
        turns = zip_longest(*probes.values())
        return tuple(part for turn in turns for part in turn if part is not None)

    @property
    def legend(self) -> str:
        """How to read the lines on harm."""
        listed_ = self.harmed or self.differing
        return LEGEND.format(rate=f"{100 * self.rate:.3g}") if listed_ else ""

    @property
    def alarming(self) -> bool:
        """Whether something stands against the audited model: by the gate, where there is one."""
        if self.outcome:
            return self.outcome != "passed"
        return any(f.counts for f in self.strongest)


def audited_name(facts: Mapping[str, Any]) -> str:
    """The audited model as findings call it: its name, where a folder or file was given."""
    given = str(facts["work"]["model"])
    return str(facts.get("models", {}).get(given, {}).get("name", given))


def rate_of(facts: Mapping[str, Any]) -> float:
    """The false-discovery rate of a run: the one that its suite sets, for verdicts and words."""
    return float(facts["work"]["suite"].get("false_discovery_rate", 0.05))


def quiet_parts(
    facts: Mapping[str, Any],
    findings: Iterable[Finding],
    card: Callable[[Mapping[str, Any], Finding], MetricCard],
) -> tuple[Quiet, ...]:
    """Tests without a detection by probe and metric, the least unlikely first."""
    parts: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.detected is False:
            parts.setdefault((finding.probe, finding.metric), []).append(finding)
    out = []
    for (probe, _), rows in parts.items():
        seen = [f.detectable for f in rows if defined(f.detectable)]
        title = str(facts["probes"].get(probe, {}).get("title") or probe)
        rows.sort(key=lambda f: (f.q if defined(f.q) else 1.0, f.id))
        ends = min(seen, default=NAN), max(seen, default=NAN)
        out.append(Quiet(title, card(facts, rows[0]), tuple(rows), *ends))
    return tuple(out)
