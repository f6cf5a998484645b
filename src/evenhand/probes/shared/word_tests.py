"""What probes of association tests share: which tests, and which of them are about people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from evenhand.probes.base import Probe
from evenhand.requests import Embed
from evenhand.runs.finding import NAN, Finding
from evenhand.words.lexicons import weat, weat_tests
from evenhand.words.lexicons.word_sets import WORD_SET_LEXICONS


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
        test = finding.id.rpartition("/")[2].removeprefix("sent-")
        packaged = test in weat_tests() and weat(test).social == "none"
        return packaged or super().is_control(finding)


def lexicons_of(tests: Iterable[str]) -> list[str]:
    """The lexicons that hold these tests.

    >>> lexicons_of(["weat6", "weat7"])
    ['weat']
    """
    wanted = set(tests)
    return [name for name in WORD_SET_LEXICONS if wanted & set(weat_tests(name))]
