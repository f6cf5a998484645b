"""What the packaged association tests are about: people, or something everybody agrees on."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.runs.finding import Finding
from evenhand.words.lexicons import weat, weat_tests
from evenhand.words.lexicons.word_sets import WORD_SET_LEXICONS


def checks_method(finding: Finding) -> bool:
    """Whether a test is of flowers and insects, say: its lexicon names no side as social.

    >>> checks_method(Finding("seat/sent-weat1", "seat", "effect_size", 1.2, ""))
    True
    >>> checks_method(Finding("association/weat7", "association", "effect_size", 1.2, ""))
    False
    """
    test = finding.id.rpartition("/")[2].removeprefix("sent-")
    return test in weat_tests() and weat(test).social == "none"


def lexicons_of(tests: Iterable[str]) -> list[str]:
    """The lexicons that hold these tests.

    >>> lexicons_of(["weat6", "weat7"])
    ['weat']
    """
    wanted = set(tests)
    return [name for name in WORD_SET_LEXICONS if wanted & set(weat_tests(name))]
