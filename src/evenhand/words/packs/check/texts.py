"""Filled texts: every context with every term, every question with every attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from string import Formatter

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.questions import Attribute, Subject
from evenhand.words.list_formats import Lists
from evenhand.words.packs import NAMES, Pack, PackTemplate
from evenhand.words.packs.check.faults import (
    ENGLISH,
    LETTERS,
    MASK,
    QUESTIONS,
    Fault,
    own_words,
    regular,
    repeated,
    script_of,
    words_of,
)

_TWICE = re.compile(r"\b(\w{2,}) \1\b|([\u3400-\u9fff]{2,})\2")
_SPACED = re.compile(r"\S {2,}\S|\s[,.;]")
_FORMED = re.compile(r"\{(first|second)\.")
_BARE = re.compile(r"\{(first|second)[:}]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
PEOPLE = ("first", "second")
SHORTEST = 2


class Texts:
    """Looks at filled texts by the rules of a pack, and counts them."""

    def __init__(self, pack: Pack):
        self.pack, self.seen = pack, 0
        data = pack.head.data
        self.rules = [(pack.pattern(r, "find"), r["says"]) for r in data.get("faults", ())]
        self.script = script_of(pack)
        self.own = own_words(pack)
        self.names = {
            w
            for g in pack.part("names").table("groups").values()
            for name in g.get("terms", ())
            for w in LETTERS.findall(name)
        }
        swaps = pack.parts["swaps"].data.get("pairs", ()) if "swaps" in pack.parts else ()
        self.gendered = {str(w).casefold() for pair in swaps for w in pair[:2]}
        particles = "|".join(p for pair in data.get("particles", ()) for p in pair.split("/"))
        bare = rf"\{{[\w.]+\}}(?:{particles})(?!\w)"
        self.bare = regular(pack, bare) if particles else None

    def of(self, lists: Lists) -> Iterator[Fault]:
        """Every context with every term in both places, every question with every attribute."""
        patterns: dict[str, PackTemplate] = {}
        for template in lists.templates:
            assert isinstance(template, PackTemplate)
            patterns.setdefault(template.id.split("/")[0], template)
            yield from self._pattern(template, lists.attributes)
            yield from self._contexts(template, lists.subjects)
            yield from self._questions(template, lists.attributes)
        yield from self._alike(list(patterns.values()))

    def _alike(self, templates: Sequence[PackTemplate]) -> Iterator[Fault]:
        """Contexts of a class that are the same, or give a person a form in some of them only."""
        for context in repeated(t.context for t in templates):
            yield Fault(QUESTIONS, templates[0].social_class, "repeated", "occurs twice", context)
        formed = any(_FORMED.search(t.context) for t in templates)
        for template in templates:
            if formed and (found := _BARE.search(template.context)):
                says = (
                    f"{{{found[1]}}} is used without a form, which other contexts give; write "
                    f"{{{found[1]}.plain}} where it is meant"
                )
                yield Fault(QUESTIONS, _where(template), "agreement", says, template.context)

    def _pattern(self, template: PackTemplate, asked: Sequence[Attribute]) -> Iterator[Fault]:
        where = _where(template)
        for text in (template.context, template.question, template.negated):
            yield from (Fault(QUESTIONS, where, *f, text) for f in self.chosen(text))
        for slot in PEOPLE:
            if slot not in slots(template.context):
                says = f"the context has no slot {{{slot}}}"
                yield Fault(QUESTIONS, where, "missing", says, template.context)
        needed = ("attribute", "mask") if template.form == "lm" else ("attribute",)
        for text in (template.question, template.negated):
            for slot in needed:
                if slot not in slots(text):
                    yield Fault(QUESTIONS, where, "missing", f"has no slot {{{slot}}}", text)
        if template.social_class == NAMES:
            said = words_of(template.context)
            for word in sorted(self.gendered & {*said}):
                says = f"the context says {word!r}, which reveals a gender"
                yield Fault(QUESTIONS, where, "agreement", says, template.context)
        told = template.context.casefold()
        for attribute in asked:
            for wording in {*attribute.forms.get(template.slot, ())}:
                if len(wording) > SHORTEST and _holds(told, wording.casefold()):
                    says = f"the context tells what is asked ({wording!r})"
                    yield Fault(QUESTIONS, where, "repeated", says, template.context)

    def chosen(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Particles that are written out where they should be chosen."""
        if self.bare and (found := self.bare.search(pattern)):
            pairs = ", ".join(self.pack.grammar.particles)
            says = f"{found[0]!r} does not choose its particle; write {{slot:PAIR}} ({pairs})"
            yield "agreement", says

    def _contexts(self, template: PackTemplate, people: Sequence[Subject]) -> Iterator[Fault]:
        for k, one in enumerate(people):
            other = people[k - 1]
            for first, second in ((one, other), (other, one)):
                what = f"{first.term} and {second.term}"
                yield from self._made(template, what, partial(template.context_for, first, second))
            yield from self._named(template, one, other)

    def _named(self, template: PackTemplate, one: Subject, other: Subject) -> Iterator[Fault]:
        """The answer is called as the context calls the person."""
        answer = one.forms.get(template.subject)
        if answer is None:
            says = f"the answer is {template.subject!r}, which {one.term!r} has no form for"
            yield Fault(QUESTIONS, _where(template), "missing", says, ", ".join(one.forms))
            return
        try:
            text = template.context_for(one, other).casefold()
        except (EvenhandError, KeyError, IndexError, ValueError):
            return  # told where the context is filled
        parts = [w for w in words_of(answer) if len(w) >= SHORTEST]
        if answer.casefold() not in text and not {*parts} & {*words_of(text)}:
            says = f"the answer {answer!r} is nobody in the context"
            yield Fault(QUESTIONS, _where(template), "agreement", says, text)

    def _questions(self, template: PackTemplate, asked: Sequence[Attribute]) -> Iterator[Fault]:
        for attribute in asked:
            if template.slot not in attribute.forms:
                continue
            asking = [
                partial(template.question_for, attribute, negated=n, mask=MASK)
                for n in (False, True)
            ]
            found = [f for make in asking for f in self._made(template, attribute.name, make)]
            yield from found
            if not any(f.kind == "missing" for f in found) and asking[0]() == asking[1]():
                says = "the negated question is the question itself"
                where = f"{_where(template)}, {attribute.name}"
                yield Fault(QUESTIONS, where, "repeated", says, asking[0]())

    def _made(self, template: PackTemplate, what: str, make: Callable[[], str]) -> Iterator[Fault]:
        where = f"{_where(template)}, {what}"
        try:
            text = make()
        except (EvenhandError, KeyError, IndexError, ValueError) as error:
            yield Fault(QUESTIONS, where, "missing", str(error))
            return
        self.seen += 1
        yield from (Fault(QUESTIONS, where, *f, text) for f in self.faults(text))

    def faults(self, text: str) -> Iterator[tuple[str, str]]:
        """What is wrong in a text of the language, each with its kind."""
        for find, says in self.rules:
            if find.search(text):
                yield "agreement", str(says)
        if twice := _TWICE.search(text):
            yield "repeated", f"{twice[1] or twice[2]!r} occurs twice"
        stops = self.pack.head.data.get("stops", "")
        if stops and not text.endswith(tuple(stops)):
            yield "missing", f"does not end with one of {stops}"
        if "{" in text or "}" in text:
            yield "missing", "a slot was not filled"
        if _SPACED.search(text):
            yield "repeated", "one space too many"
        for word in LETTERS.findall(text.replace(MASK, "")):
            if word in self.names:
                continue
            if self.script and self.script.search(word):
                yield "untranslated", f"{word!r} has letters of another script"
            elif word.lower() in ENGLISH - self.own:
                yield "untranslated", f"{word!r} is an English word"


def slots(pattern: str) -> set[str]:
    """The slots of a pattern, without their forms and particles."""
    return {str(name).split(".")[0] for _, name, _, _ in Formatter().parse(pattern) if name}


def _where(template: PackTemplate) -> str:
    return f"{template.social_class} {template.id}"


def _holds(text: str, wording: str) -> bool:
    """Whole words, as far as the script has such."""
    if _UNSPACED.search(wording):
        return wording in text
    return bool(re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", text))
