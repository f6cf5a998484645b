"""What probes of association tests share: which tests, and which of them are about people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.probes.base import Probe
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.word_effects import said
from evenhand.requests import Embed
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.estimate import Estimate
from evenhand.strict import record
from evenhand.words.lexicons import weat, weat_tests
from evenhand.words.lexicons.files import WORD_SET_LEXICONS


@dataclass(frozen=True, kw_only=True)
class SetsRow:
    """The effect size of one test, ideal 0; positive: x leans to a, y to b.

    Interval and p hold for target and attribute words like these; `p_words` permutes the targets
    and holds for these words only. `percentile` is the share of `n_random` random attribute sets
    with a smaller effect size, in percent; `random_alarms` of them had p <= 0.05.
    """

    test: str
    x_label: str
    y_label: str
    a_label: str
    b_label: str
    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    error: float = NAN
    freedom: float = NAN
    detectable: float = NAN
    p_words: float = NAN
    percentile: float = NAN
    n_random: int = 0
    random_alarms: int = 0


class WordTests(Probe):
    """Base of probes that put named association tests to a model that embeds."""

    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)

    @classmethod
    def is_control(cls, finding: Finding) -> bool:
        """Flowers and insects, say: tests whose lexicon names no side as social.

        >>> WordTests.is_control(Finding("seat/sent-weat1", "seat", "effect_size", 1.2, ""))
        True
        >>> WordTests.is_control(Finding("ceat/weat7", "ceat", "combined_effect_size", 1.2, ""))
        False
        """
        return social_side(finding.id.rpartition("/")[2]) == "none" or super().is_control(finding)


def social_side(name: str) -> str:
    """Return which side of a packaged test holds social groups, or "unknown" of another test.

    >>> social_side("sent-weat7"), social_side("mine")
    ('attributes', 'unknown')
    """
    test = name.removeprefix("sent-")
    return weat(test).social if test in weat_tests() else "unknown"


def people_are_targets(social: str) -> bool:
    """Whether the targets of a test are social groups; of a custom test that says nothing, yes."""
    return social in ("targets", "unknown")


def tested(
    row: Any,
    what: str,
    *,
    n: int,
    head: str,
    id: str,
    metric: str,
    social: str,
    **more: Any,
) -> Finding:
    """What is said of the measured row of one test.

    Args:
        row: a `SetsRow` with q, n, n_missing and reason.
        what: what the targets are ("words for").
        social: which side of the test holds social groups (`WordSets.social`).
    """
    found = Estimate(
        row.value,
        row.error,
        row.freedom,
        row.low,
        row.high,
        row.p,
        row.detectable,
        n,
        reason=row.reason or "",
    )
    labels = (row.x_label, row.y_label, row.a_label, row.b_label)
    told = said(found, row.test, what, labels, people_are_targets=people_are_targets(social))
    return claim(
        id,
        metric,
        found,
        sentence=f"{head}: {told['sentence']}",
        otherwise=told["otherwise"] and f"{head}: {told['otherwise']}",
        q=row.q,
        harm=told.get("harm", ""),
        difference=told.get("difference", ""),
        coverage=row.n / (row.n + row.n_missing),
        groups=labels[:2],
        attribute=f"{row.a_label} / {row.b_label}",
        details={k: v for k, v in record(row).items() if k != "reason"},
        **more,
    )


def lexicons_of(tests: Iterable[str]) -> list[str]:
    """The lexicons that hold these tests.

    >>> lexicons_of(["weat6", "weat7"])
    ['weat']
    """
    wanted = set(tests)
    return [name for name in WORD_SET_LEXICONS if wanted & set(weat_tests(name))]
