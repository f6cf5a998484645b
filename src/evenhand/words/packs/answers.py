"""How answers are worded in the languages of the packs: not knowing, declining, denying.

Answers are read in every language at once: a Korean sentence matches no Spanish pattern, and who
reads an answer need not be told its language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from evenhand.errors import SpecError
from evenhand.words.packs.files import load_pack, packs

PROMPT = "{passage}\nQuestion: {question}\nAnswer:"
"""How a question is put as plain text where no pack says it otherwise."""
ENGLISH = "en"


@cache
def unknowns() -> tuple[str, ...]:
    """Answers that say that the text does not tell, in all languages."""
    known = (pack.part("answers").words("unknown") for pack in packs())
    return tuple(dict.fromkeys(wording for words in known for wording in words))


@cache
def pattern(name: str) -> re.Pattern[str]:
    """What answers of one kind hold (`open`, `declined`, `denied`), in all languages.

    >>> bool(pattern("open").search("알 수 없습니다.")), bool(pattern("open").search("민지입니다."))
    (True, False)
    """
    return re.compile("|".join(_patterns(name)) or r"(?!)", re.IGNORECASE)


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


def _patterns(name: str) -> Iterator[str]:
    for pack in packs():
        held = pack.part("answers")
        for text in held.words(name) if held.data.get(name) else ():
            try:
                re.compile(text)
            except re.error as error:
                raise SpecError(
                    f"{held.path}: {name}: {text!r} is not a regular expression ({error})."
                ) from None
            yield f"(?:{text})"
