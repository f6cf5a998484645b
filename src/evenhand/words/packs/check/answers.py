"""How answers are worded, how a question is put, and the samples by which a model is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.files import Lexicon
from evenhand.words.packs import PATTERNS, Pack
from evenhand.words.packs.check.faults import (
    ENGLISH,
    ENGLISH_FRAME,
    Fault,
    foreign,
    left_in_english,
    own_words,
    repeated,
    script_of,
    words_of,
)
from evenhand.words.packs.check.texts import PEOPLE, Texts, slots

FEWEST = 4
"""Samples below which a single sentence decides how well a language is known."""
ENGLISH_UNKNOWN = frozenset({"unknown", "not", "known", "enough", "information", "cannot", "don"})


def answers(pack: Pack) -> Iterator[Fault]:
    """Ways of not knowing, patterns, prompt, samples with their English, told questions."""
    held = pack.part("answers")
    for fault in (
        *_unknown(pack, held),
        *_prompt(pack, held),
        *_samples(pack, held),
        *_patterns(held),
        *_told(pack, held),
    ):
        yield Fault(held.path.name, *fault)


def _unknown(pack: Pack, held: Lexicon) -> Iterator[tuple[str, ...]]:
    known = held.words("unknown") if held.data.get("unknown") else ()
    if not known:
        yield "unknown", "missing", "no way of saying that it is not known"
    for wording in repeated(known):
        yield "unknown", "repeated", "occurs twice", wording
    for wording in known:
        if foreign(wording, script_of(pack)):
            yield "unknown", "untranslated", "has letters of another script", wording
        elif {*words_of(wording)} & (ENGLISH_UNKNOWN | ENGLISH) - own_words(pack):
            yield "unknown", "untranslated", "is English", wording


def _prompt(pack: Pack, held: Lexicon) -> Iterator[tuple[str, ...]]:
    prompt = str(held.data.get("prompt", ""))
    if "{passage}" not in prompt or "{question}" not in prompt:
        yield "prompt", "missing", "the prompt must hold {passage} and {question}", prompt
    said = re.sub(r"\{\w+\}", "", prompt)
    for word in words_of(said):
        if word in ENGLISH_FRAME - own_words(pack):
            yield "prompt", "untranslated", f"{word!r} is an English word", prompt


def _patterns(held: Lexicon) -> Iterator[tuple[str, ...]]:
    for name in PATTERNS:
        for pattern in held.words(name) if held.data.get(name) else ():
            try:
                found = re.compile(pattern, re.IGNORECASE)
            except re.error as error:
                yield name, "missing", f"not a regular expression ({error})", pattern
                continue
            if found.search(""):
                yield name, "missing", "matches every text", pattern


def _samples(pack: Pack, held: Lexicon) -> Iterator[tuple[str, ...]]:
    texts, own = Texts(pack), own_words(pack)
    rows = held.data.get("samples", ())
    if len(rows) < FEWEST:
        says = f"{len(rows)} sentences; {FEWEST} are needed to see how well a model knows them"
        yield "samples", "missing", says
    for row in rows:
        if len(row) != 2 or not all(isinstance(text, str) and text.strip() for text in row):
            yield "samples", "missing", "a sentence and the same in English", str(list(row))
            continue
        mine, english = row
        yield from (("samples", *fault, mine) for fault in texts.faults(mine))
        if not {*words_of(english)} & (ENGLISH - own | {"in", "on", "we", "my", "a", "it"}):
            yield "samples", "untranslated", "the second sentence is not English", english
        elif mine.casefold() == english.casefold():
            yield "samples", "untranslated", "is the same in both languages", mine
    for text in repeated(str(row[0]) for row in rows if row):
        yield "samples", "repeated", "occurs twice", text


def _told(pack: Pack, held: Lexicon) -> Iterator[tuple[str, ...]]:
    texts, rows = Texts(pack), held.data.get("told", ())
    if not rows:
        yield "told", "missing", "no questions that a text answers outright"
    for row in rows:
        yield from (("told", *fault) for fault in _asked(pack, texts, row))


def _asked(pack: Pack, texts: Texts, row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    context = str(row.get("context", ""))
    lost = [key for key in PEOPLE if not row.get(key)] + [
        s for s in PEOPLE if s not in slots(context)
    ]
    if lost:
        yield "missing", f"has no {lost[0]!r} question, or no such slot in its context", context
        return
    yield from ((*fault, context) for fault in texts.chosen(context))
    for key in PEOPLE:
        yield from ((*fault, row[key]) for fault in texts.faults(row[key]))
    if row["first"] == row["second"]:
        yield "repeated", "both questions are the same", row["first"]
    groups = pack.part("names").table("groups").values()
    for group in groups:
        name = str((group.get("terms") or ("",))[0])
        shapes = {k: str(v).replace("{}", name) for k, v in group.get("forms", {}).items()}
        forms = {"": name, "plain": name, **shapes}
        try:
            text = pack.grammar.filled(context, first=forms, second=forms)
        except (EvenhandError, KeyError, IndexError, ValueError) as error:
            yield "missing", str(error), context
            continue
        yield from ((*fault, text) for fault in texts.faults(text))
        for word in words_of(text):
            if left := left_in_english(word, "", texts.own):
                yield "untranslated", f"{left!r} is an English word", text
