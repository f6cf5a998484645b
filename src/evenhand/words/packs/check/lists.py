"""Lists of words: association tests alike in gender, valence, matched pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.files import WordSets, read_word_sets
from evenhand.words.packs import Pack
from evenhand.words.packs.check.faults import (
    Fault,
    english_kin,
    foreign,
    own_words,
    repeated,
    script_of,
)

MARKS = frozenset("fmncu")
"""Feminine, masculine, neuter, common, uter."""
SIDES = (("x", "y"), ("a", "b"))


def words(pack: Pack) -> Iterator[Fault]:
    """Association tests that can be read, and lists alike in size and grammatical gender."""
    held = pack.parts.get("words")
    if held is None:
        return
    try:
        tests = read_word_sets(held.path)
    except EvenhandError as error:
        yield Fault(held.path.name, "tests", "missing", str(error))
        return
    genders: Mapping[str, str] = held.data.get("grammatical_gender", {})
    for test in tests.values():
        found = (*_lists(test), *_balance(pack, test, genders), *_strange(pack, test))
        yield from (Fault(held.path.name, test.name, *fault) for fault in found)
    labels = {getattr(t, f"{s}_label") for t in tests.values() for side in SIDES for s in side}
    for label in sorted(genders.keys() - labels):
        says = f"{label!r} is the label of no list"
        yield Fault(held.path.name, "grammatical_gender", "missing", says)
    valence: Mapping[str, Sequence[str]] = held.data.get("valence", {})
    for word in repeated(w for words_ in valence.values() for w in words_):
        yield Fault(held.path.name, "valence", "repeated", f"{word!r} occurs twice")


def _lists(test: WordSets) -> Iterator[tuple[str, ...]]:
    """Lists of one size, none of whose words stands in another."""
    said = {s: {w.casefold() for w in getattr(test, s)} for side in SIDES for s in side}
    for one, two in (*SIDES, ("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")):
        for word in sorted(said[one] & said[two]):
            lists = (getattr(test, f"{s}_label") for s in (one, two))
            yield "repeated", f"{word!r} is in both lists", " and ".join(lists)
    for one, two in SIDES:
        sizes = [len(getattr(test, s)) for s in (one, two)]
        if sizes[0] != sizes[1]:
            yield "balance", f"lists of unequal size: {one} {sizes[0]}, {two} {sizes[1]}"


def _balance(pack: Pack, test: WordSets, genders: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The same number of nouns of every gender on both sides, but for words for people, whose
    gender is no accident of grammar."""
    for (one, two), side in zip(SIDES, ("targets", "attributes")):
        labels = getattr(test, f"{one}_label"), getattr(test, f"{two}_label")
        lists = getattr(test, one), getattr(test, two)
        told = [genders.get(label) for label in labels]
        if all(told) and Counter(told[0]) != Counter(told[1]):
            says = f"{labels[0]} ({told[0]}) and {labels[1]} ({told[1]}) differ in gender"
            yield "balance", says
        for label, listed, marks in zip(labels, lists, told):
            if marks and len(marks) != len(listed):
                says = f"{label}: {len(listed)} words, but {len(marks)} grammatical genders"
                yield "missing", says
            if marks and not {*marks} <= MARKS:
                yield "missing", f"{label}: {marks!r} has other marks than {', '.join(MARKS)}"
            if pack.genders and not marks and test.social != side:
                yield "balance", f"{label}: grammatical_gender does not say its words' genders"


def _strange(pack: Pack, test: WordSets) -> Iterator[tuple[str, ...]]:
    english, script = english_kin() - own_words(pack), script_of(pack)
    for word in (w for side in SIDES for s in side for w in getattr(test, s)):
        if not word.strip() or word != word.strip():
            yield "missing", f"{word!r} is not a word, or has spaces around it"
        elif found := foreign(word, script):
            yield "untranslated", f"{found!r} has letters of another script"
        elif word.casefold() in english:
            yield "untranslated", f"{word!r} is an English word"


def swaps(pack: Pack) -> Iterator[Fault]:
    """Pairs of two different words, each in one pair only."""
    held = pack.parts.get("swaps")
    if held is not None:
        yield from (Fault(held.path.name, "pairs", *fault) for fault in _swaps(pack, held.data))


def _swaps(pack: Pack, data: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    english, script = english_kin() - own_words(pack), script_of(pack)
    pairs = data.get("pairs", ())
    if not pairs:
        yield "missing", "there are no pairs"
    good = []
    for pair in pairs:
        said = [str(word) for word in pair]
        if len(said) not in (2, 3) or not all(word.strip() for word in said[:2]):
            yield "missing", "two words and, where there is one, a word for both", ", ".join(said)
            continue
        good.append(said)
        for word in repeated(said):
            yield "repeated", f"{word!r} occurs twice in a pair", ", ".join(said)
        for word in said:
            if word.casefold() in english:
                yield "untranslated", f"{word!r} is an English word", ", ".join(said)
            elif found := foreign(word, script):
                says = f"{found!r} has letters of another script"
                yield "untranslated", says, ", ".join(said)
    for word in repeated(w for said in good for w in {*said[:2]}):
        yield "repeated", f"{word!r} is in two pairs"
