"""Gendered pronouns in English text: found, and rewritten with singular they.

A rewrite by rule, good enough for short third-person sentences. It says what it did nowhere by
itself; callers note it. A pronoun may refer to somebody else than the person in question.
"""

from __future__ import annotations

import re

_FORMS = {
    "she": "they",
    "he": "they",
    "him": "them",
    "his": "their",
    "hers": "theirs",
    "himself": "themselves",
    "herself": "themselves",
}
_GENDERED = re.compile(r"\b(she|he|her|hers|him|his|herself|himself)\b", re.IGNORECASE)
_VERBS = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "isn't": "aren't",
    "wasn't": "weren't",
    "hasn't": "haven't",
    "doesn't": "don't",
    "goes": "go",
}
_NO_VERB = frozenset("always sometimes this has his as us towards besides yes alas".split())
_AFTER_THEM = frozenset(
    """
    a an the and or but to for of in on at by with from as so that when while because if until
    after before about into out up down back away off over again too very home then there here
    this these those it now today how what why who where they i we you one two ten twenty
    """.split()
)
_SUBJECT = re.compile(
    r"\b(she|he)(['’](?:s|ll|d|ve))?(\s+(?:always|never|often|also|really|just))?"
    r"(\s+)([\w'’]+)",
    re.IGNORECASE,
)


def gendered(text: str) -> list[str]:
    """The gendered pronouns of a text, lower case, each once.

    >>> gendered("Tia told her friend that she won.")
    ['her', 'she']
    """
    return list(dict.fromkeys(m.group().lower() for m in _GENDERED.finditer(text)))


def neutralised(text: str) -> str:
    """The text with they, them, their in place of gendered pronouns, verbs made to agree.

    >>> neutralised("Tia said she was late, so her boss fired her.")
    'Tia said they were late, so their boss fired them.'
    >>> neutralised("He likes his dog, and he has himself to blame.")
    'They like their dog, and they have themselves to blame.'
    """
    return _GENDERED.sub(_other, _SUBJECT.sub(_agree, text))


def _agree(found: re.Match[str]) -> str:
    pronoun, short, adverb, space, verb = found.groups()
    they = _cased("they", pronoun)
    if short and short[1:] == "s":
        helper = "have" if verb.endswith(("ed", "en", "een")) else "are"
        return f"{they} {helper}{adverb or ''}{space}{verb}"
    plural = verb if short else _plural(verb)
    return f"{they}{short or ''}{adverb or ''}{space}{plural}"


def _plural(verb: str) -> str:
    if verb in _VERBS:
        return _VERBS[verb]
    if verb in _NO_VERB or not verb.endswith("s") or verb.endswith("ss") or len(verb) < 4:
        return verb
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("ches", "shes", "sses", "xes", "zes")):
        return verb[:-2]
    return verb[:-1]


def _other(found: re.Match[str]) -> str:
    word = found.group()
    low = word.lower()
    if low == "her":
        rest = re.match(r"\s+([A-Za-z']+)", found.string[found.end() :])
        owns = rest is not None and rest[1].lower() not in _AFTER_THEM
        return _cased("their" if owns else "them", word)
    if low == "his" and not re.match(r"\s+[A-Za-z]", found.string[found.end() :]):
        return _cased("theirs", word)
    return _cased(_FORMS[low], word)


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[0].isupper() else word
