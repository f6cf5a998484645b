"""Agreement as data: what a word does to the words around it, by rules that a pack writes down.

Three kinds of rules cover what filled templates need:

    joins       what two words become when they meet (French de + Anne: d'Anne)
    particles   what follows a word by its last sound (은 after a consonant, 는 after a vowel)
    forms       what a term looks like in a place ({first.feminine}, {second.dative})

A slot names a term, a form of it and a particle: {first}, {first.feminine}, {first:은/는}.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import SpecError, unknown
from evenhand.systems import Unbounded, alarmed

HANGUL = range(0xAC00, 0xD7A4)
FINALS = 28
"""Korean syllables come in runs of 28, one per final consonant; the first has none."""
LIQUID = 8
"""The place of the final ㄹ in such a run."""
DIGITS = {
    "0": "consonant",
    "1": "liquid",
    "2": "vowel",
    "3": "consonant",
    "4": "vowel",
    "5": "vowel",
    "6": "consonant",
    "7": "liquid",
    "8": "liquid",
    "9": "vowel",
}
"""영 일 이 삼 사 오 육 칠 팔 구."""
_OUTSIDE = re.compile(r"[\W_]+$")
_LATIN = (
    (re.compile(r"l$"), "liquid"),
    (re.compile(r"(?:[mn]|ng)$"), "consonant"),
    (re.compile(r"[aeiouy](?:ck|[kptbc])$"), "consonant"),
)
"""Endings that Hangul writes as a final consonant; after all others a vowel is heard (마크)."""
_OPENS = re.compile(r"(^|[.?!…] |[¿¡«„“\"] ?)(?=\{)")
_CAPITAL = "\x00"


def last_sound(word: str) -> str:
    """Return the last sound of a word in Korean: "vowel", "consonant" or "liquid" (ㄹ).

    Digits are Sino-Korean numbers; Latin letters are read as Hangul writes foreign names (Karl is
    칼, Anton 안톤, Mark 마크, Jack 잭); brackets and quotes are not heard.

    >>> [last_sound(w) for w in ("지우", "서준", "하늘", "Anna", "Karl")]
    ['vowel', 'consonant', 'liquid', 'vowel', 'liquid']
    >>> [last_sound(w) for w in ("Mark", "Jack", "(서준)", "3")]
    ['vowel', 'consonant', 'consonant', 'consonant']
    """
    plain = _OUTSIDE.sub("", unicodedata.normalize("NFC", word)).lower()
    end = plain[-1:]
    if end and ord(end) in HANGUL:
        final = (ord(end) - HANGUL.start) % FINALS
        return "vowel" if not final else "liquid" if final == LIQUID else "consonant"
    if end in DIGITS:
        return DIGITS[end]
    bare = "".join(c for c in unicodedata.normalize("NFD", plain) if c.isascii())
    return next((sound for find, sound in _LATIN if find.search(bare)), "vowel")


@dataclass(frozen=True)
class Grammar:
    """The rules of one pack; `Grammar()` has none and leaves every text as it is.

    >>> french = Grammar(((re.compile(r"\\b([Dd])e (?=[AEIOUaeiou])"), r"\\1'"),))
    >>> french.filled("{first} est la sœur de {second}.", first={"": "Zoé"}, second={"": "Anne"})
    "Zoé est la sœur d'Anne."
    """

    joins: tuple[tuple[re.Pattern[str], str], ...] = ()
    particles: tuple[str, ...] = ()
    after_liquid: frozenset[str] = field(default_factory=frozenset)
    """Particles that take their vowel form after ㄹ too."""
    foreign: str = ""
    """The file of third-party joins, which run under a time limit; "" for our own."""

    def filled(self, pattern: str, **words: Mapping[str, str]) -> str:
        """Fill the slots of a pattern and make everything agree.

        Args:
            pattern: text with slots; one that opens a sentence takes a capital.
            words: per slot its forms; the form "" is what stands without a name.

        Raises:
            SpecError: a form or a particle that is not there.
        """
        marked = _OPENS.sub(rf"\1{_CAPITAL}", pattern)
        slots: dict[str, Any] = {name: _Slot(name, forms, self) for name, forms in words.items()}
        text = re.sub(rf"{_CAPITAL}(.?)", lambda m: m[1].upper(), marked.format(**slots))
        return self.agreed(text)

    def agreed(self, text: str) -> str:
        """Apply all joins to a text.

        Raises:
            SpecError: a join of somebody else does not end, or puts what it has not found.
        """
        if not self.foreign:
            return self._joined(text)
        try:
            with alarmed():
                return self._joined(text)
        except (Unbounded, re.error) as error:
            raise SpecError(
                f"{self.foreign}: a rule of joins cannot be used on {text!r} ({error})."
            ) from None

    def _joined(self, text: str) -> str:
        for find, put in self.joins:
            text = find.sub(put, text)
        return text

    def particle(self, word: str, pair: str) -> str:
        """Return the particle of a pair such as 은/는 after a word: after a consonant the first.

        >>> korean = Grammar(particles=("은/는", "으로/로"), after_liquid=frozenset({"으로/로"}))
        >>> [korean.particle("서울", p) for p in korean.particles]
        ['은', '로']
        """
        if pair not in self.particles:
            raise SpecError(unknown("particle", pair, self.particles, hint="See docs/languages.md"))
        closed, opened = pair.split("/")
        sound = last_sound(word)
        plain = sound == "vowel" or (sound == "liquid" and pair in self.after_liquid)
        return opened if plain else closed


class _Slot:
    """A term in a template: its usual form, its other forms, and what may follow it."""

    def __init__(self, name: str, forms: Mapping[str, str], grammar: Grammar, form: str = ""):
        self._name, self._forms, self._grammar, self._form = name, forms, grammar, form

    def __getattr__(self, form: str) -> _Slot:
        if form.startswith("_") or form not in self._forms:
            known = [f for f in self._forms if f]
            raise SpecError(unknown("form", form, known, where=f"{{{self._name}.{form}}}"))
        return _Slot(self._name, self._forms, self._grammar, form)

    def __format__(self, particle: str) -> str:
        if self._form not in self._forms:
            raise SpecError(f"{{{self._name}}}: there is no form {self._form!r}.")
        text = self._forms[self._form]
        return text + self._grammar.particle(text, particle) if particle else text
