"""Indefinite articles by sound: "an hour", "a European", "an X-ray", "an MBA", "a UFO".

English has no rule for every word. What follows knows how letters and numbers are read aloud, which
words begin with a silent h, and which vowel letters begin with the sound of y or w.
"""

from __future__ import annotations

import re
import unicodedata

VOWELS = ("a", "e", "i", "o", "u")
LETTERS_WITH_VOWEL_SOUND = frozenset("AEFHILMNORSX")
"""Letters whose names begin with a vowel: "an F", "an X-ray"; but "a U-turn"."""

_YOU_OR_WON = re.compile(
    r"eu|ew|oui|one(?:\b|s\b|self|ness)|once\b|u[iy]|uk|ubiq|uga|ufo|uly|unanim|unesco"
    r"|uni(?!n|m|d(?!ir)|ss|ll|ron|gno)|ur[aeiou]|us[aeiu]|ut[aeio]|uv[aeu]"
)
_SILENT_H = re.compile(r"honest|honou?r|hour(?!i\b)|heir")
_WORD_READ_ALOUD = re.compile(r"(?=.*[AEIOU])[A-Z]{4,}")
_INDEFINITE = re.compile(r"\b([Aa]n?)( +)(?=[\"'“‘(]?(\w+))")
_OPENS = re.compile(r"(?:^|[.?!:] +|[\"“‘(\t\n])$")


def article(word: str) -> str:
    """Return "a" or "an", by sound.

    >>> [article(word) for word in ("Asian", "European", "Honduran", "Uzbek", "honest")]
    ['an', 'a', 'a', 'an', 'an']
    >>> [article(word) for word in ("X-ray", "MBA", "NASA", "UFO", "8-year-old", "one-time")]
    ['an', 'an', 'a', 'a', 'an', 'a']
    """
    spelt = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    found = re.match(r"\w+", spelt)
    head = found[0] if found else ""
    if head[:1].isdigit():
        return "an" if re.match(r"8|1[18](?!\d)", spelt) else "a"
    letters = head.rstrip("s0123456789")
    if letters.isupper() and not _WORD_READ_ALOUD.fullmatch(letters):
        return "an" if letters[0] in LETTERS_WITH_VOWEL_SOUND else "a"
    lower = head.lower()
    if lower.startswith(VOWELS):
        return "a" if _YOU_OR_WON.match(lower) else "an"
    return "an" if _SILENT_H.match(lower) or re.match(r"y[^aeiou]", lower) else "a"


def agreed(text: str) -> str:
    """The text with every "a" and "an" as the sound of the next word wants it.

    A capital A inside a sentence is a letter, not an article.

    >>> agreed("A Asian man met an European man and took vitamin A at a honest place.")
    'An Asian man met a European man and took vitamin A at an honest place.'
    """

    def right(found: re.Match[str]) -> str:
        if found[1][0] == "A" and not _OPENS.search(text[: found.start()]):
            return found[0]
        word = article(found[3])
        return (word.capitalize() if found[1][0] == "A" else word) + found[2]

    return _INDEFINITE.sub(right, text)
