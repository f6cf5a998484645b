"""What a check of a pack says, and the words by which text left in English is known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from evenhand.errors import SpecError
from evenhand.words.lexicons.files import load
from evenhand.words.packs import Pack

QUESTIONS = "questions.toml"
MASK = "[MASK]"
LETTERS = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(
    "the who was which they with she he and of never people woman man his her is are from this "
    "that not could has have were been at by for".split()
)
"""English words that a text left in English can hardly do without."""
ENGLISH_PEOPLE = frozenset(
    "german french polish moroccan chinese nigerian mexican american christian muslim jewish "
    "buddhist hindu atheist black white arab asian latin".split()
)
"""English words for the people whom packs ask about."""
ENGLISH_FRAME = frozenset({"question", "answer", "passage", "context"})
"""English words of a prompt."""
_SHORT = 4
"""Shorter words are alike in many languages by chance."""


@dataclass(frozen=True)
class Fault:
    """Something wrong in a pack: which file and row, of which kind, and the text it is in."""

    file: str
    where: str
    kind: str
    says: str
    text: str = ""

    def __str__(self) -> str:
        shown = f": {self.text}" if self.text else ""
        return f"{self.file}, {self.where}: {self.kind}: {self.says}{shown}"


def words_of(text: str) -> list[str]:
    """Runs of letters, in lower case."""
    return [word.casefold() for word in LETTERS.findall(text)]


def own_words(pack: Pack) -> frozenset[str]:
    """Words that look English and are the language's own (`also_words`)."""
    return frozenset(str(word).casefold() for word in pack.head.data.get("also_words", ()))


def left_in_english(text: str, name: str, own: frozenset[str]) -> str:
    """The first word of a wording that stands in its English name too, or names people; "".

    >>> left_in_english("engineer", "engineer", frozenset())
    'engineer'
    >>> left_in_english("ingeniero", "engineer", frozenset())
    ''
    """
    known = {w for w in words_of(name) if len(w) >= _SHORT} | ENGLISH_PEOPLE | ENGLISH
    return next((w for w in words_of(text) if w in known - own), "")


@cache
def english_kin() -> frozenset[str]:
    """English words for men and women: what is likeliest to stay behind in a list of pairs."""
    rows = load("gender_terms").rows("terms")
    kin = (str(row.get(key, "")) for row in rows for key in ("masculine", "feminine"))
    return frozenset(w.casefold() for w in kin if len(w) >= _SHORT) | {"man", "boy", "son"}


def repeated(terms: Iterable[str]) -> Iterator[str]:
    """Terms that stand more than once, whatever their capitals."""
    counted = Counter(term.strip().casefold() for term in terms)
    yield from (term for term, count in counted.items() if count > 1)


def script_of(pack: Pack) -> re.Pattern[str] | None:
    """What is no letter of the language; None where the pack does not say."""
    letters = str(pack.head.data.get("letters", ""))
    return regular(pack, f"[^{letters}]") if letters else None


def regular(pack: Pack, text: str) -> re.Pattern[str]:
    """A regular expression of a pack's head."""
    try:
        return re.compile(text)
    except re.error as error:
        raise SpecError(
            f"{pack.head.path}: {text!r} is not a regular expression ({error})."
        ) from None


def foreign(text: str, script: re.Pattern[str] | None) -> str:
    """The first word with letters of another script; ""."""
    if script is None:
        return ""
    return next((word for word in LETTERS.findall(text) if script.search(word)), "")


def wordings(row: Mapping[str, Any], forms: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What a row gives per form: one word for both questions, or the asserted and the negated."""
    given = {form: row[form] for form in forms if form in row}
    return {form: (v,) if isinstance(v, str) else tuple(map(str, v)) for form, v in given.items()}
