"""Checking a pack: every template is filled with every term, and what is wrong is named.

What is looked for, whatever the language:

    missing        a form, a part or a header that a template or the format needs
    agreement      what the pack's own rules call a fault in a filled text; a word for a person
                   whose article or ending is that of another gender; a particle that is not chosen
    untranslated   letters of another script, English function words
    repeated       a name in two groups, a word twice in a text, a question equal to its negation
    licence        a file without source or licence, or with share-alike terms
    balance        groups of unequal size, word lists that differ in grammatical gender

The rules of a language are data of its pack, so that a new language needs no code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.files import Lexicon
from evenhand.words.lexicons.questions import FORMS, Attribute, Subject
from evenhand.words.lexicons.word_sets import read_word_sets
from evenhand.words.list_formats import Lists
from evenhand.words.packs.files import Pack, load_pack
from evenhand.words.packs.questions import (
    NEUTRAL,
    PackTemplate,
    attribute_rows,
    pack_lists,
    social_classes,
)

ENGLISH = frozenset(
    "the who was which they with she he and of never people woman man his her is are from this "
    "that not could has have were been at by for".split()
)
"""English words that a text left in English can hardly do without."""
SHARE_ALIKE = re.compile(r"share.?alike|\bBY-SA\b|\bGPL", re.IGNORECASE)
MASK = "[MASK]"
_TWICE = re.compile(r"\b(\w{2,}) \1\b|([\u3400-\u9fff]{2,})\2")
_LETTERS = re.compile(r"[^\W\d_]+")


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


@dataclass(frozen=True)
class Checked:
    """The faults of a pack, and how many texts were looked at."""

    language: str
    name: str
    folder: Path
    texts: int
    faults: Sequence[Fault] = field(default_factory=tuple)

    @property
    def good(self) -> bool:
        return not self.faults


def check_pack(pack: str | Path | Pack) -> Checked:
    """Fill every template of a pack with every term and name all that is wrong.

    >>> checked = check_pack("ko")
    >>> checked.good, checked.texts > 1_000
    (True, True)
    """
    held = pack if isinstance(pack, Pack) else load_pack(pack)
    looked = _Texts(held)
    found = [*_headers(held), *_rules(held), *_names(held), *_words(held), *_answers(held)]
    try:
        classes = social_classes(held)
        for social_class in classes:
            found += _forms(held, social_class)
            for form in FORMS:
                found += looked.of(pack_lists(held, social_class, form))
    except EvenhandError as error:
        found.append(Fault("questions.toml", "all", "missing", str(error)))
    return Checked(held.language, held.name, held.folder, looked.seen, tuple(dict.fromkeys(found)))


class _Texts:
    """Looks at filled texts by the rules of a pack, and counts them."""

    def __init__(self, pack: Pack):
        self.pack, self.seen = pack, 0
        data = pack.head.data
        self.rules = [(pack.pattern(r, "find"), r["says"]) for r in data.get("faults", ())]
        self.foreign = re.compile(f"[^{data['letters']}]") if "letters" in data else None
        self.own = frozenset(data.get("also_words", ()))
        self.names = {w for g in pack.part("names").table("groups").values()
                      for name in g.get("terms", ()) for w in _LETTERS.findall(name)}  # fmt: skip
        particles = "|".join(p for pair in data.get("particles", ()) for p in pair.split("/"))
        self.bare = re.compile(rf"\{{[\w.]+\}}(?:{particles})(?!\w)") if particles else None

    def of(self, lists: Lists) -> Iterator[Fault]:
        """Every context with every term in both places, every question with every attribute."""
        for template in lists.templates:
            assert isinstance(template, PackTemplate)
            yield from self._pattern(template)
            yield from self._contexts(template, lists.subjects)
            yield from self._questions(template, lists.attributes)

    def _pattern(self, template: PackTemplate) -> Iterator[Fault]:
        where = f"{template.social_class} {template.id}"
        for text in (template.context, template.question, template.negated):
            if self.bare and (found := self.bare.search(text)):
                pairs = ", ".join(self.pack.grammar.particles)
                says = f"{found[0]!r} does not choose its particle; write {{slot:PAIR}} ({pairs})"
                yield Fault("questions.toml", where, "agreement", says, text)
        for slot in ("first", "second"):
            if f"{{{slot}" not in template.context:
                says = f"the context has no slot {{{slot}}}"
                yield Fault("questions.toml", where, "missing", says, template.context)

    def _contexts(self, template: PackTemplate, people: Sequence[Subject]) -> Iterator[Fault]:
        for k, one in enumerate(people):
            other = people[k - 1]
            for first, second in ((one, other), (other, one)):
                what = f"{first.term} and {second.term}"
                yield from self._made(template, what, partial(template.context_for, first, second))

    def _questions(self, template: PackTemplate, asked: Sequence[Attribute]) -> Iterator[Fault]:
        for attribute in asked:
            if template.slot not in attribute.forms:
                continue
            asking = [partial(template.question_for, attribute, negated=n, mask=MASK)
                      for n in (False, True)]  # fmt: skip
            found = [f for make in asking for f in self._made(template, attribute.name, make)]
            yield from found
            if not any(f.kind == "missing" for f in found) and asking[0]() == asking[1]():
                where = f"{template.social_class} {template.id}, {attribute.name}"
                says = "the negated question is the question itself"
                yield Fault("questions.toml", where, "repeated", says, asking[0]())

    def _made(self, template: PackTemplate, what: str, make: Callable[[], str]) -> Iterator[Fault]:
        where = f"{template.social_class} {template.id}, {what}"
        try:
            text = make()
        except (EvenhandError, KeyError, IndexError, ValueError) as error:
            yield Fault("questions.toml", where, "missing", str(error))
            return
        self.seen += 1
        yield from (Fault("questions.toml", where, *f, text) for f in self.faults(text))

    def faults(self, text: str) -> Iterator[tuple[str, str]]:
        """What is wrong in a text of the language, each with its kind."""
        for find, says in self.rules:
            if find.search(text):
                yield "agreement", str(says)
        if twice := _TWICE.search(text):
            yield "repeated", f"{twice[1] or twice[2]!r} stands twice"
        stops = self.pack.head.data.get("stops", "")
        if stops and not text.endswith(tuple(stops)):
            yield "missing", f"does not end with one of {stops}"
        if "{" in text or "}" in text:
            yield "missing", "a slot was not filled"
        for word in _LETTERS.findall(text.replace(MASK, "")):
            if word in self.names:
                continue
            if self.foreign and self.foreign.search(word):
                yield "untranslated", f"{word!r} has letters of another script"
            elif word.lower() in ENGLISH - self.own:
                yield "untranslated", f"{word!r} is an English word"


def _headers(pack: Pack) -> Iterator[Fault]:
    for held in (pack.head, *pack.parts.values()):
        if SHARE_ALIKE.search(held.licence):
            says = "share-alike terms: such data stays with its source and is read from there"
            yield Fault(held.path.name, "licence", "licence", says, held.licence)
        if not held.caveats:
            yield Fault(held.path.name, "caveats", "missing", "says nothing of what it cannot show")


def _rules(pack: Pack) -> Iterator[Fault]:
    for key in ("name", "letters", "stops"):
        if not str(pack.head.data.get(key, "")).strip():
            yield Fault(pack.head.path.name, key, "missing", f"{key!r} is not there")
    if pack.direction not in ("ltr", "rtl"):
        says = f"{pack.direction!r} is no direction of writing; accepted: ltr, rtl"
        yield Fault(pack.head.path.name, "direction", "missing", says)


def _names(pack: Pack) -> Iterator[Fault]:
    held = pack.part("names")
    groups = {name: held.words("groups", name, "terms") for name in held.table("groups")}
    bearers = Counter(term for terms in groups.values() for term in set(terms))
    for name, terms in groups.items():
        for term, count in Counter(terms).items():
            if count > 1 or bearers[term] > 1:
                says = "stands in two groups" if bearers[term] > 1 else "is listed twice"
                yield Fault(held.path.name, name, "repeated", f"{term!r} {says}")
    if len({len(terms) for terms in groups.values()}) > 1:
        sizes = ", ".join(f"{name} {len(terms)}" for name, terms in groups.items())
        yield Fault(held.path.name, "groups", "balance", f"groups of unequal size: {sizes}")


def _forms(pack: Pack, social_class: str) -> Iterator[Fault]:
    """Words for a person: every gender's form is there, and is not another gender's."""
    held, rows = attribute_rows(pack, social_class)
    asked = pack.part("questions").table("asked", social_class)
    needed = [g for g in asked if g != NEUTRAL]
    for row in rows:
        name = str(row.get("name"))
        for form in needed:
            if form not in row:
                yield Fault(held.path.name, name, "missing", f"has no form {form!r}")
        given = {g: str(row[g]) for g in pack.genders if isinstance(row.get(g), str)}
        yield from _gendered(pack, held, name, given)
        alike = len(given) > 1 and len(set(given.values())) < len(given)
        if alike and not row.get("common"):
            says = "is the same in two genders; say so with common = true, or give both forms"
            yield Fault(held.path.name, name, "agreement", says, ", ".join(given.values()))
    if social_class in getattr(pack.parts.get("people"), "data", {}):
        people = pack.part("people")
        for row in people.rows(social_class):
            given = {g: str(row[g]) for g in pack.genders if g in row}
            for gender in pack.genders:
                if gender not in row:
                    term = str(row.get("term"))
                    yield Fault(people.path.name, term, "missing", f"has no form {gender!r}")
            yield from _gendered(pack, people, str(row.get("term")), given, endings=False)


def _gendered(
    pack: Pack, held: Lexicon, name: str, given: dict[str, str], *, endings: bool = True
) -> Iterator[Fault]:
    """Articles and endings that belong to another gender."""
    markers = pack.head.data.get("markers", {})
    wrong = pack.head.data.get("wrong_endings", {}) if endings else {}
    for gender, word in given.items():
        first = word.split()[0].lower()
        other = [g for g, words in markers.items() if g != gender and first in words]
        if other and first not in markers.get(gender, ()):
            says = f"the {gender} form has the article of the {other[0]}"
            yield Fault(held.path.name, name, "agreement", says, word)
        alone = len(set(given.values())) == len(given)
        if gender in wrong and alone and re.search(str(wrong[gender]), word):
            says = f"the {gender} form ends as another gender's does"
            yield Fault(held.path.name, name, "agreement", says, word)


def _words(pack: Pack) -> Iterator[Fault]:
    """Association tests that can be read, and lists alike in grammatical gender."""
    held = pack.parts.get("words")
    if held is None:
        return
    try:
        tests = read_word_sets(held.path)
    except EvenhandError as error:
        yield Fault(held.path.name, "tests", "missing", str(error))
        return
    genders = held.data.get("grammatical_gender", {})
    for test in tests.values():
        for one, two in (("x", "y"), ("a", "b")):
            labels = getattr(test, f"{one}_label"), getattr(test, f"{two}_label")
            lists = getattr(test, one), getattr(test, two)
            both = sorted({*lists[0]} & {*lists[1]})
            if both:
                says = f"{both[0]!r} stands in both lists"
                yield Fault(held.path.name, test.name, "repeated", says)
            told = [genders.get(label) for label in labels]
            if all(told) and Counter(told[0]) != Counter(told[1]):
                says = f"{labels[0]} ({told[0]}) and {labels[1]} ({told[1]}) differ in gender"
                yield Fault(held.path.name, test.name, "balance", says)
            for label, words, marks in zip(labels, lists, told):
                if marks and len(marks) != len(words):
                    says = f"{label}: {len(words)} words, but {len(marks)} grammatical genders"
                    yield Fault(held.path.name, test.name, "missing", says)


def _answers(pack: Pack) -> Iterator[Fault]:
    held, texts = pack.part("answers"), _Texts(pack)
    if not held.data.get("unknown"):
        yield Fault(held.path.name, "unknown", "missing", "no way of saying that it is not known")
    prompt = str(held.data.get("prompt", ""))
    if "{passage}" not in prompt or "{question}" not in prompt:
        says = "the prompt must hold {passage} and {question}"
        yield Fault(held.path.name, "prompt", "missing", says, prompt)
    for own, _ in held.data.get("samples", ()):
        yield from (Fault(held.path.name, "samples", *f, own) for f in texts.faults(own))
    for row in held.data.get("told", ()):
        for key in ("first", "second"):
            found = texts.faults(row[key])
            yield from (Fault(held.path.name, "told", *f, row[key]) for f in found)
