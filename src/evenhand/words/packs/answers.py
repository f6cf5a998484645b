"""How answers are worded in the languages of the packs: not knowing, declining, denying.

Answers are read in every language at once: a Korean sentence matches no Spanish pattern, and who
reads an answer need not be told its language. Packs given by path are among them (`packs.own`).
"""

from __future__ import annotations

import re
from functools import cache

from evenhand.words.packs.files import load_pack, packs
from evenhand.words.packs.own import Wordings, adopted, wordings_of

PROMPT = "{passage}\nQuestion: {question}\nAnswer:"
"""How a question is put as plain text where no pack says it otherwise."""
ENGLISH = "en"


def unknowns() -> tuple[str, ...]:
    """Answers that say that the text does not tell, in all languages."""
    return _words("unknown", tuple(adopted().values()))


def pattern(name: str) -> re.Pattern[str]:
    """What answers of one kind hold (`open`, `declined`, `denied`), in all languages.

    >>> bool(pattern("open").search("알 수 없습니다.")), bool(pattern("open").search("민지입니다."))
    (True, False)
    """
    return _compiled(name, tuple(adopted().values()))


def wordings(language: str) -> tuple[str, ...]:
    """Ways of saying that it is not known in one language; () for English.

    >>> wordings("ko")[0], wordings("en")
    ('알 수 없음', ())
    """
    return () if language == ENGLISH else load_pack(language).part("answers").words("unknown")


def prompt(language: str) -> str:
    """How a passage and a question are put as plain text."""
    if language == ENGLISH:
        return PROMPT
    held = load_pack(language).part("answers")
    return held.text(held.data, "prompt")


@cache
def _compiled(name: str, own: tuple[Wordings, ...]) -> re.Pattern[str]:
    texts = (f"(?:{text})" for text in _words(name, own))
    return re.compile("|".join(texts) or r"(?!)", re.IGNORECASE)


@cache
def _words(name: str, own: tuple[Wordings, ...]) -> tuple[str, ...]:
    """One part of all packs, the installed ones first."""
    known = (*(wordings_of(pack.part("answers")) for pack in packs()), *own)
    return tuple(dict.fromkeys(text for wordings in known for text in dict(wordings)[name]))
