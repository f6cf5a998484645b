"""What probes of association tests share: which tests, and which of them are about people."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evenhand.probes.base import Probe
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.words.lexicons import weat, weat_tests
from evenhand.words.lexicons.word_sets import WORD_SET_LEXICONS


class WordTests(Probe):
    """Base of probes that put named association tests to a model that embeds."""

    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)

    tests: tuple[str, ...] = ()
    """Names of packaged tests, or one file with word lists x, y, a, b per test."""
    max_missing: float = Field(0.2, ge=0, le=1)
    """The share of words that a set may lack."""

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

    def lexicons(self) -> list[str]:
        wanted = set(self.tests)
        return [name for name in WORD_SET_LEXICONS if wanted & set(weat_tests(name))]
