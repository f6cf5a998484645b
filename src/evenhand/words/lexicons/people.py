"""Words about people: groups and their names, matched contexts, gendered terms, pronouns, articles.

Indefinite articles follow the sound: "an hour", "a European", "an X-ray", "an MBA", "a UFO". As
English has no rule for every word, the code knows how letters and numbers are read aloud, which
words begin with a silent h, and which vowel letters begin with the sound of y or w.

Gendered pronouns are found and rewritten with singular they by rule, well enough for short
third-person sentences. Callers note the rewrite. A pronoun may refer to another person than the one
in question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon, load

NAME_LEXICONS = ("sodapop_names", "unqover_names")
LIST_GROUPS = "List them with: evenhand ls groups"


@dataclass(frozen=True, slots=True)
class Group:
    """A social group, the terms that stand for it, and its value on each axis.

    >>> Group("mine", ("Ada", "Grace"), {"gender": "female"}, "my own list").terms
    ('Ada', 'Grace')
    """

    name: str
    terms: tuple[str, ...]
    axis: Mapping[str, str] = field(hash=False)
    source: str = field(repr=False)


def groups(
    names: Sequence[str] | None = None,
    *,
    axis: Mapping[str, str] | None = None,
    extra: Sequence[str | Path] = (),
) -> dict[str, Group]:
    """Return groups by name: all of them, those asked for, or those on a place of the axes.

    A name is a group ("asian_female") or an axis value ("female", "hispanic"), which stands for
    the union of all groups with that value. `axis` keeps groups that have all the values given.
    `extra` adds lexicon files of kind "names".

    >>> len(groups(["hispanic_male"])["hispanic_male"].terms)
    30
    >>> sorted(groups(axis={"race": "asian"}))
    ['asian_female', 'asian_male']
    >>> groups(["asian"])["asian"].axis["race"], len(groups(["asian"])["asian"].terms)
    ('asian', 60)
    >>> groups(["asain_female"])
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown group 'asain_female'. \
Did you mean 'asian_female' or 'asian_male'? List them with: evenhand ls groups
    """
    known = _all_groups(extra)
    chosen = known if names is None else {name: _resolve(name, known) for name in names}
    wanted = dict(axis or {})
    _check_axis(wanted, known.values())
    return {
        name: group
        for name, group in chosen.items()
        if all(group.axis.get(key) == value for key, value in wanted.items())
    }


def names_of(
    names: Sequence[str], most: int | None, lexicon: str | None = None
) -> list[tuple[str, Group]]:
    """Return the first `most` terms of two groups or more, each with its group.

    >>> [(term, group.name) for term, group in names_of(["asian_female", "female"], 1)]
    [('Tenzin', 'asian_female'), ('Amanda', 'female')]
    """
    found = groups(names, extra=(lexicon,) if lexicon else ())
    if len(found) < 2:
        raise SpecError(f"groups: {tuple(names)!r} is one group; give two or more.")
    return [(term, group) for group in found.values() for term in group.terms[:most]]


def union(name: str, members: Iterable[Group]) -> Group:
    """Join groups into one: terms once each, in order, and the axis values all members share.

    >>> women = union("women", groups(axis={"gender": "female"}).values())
    >>> dict(women.axis), "Mary" in women.terms, "Latoya" in women.terms
    ({'gender': 'female'}, True, True)
    """
    parts = list(members)
    if not parts:
        raise SpecError(f"group {name!r} would be a union of nothing. {LIST_GROUPS}")
    terms = dict.fromkeys(term for part in parts for term in part.terms)
    shared = set.intersection(*(set(part.axis.items()) for part in parts))
    axis = {key: value for key, value in parts[0].axis.items() if (key, value) in shared}
    sources = dict.fromkeys(part.source for part in parts)
    return Group(name, tuple(terms), MappingProxyType(axis), " | ".join(sources))


def _all_groups(extra: Sequence[str | Path]) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for name in (*NAME_LEXICONS, *extra):
        lexicon = load(name)
        for group in _groups_of(lexicon):
            if group.name in found:
                raise SpecError(f"{lexicon.path}: group {group.name!r} already exists.")
            found[group.name] = group
    return found


def _groups_of(lexicon: Lexicon) -> Iterator[Group]:
    for name in lexicon.table("groups"):
        terms = lexicon.words("groups", name, "terms")
        axis = lexicon.table("groups", name, "axis")
        if not terms:
            raise SpecError(f"{lexicon.path}: group {name!r} has no terms.")
        if not all(isinstance(value, str) for value in axis.values()):
            raise SpecError(f"{lexicon.path}: the axis of group {name!r} takes strings only.")
        yield Group(name, terms, axis, lexicon.source)


def _resolve(name: str, known: Mapping[str, Group]) -> Group:
    if name in known:
        return known[name]
    members = [group for group in known.values() if name in group.axis.values()]
    if not members:
        values = {value for group in known.values() for value in group.axis.values()}
        raise SpecError(unknown("group", name, {*known, *values}, hint=LIST_GROUPS))
    return union(name, members)


def _check_axis(wanted: Mapping[str, str], known: Iterable[Group]) -> None:
    places = {(key, value) for group in known for key, value in group.axis.items()}
    for key, value in wanted.items():
        if key not in {axis for axis, _ in places}:
            raise SpecError(unknown("axis", key, {axis for axis, _ in places}, hint=LIST_GROUPS))
        if (key, value) not in places:
            values = {at for axis, at in places if axis == key}
            raise SpecError(unknown(f"value of axis {key!r}", value, values, hint=LIST_GROUPS))


@dataclass(frozen=True, slots=True)
class ContextPair:
    """Two contexts that differ only in the term of a group.

    >>> context_pairs("gender")[0].context_a
    'The woman worked as'
    """

    axis: str
    prompt: str
    group_a: str
    group_b: str
    term_a: str
    term_b: str

    @property
    def context_a(self) -> str:
        """The prompt with the first group's term."""
        return self.prompt.replace("{person}", self.term_a)

    @property
    def context_b(self) -> str:
        """The prompt with the second group's term."""
        return self.prompt.replace("{person}", self.term_b)


@dataclass(frozen=True, slots=True)
class GenderTerm:
    """Matched gendered terms. An empty `neutral` means that English has no settled word.

    >>> GenderTerm("man", "woman", "person", "noun, singular", "Plain swap.").neutral
    'person'
    """

    masculine: str
    feminine: str
    neutral: str
    part: str
    note: str
    ambiguous: bool = False


def context_pairs(
    axis: str | None = None, *, lexicon: str | Path = "contexts"
) -> tuple[ContextPair, ...]:
    """Return the counterfactual pairs of one axis or of all: every two groups, matched terms.

    >>> len(context_pairs()), len(context_pairs("religion"))
    (40, 12)
    >>> context_pairs("names")[1].context_b
    'Michael worked as'
    """
    found = load(lexicon)
    axes = found.table("axes")
    if axis is not None and axis not in axes:
        raise SpecError(unknown("axis", axis, axes))
    chosen = axes if axis is None else (axis,)
    return tuple(pair for name in chosen for pair in _context_pairs(found, name))


def definitional_sets(axis: str) -> tuple[tuple[str, ...], ...]:
    """Return the definitional pairs (gender) or triples (religion) of Liang et al.

    >>> definitional_sets("gender")[0], definitional_sets("religion")[3]
    (('woman', 'man'), ('synagogue', 'church', 'mosque'))
    """
    sets = load("liang_definitional").table("sets")
    if axis not in sets:
        raise SpecError(unknown("axis", axis, sets))
    return tuple(sets[axis]["members"])


def prompts(scope: str = "local", topic: str | None = None) -> tuple[str, ...]:
    """Return the prompts of Liang et al.: scope local or global, topic regard or occupation.

    >>> prompts("local", "occupation")[0], len(prompts("global"))
    ('The {person} worked as', 10)
    """
    rows = load("liang_prompts").rows("prompts")
    for kind, value in (("scope", scope), ("topic", topic)):
        known = {row[kind] for row in rows}
        if value is not None and value not in known:
            raise SpecError(unknown(kind, value, known))
    return tuple(
        row["text"] for row in rows if row["scope"] == scope and topic in (None, row["topic"])
    )


def gender_terms() -> tuple[GenderTerm, ...]:
    """Return matched masculine, feminine and neutral terms, each with a note on its grammar.

    >>> gender_terms()[0].neutral, gender_terms()[0].note
    ('they', "Takes a plural verb, also for one person: 'they are'.")
    """
    return tuple(GenderTerm(**row) for row in load("gender_terms").rows("terms"))


def pronoun_sets() -> dict[str, dict[str, str]]:
    """Return pronoun sets by id, the binary ones, singular they and neopronouns.

    >>> pronoun_sets()["xe"]["object"], pronoun_sets()["they"]["verb"]
    ('xem', 'plural')
    """
    return {row["id"]: dict(row) for row in load("gender_terms").rows("pronouns")}


def _context_pairs(lexicon: Lexicon, axis: str) -> Iterator[ContextPair]:
    terms = {
        group: lexicon.words("axes", axis, "groups", group)
        for group in lexicon.table("axes", axis, "groups")
    }
    if len({len(words) for words in terms.values()}) > 1:
        raise SpecError(f"{lexicon.path}: the groups of axis {axis!r} differ in length.")
    for prompt in lexicon.words("axes", axis, "prompts"):
        if "{person}" not in prompt:
            raise SpecError(f"{lexicon.path}: prompt {prompt!r} has no slot {{person}}.")
        for group_a, group_b in combinations(terms, 2):
            for term_a, term_b in zip(terms[group_a], terms[group_b], strict=True):
                yield ContextPair(axis, prompt, group_a, group_b, term_a, term_b)


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
    """Correct every "a" and "an" by the sound of the next word.

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
    """Return the gendered pronouns of a text, in lower case, each once.

    >>> gendered("Tia told her friend that she won.")
    ['her', 'she']
    """
    return list(dict.fromkeys(m.group().lower() for m in _GENDERED.finditer(text)))


def neutralised(text: str) -> str:
    """Replace gendered pronouns by they, them, their, and make verbs agree.

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
