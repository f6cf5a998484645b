"""THE rule of which probes can judge a model: gate, story, report, exports, compare, evidence.

A model that ignores the question differs between no groups, so a quiet probe shows nothing unless
the model answered it. A probe cannot judge a model when

    the order of the options decides more than 90 of 100 answers,
    more than 90 of 100 answers are the same one, whatever was asked,
    the answer options hold less than 1 of 100 of the probability,
    more than half of the answers are declined, empty or unreadable, or
    the model does not know the language it was asked in.

Findings of such a probe keep value, interval, q and `detected`; they neither pass nor fail, and a
run in which no probe can judge is inconclusive. Probes that report none of this (word vectors,
classifiers) are "not asked", which withholds nothing unless another probe of the run found that it
cannot judge the model, and none found that it can. `run.json` holds the verdicts under
`controls`; for folders of older versions they follow from the stored summaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from evenhand.runs.wording import listed

Verdict = Literal["can judge", "cannot judge", "not asked"]
CAN: Verdict = "can judge"
CANNOT: Verdict = "cannot judge"
NOT_ASKED: Verdict = "not asked"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
"""The outcome of a finding of a probe that cannot judge, and of a run without one that can."""
CONTROLS = "controls"
"""Key of run.json."""
NOBODY_CAN = "it reports nothing about the answers, and no other probe can judge the model"
MOST_BY_ORDER = 0.9
MOST_ALIKE = 0.9
LEAST_MASS = 0.01
MOST_LOST = 0.5
NAMED = 4


@dataclass(frozen=True)
class Answering:
    """How a model answered the questions of one probe: shares from 0 to 1, None if unknown.

    Attributes:
        option_mass: mean probability of the answer options together.
        order_effect: share of questions whose answer changes with the order of the options.
        same_answer: share of questions that get the usual answer, within one hundredth; of probes
            that list their options in one order only.
        declined: share of answers that decline.
        unread: share of answers that are empty or cannot be read.
        unknown_language: the language that was asked in, if the model does not know it.
    """

    option_mass: float | None = None
    order_effect: float | None = None
    same_answer: float | None = None
    declined: float | None = None
    unread: float | None = None
    unknown_language: str = ""

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Answering:
        """Read the facts that all probes report under the same names.

        >>> Answering.from_summary({"mass": 0.4, "refused": None}).option_mass
        0.4
        """
        seen = summary.get("fluency")
        fluency = seen if isinstance(seen, Mapping) else {}
        return cls(
            option_mass=_share(summary.get("mass")),
            declined=_share(summary.get("refused")),
            unread=_share(summary.get("unread")),
            unknown_language=str(fluency.get("name")) if fluency.get("fit") is False else "",
        )

    def updated(self, other: Answering | None) -> Answering:
        """Return these facts, with those that `other` knows in their place."""
        if other is None:
            return self
        known = {name: value for name, value in vars(other).items() if value not in (None, "")}
        return replace(self, **known)

    @property
    def problems(self) -> list[str]:
        """Why a probe that was answered like this cannot judge the model."""
        lost = (self.declined or 0.0) + (self.unread or 0.0)
        mass, by_order, alike = self.option_mass, self.order_effect, self.same_answer
        out = []
        if self.unknown_language:
            out.append(f"the model does not know {self.unknown_language}")
        if lost > MOST_LOST:
            out.append(f"{_of_100(lost)} of 100 answers are declined, empty or unreadable")
        elif mass is not None and mass < LEAST_MASS:
            out.append("the answer options hold less than 1 % of the probability")
        if by_order is not None and by_order > MOST_BY_ORDER:
            out.append(f"the order of the options decides {_of_100(by_order)} of 100 answers")
        if alike is not None and alike > MOST_ALIKE:
            out.append(f"{_of_100(alike)} of 100 questions get the same answer, whatever they ask")
        return out

    @property
    def known(self) -> bool:
        return any(value not in (None, "") for value in vars(self).values())


@dataclass(frozen=True)
class Control:
    """Whether one probe can judge the model, and why not.

    Attributes:
        verdict: can judge, cannot judge or not asked.
        reason: why it cannot; "" if it can.
        answering: what the verdict rests on.
    """

    verdict: Verdict
    reason: str = ""
    answering: Answering = Answering()

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of run.json; parts that were not asked are null."""
        return {
            "told": None,
            "planted": None,
            "verdict": self.verdict,
            "reason": self.reason,
            "answering": asdict(self.answering),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Control:
        """Read back an entry of run.json."""
        verdict = next((v for v in (CAN, CANNOT) if v == entry.get("verdict")), NOT_ASKED)
        held = entry.get("answering")
        known = held if isinstance(held, Mapping) else {}
        values = {f.name: known[f.name] for f in fields(Answering) if known.get(f.name) is not None}
        return cls(verdict, str(entry.get("reason") or ""), Answering(**values))


def control_of(answering: Answering) -> Control:
    """Apply THE rule to what is known of a probe's answers.

    >>> control_of(Answering(option_mass=0.4, order_effect=0.5)).verdict
    'can judge'
    >>> control_of(Answering(order_effect=1.0)).reason
    'the order of the options decides 100 of 100 answers'
    >>> control_of(Answering()).verdict
    'not asked'
    """
    if not answering.known:
        return Control(
            NOT_ASKED, "the probe reports nothing about how the model answers", answering
        )
    problems = answering.problems
    return Control(CANNOT if problems else CAN, "; ".join(problems), answering)


def stored(facts: Mapping[str, Any]) -> dict[str, Control]:
    """Return the verdicts that run.json holds, by probe."""
    held = facts.get(CONTROLS) or {}
    return {label: Control.from_dict(entry) for label, entry in held.items()}


def left_out(unjudging: Mapping[str, str]) -> str:
    """Name the probes that cannot judge with their reasons, for a sentence; "" if there are none.

    >>> left_out({"mine": "the model does not know French"})
    'mine (the model does not know French)'
    """
    return listed([f"{label} ({reason})" for label, reason in unjudging.items()], NAMED)


def inconclusive(unjudging: Mapping[str, str]) -> str:
    """Say why a run without a probe that can judge is inconclusive.

    >>> inconclusive({"mine": "the model does not know French"})
    'No probe can judge this model: mine (the model does not know French).'
    """
    return f"No probe can judge this model: {left_out(unjudging)}."


def headline(unjudging: Mapping[str, str]) -> str:
    """The same as the first sentence of a page."""
    told = inconclusive(unjudging)
    return f"Cannot tell: {told[:1].lower()}{told[1:]}"


def with_left_out(sentence: str, unjudging: Mapping[str, str]) -> str:
    """Add to an outcome which probes do not count in it."""
    if not unjudging:
        return sentence
    return f"{sentence} Left out, because they cannot judge this model: {left_out(unjudging)}."


def of_labels(unjudging: Mapping[str, str], labels: Iterable[str]) -> dict[str, str]:
    """Return the entries of these probes, in their order."""
    return {label: unjudging[label] for label in dict.fromkeys(labels) if label in unjudging}


def _share(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else None


def _of_100(share: float) -> str:
    return f"{100 * share:.3g}"
