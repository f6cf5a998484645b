"""Check a language pack: its files by their models, its words and filled texts by rules.

Every template is filled with every term. The kinds of faults, for any language:

    encoding       a byte order mark, letters of a wrong encoding, invisible characters
    missing        a form, a file's part, a slot or a header that a template or the format needs;
                   empty lists; unknown keys; a value of a wrong type
    agreement      a filled text that breaks a rule of the pack; a word for a person with the
                   article or ending of another gender; a neutral wording with a gendered word; a
                   written particle; a context that reveals a gender or does not name the answer
    untranslated   letters of another script, English words
    repeated       a name in two groups, a row, context or wording twice, a word twice in a text,
                   a question equal to its negation
    licence        a file without source or licence, or with terms that others cannot use
    balance        groups and lists of unequal size, word lists that differ in grammatical gender

The rules of a language are data of its pack, so that a new language needs no code.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.files import WordSets, load, read_word_sets
from evenhand.words.lexicons.questions import FORMS, Attribute, Subject
from evenhand.words.list_formats import Lists
from evenhand.words.packs import (
    HEAD,
    NAMES,
    NEUTRAL,
    PLAIN,
    Pack,
    PackTemplate,
    attribute_rows,
    by_path,
    load_pack,
    pack_lists,
    read_pack,
    social_classes,
)
from evenhand.words.packs.models import PEOPLE, Found, model_faults, slots

__all__ = ["Checked", "Fault", "check_pack"]

MASK = "[MASK]"
SHORTEST = 2
LONG = 4
"""Shorter words are alike in many languages by chance."""
GENDERS = {"female": "feminine", "male": "masculine"}
"""The grammatical gender of the articles that names of a group take."""
SIDES = (("x", "y"), ("a", "b"))
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
ENGLISH_UNKNOWN = frozenset({"unknown", "not", "known", "enough", "information", "cannot", "don"})
ENGLISH_SENTENCE = frozenset({"in", "on", "we", "my", "a", "it"})

_LETTERS = re.compile(r"[^\W\d_]+")
_MOJIBAKE = re.compile("[ÃÂ][\u0080-\u00bf]|â€|ì[\u0080-\u00bf]|\ufffd")
_UNSEEN = re.compile("[\u200b\u2060\ufeff\u00ad\u0000-\u0008\u000b\u000c\u000e-\u001f]")
_GLUED = re.compile("\\w\u00a0\\w")
_TWICE = re.compile(r"\b(\w{2,}) \1\b|([\u3400-\u9fff]{2,})\2")
_SPACED = re.compile(r"\S {2,}\S|\s[,.;]")
_FORMED = re.compile(r"\{(first|second)\.")
_BARE = re.compile(r"\{(first|second)[:}]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
UNFILLED = (EvenhandError, KeyError, IndexError, ValueError)
"""Errors of a pattern that cannot be filled."""


@dataclass(frozen=True)
class Fault:
    """A fault of a pack: its file and row, its kind, a description, and the text it is in."""

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
    """The faults of a pack, and the number of texts that were filled."""

    language: str
    name: str
    folder: Path
    texts: int
    faults: Sequence[Fault] = field(default_factory=tuple)

    @property
    def good(self) -> bool:
        return not self.faults


def check_pack(pack: str | Path | Pack) -> Checked:
    """Check the files of a pack, and every template filled with every term.

    >>> checked = check_pack("ko")
    >>> checked.good, checked.texts > 1_000
    (True, True)
    """
    if not isinstance(pack, Pack):
        pack = read_pack(Path(pack)) if by_path(pack) else load_pack(pack)
    faults: list[Fault] = []
    for name, lexicon in ((HEAD, pack.head), *pack.parts.items()):
        path = lexicon.path
        for fault in (*_encoding_faults(path), *model_faults(pack, name, path)):
            faults.append(Fault(path.name, *fault))
    broken = any(fault.kind == "missing" for fault in faults)
    texts = Texts(pack)
    rules: list[tuple[str, Callable[[], Iterator[Found]]]] = [
        ("names", partial(_check_names, pack)),
        ("words", partial(_check_word_sets, pack)),
        ("swaps", partial(_check_swaps, pack)),
        ("answers", partial(_check_answers, pack, texts)),
    ]
    for name in social_classes(pack):
        rules += [
            ("occupations" if name == NAMES else "acts", partial(_check_attributes, pack, name)),
            ("people", partial(_check_people, pack, name)),
            ("questions", partial(_check_contexts, pack, name)),
            *(("questions", partial(texts.of_class, name, form)) for form in FORMS),
        ]
    for part, rule in rules:
        if part in pack.parts:
            try:
                faults.extend(Fault(f"{part}.toml", *found) for found in rule())
            except (*UNFILLED, re.error, TypeError, AttributeError) as error:
                if not broken:  # else a fault of a file explains the error
                    faults.append(Fault(f"{part}.toml", "all", "missing", str(error)))
    return Checked(pack.language, pack.name, pack.folder, texts.seen, tuple(dict.fromkeys(faults)))


def _encoding_faults(path: Path) -> Iterator[Found]:
    """Find invisible marks and characters, and letters of a wrong encoding."""
    raw = path.read_bytes()
    if raw.startswith(b"\xef\xbb\xbf"):
        yield Found("first byte", "encoding", "starts with a byte order mark; save it without")
    for number, line in enumerate(raw.decode("utf-8-sig").splitlines(), start=1):
        where = f"line {number}"
        if not unicodedata.is_normalized("NFC", line):
            yield Found(
                where, "encoding", "letters and accents are apart (write them in NFC)", line
            )
        elif _MOJIBAKE.search(line):
            yield Found(where, "encoding", "letters of another encoding", line)
        elif _UNSEEN.search(line):
            yield Found(where, "encoding", "a character that cannot be seen", ascii(line))
        elif _GLUED.search(line):
            yield Found(where, "encoding", "a no-break space between letters", ascii(line))


# Rules that compare words


def words_of(text: str) -> list[str]:
    """Return the runs of letters, in lower case."""
    return [word.casefold() for word in _LETTERS.findall(text)]


def repeated(terms: Iterable[str]) -> Iterator[str]:
    """Yield the terms that occur more than once, ignoring case."""
    counts = Counter(term.strip().casefold() for term in terms)
    yield from (term for term, count in counts.items() if count > 1)


@cache
def english_kin() -> frozenset[str]:
    """Return English words for men and women, which easily stay behind in lists of pairs."""
    rows = load("gender_terms").rows("terms")
    kin = (str(row.get(key, "")) for row in rows for key in ("masculine", "feminine"))
    return frozenset(w.casefold() for w in kin if len(w) >= LONG) | {"man", "boy", "son"}


def left_in_english(text: str, name: str, own: frozenset[str]) -> str:
    """Return the first word of a wording that is in its English name too, or names people, or "".

    >>> left_in_english("engineer", "engineer", frozenset())
    'engineer'
    >>> left_in_english("ingeniero", "engineer", frozenset())
    ''
    """
    known = {w for w in words_of(name) if len(w) >= LONG} | ENGLISH_PEOPLE | ENGLISH
    return next((w for w in words_of(text) if w in known - own), "")


class Script:
    """The letters of a language, and its words that look English (`also_words`)."""

    def __init__(self, pack: Pack) -> None:
        self.letters = str(pack.head.data.get("letters", ""))
        self.own = frozenset(str(w).casefold() for w in pack.head.data.get("also_words", ()))

    @cached_property
    def other(self) -> re.Pattern[str] | None:
        """The pattern of letters of other scripts; None if the pack does not list its letters."""
        return re.compile(f"[^{self.letters}]") if self.letters else None

    def foreign(self, text: str) -> str:
        """Return the first word with letters of another script, or ""."""
        other = self.other
        return next((w for w in _LETTERS.findall(text) if other and other.search(w)), "")

    def wording(self, where: str, form: str, text: str) -> Iterator[Found]:
        """Check that a wording is translated."""
        if word := left_in_english(text, where, self.own):
            says = f"{word!r} is English ({form}); own words go to also_words"
            yield Found(where, "untranslated", says, text)
        elif word := self.foreign(text):
            says = f"{word!r} has letters of another script"
            yield Found(where, "untranslated", says, text)

    def word(self, where: str, word: str, text: str = "") -> Iterator[Found]:
        """Check that a word of a list is translated."""
        if word.casefold() in english_kin() - self.own:
            yield Found(where, "untranslated", f"{word!r} is an English word", text)
        elif found := self.foreign(word):
            says = f"{found!r} has letters of another script"
            yield Found(where, "untranslated", says, text)


def _check_names(pack: Pack) -> Iterator[Found]:
    """Groups of names: of equal size, nobody in two of them, the articles of their gender."""
    lexicon, script = pack.part("names"), Script(pack)
    tables = {name: lexicon.table("groups", name) for name in lexicon.table("groups")}
    groups = {name: table["terms"] for name, table in tables.items()}
    bearers = Counter(t for terms in groups.values() for t in {x.casefold() for x in terms})
    for name, terms in groups.items():
        for term, count in Counter(terms).items():
            shared = bearers[term.casefold()] > 1
            if count > 1 or shared:
                says = "is in two groups" if shared else "is listed twice"
                yield Found(name, "repeated", f"{term!r} {says}")
            if word := script.foreign(term):
                says = f"{word!r} has letters of another script"
                yield Found(name, "untranslated", says)
    if all(groups.values()) and len({len(terms) for terms in groups.values()}) > 1:
        sizes = ", ".join(f"{name} {len(terms)}" for name, terms in groups.items())
        yield Found("groups", "balance", f"groups of unequal size: {sizes}")
    for axis in repeated(t.get("axis", {}).get(NAMES, name) for name, t in tables.items()):
        yield Found("groups", "repeated", f"two groups are {axis!r} (axis.{NAMES})")
    known = {form for table in tables.values() for form in table.get("forms", {})}
    markers = pack.head.data.get("markers", {})
    for name, table in tables.items():
        shapes, mine = table.get("forms", {}), GENDERS.get(name, "")
        for form in sorted(known - shapes.keys()):
            yield Found(name, "missing", f"has no form {form!r}, which another group has")
        for form, shape in shapes.items():
            first = {*words_of(shape)[:1]}
            other = [g for g, words in markers.items() if g != mine and first & {*words}]
            if mine in markers and other and not first & {*markers[mine]}:
                says = f"{form!r} has the article of the {other[0]}"
                yield Found(name, "agreement", says, shape)


def _check_attributes(pack: Pack, social_class: str) -> Iterator[Found]:
    """Check what is asked about a class: all forms, worded like no other row."""
    _, rows = attribute_rows(pack, social_class)
    asked = tuple(pack.part("questions").table("asked", social_class))
    script = Script(pack)
    for name in repeated(row["name"] for row in rows):
        yield Found(name, "repeated", "two rows have this name")
    for form in asked:
        for double in repeated(wordings(row[form])[0] for row in rows if form in row):
            yield Found(form, "repeated", "two rows are worded alike", double)
    known = {"name", "class", "common", PLAIN, *pack.genders, *asked}
    for row in rows:
        name = row["name"]
        for form in asked:
            if form not in row:
                yield Found(name, "missing", f"has no form {form!r}")
        for key in sorted(row.keys() - known):
            says = f"{key!r} is asked nowhere. Known: {', '.join(sorted(known))}"
            yield Found(name, "missing", says)
        for form in asked:
            for text in wordings(row.get(form, ())):
                yield from script.wording(name, form, text)
        yield from _genders(pack, name, row)
        forms = {row[g].casefold() for g in pack.genders if isinstance(row.get(g), str)}
        if not row.get("common"):
            for word in sorted(forms.intersection(words_of(str(row.get(NEUTRAL, ""))))):
                says = f"the neutral wording has a gender ({word!r})"
                yield Found(name, "agreement", says, row[NEUTRAL])


def wordings(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the wordings of a form: one for both questions, or the asserted and the negated."""
    return (value,) if isinstance(value, str) else tuple(value)


def _check_people(pack: Pack, social_class: str) -> Iterator[Found]:
    """Check the words for people of a class, in every gender."""
    script, lexicon = Script(pack), pack.part("people")
    rows = lexicon.rows(social_class) if social_class in lexicon.data else ()
    for term in repeated(row["term"] for row in rows):
        yield Found(social_class, "repeated", f"two rows are about {term!r}")
    for form in sorted({key for row in rows for key in row} - {"term", "common"}):
        for text in repeated(row[form] for row in rows if form in row):
            yield Found(social_class, "repeated", f"two rows have the same {form!r}", text)
    for row in rows:
        for gender in pack.genders:
            if gender not in row:
                yield Found(row["term"], "missing", f"has no form {gender!r}")
        for key in sorted(row.keys() - {"term", "common"}):
            yield from script.wording(row["term"], key, row[key])
        yield from _genders(pack, row["term"], row, endings=False)


def _genders(
    pack: Pack, name: str, row: Mapping[str, Any], *, endings: bool = True
) -> Iterator[Found]:
    """Find articles and endings of another gender, and equal forms without `common`."""
    forms = {g: row[g] for g in pack.genders if isinstance(row.get(g), str)}
    markers = pack.head.data.get("markers", {})
    wrong = pack.head.data.get("wrong_endings", {}) if endings else {}
    alike = len(set(forms.values())) < len(forms)
    for gender, word in forms.items():
        first = word.split()[0].lower()
        other = [g for g, known in markers.items() if g != gender and first in known]
        if other and first not in markers.get(gender, ()):
            says = f"the {gender} form has the article of the {other[0]}"
            yield Found(name, "agreement", says, word)
        if gender in wrong and not alike and re.search(wrong[gender], word):
            says = f"the {gender} form ends as another gender's does"
            yield Found(name, "agreement", says, word)
    if alike and not row.get("common"):
        says = "is the same in two genders; say so with common = true, or give both forms"
        yield Found(name, "agreement", says, ", ".join(forms.values()))
    if row.get("common") and len(forms) > 1 and not alike:
        says = "common = true, but the forms differ"
        yield Found(name, "agreement", says, ", ".join(forms.values()))


def _check_word_sets(pack: Pack) -> Iterator[Found]:
    """Association tests: lists alike in size and grammatical gender, in the language."""
    lexicon = pack.part("words")
    genders: Mapping[str, str] = lexicon.data.get("grammatical_gender", {})
    tests, script = read_word_sets(lexicon.path).values(), Script(pack)
    for test in tests:
        yield from _overlaps(test)
        yield from _balance(pack, test, genders)
        for word in (w for side in SIDES for s in side for w in getattr(test, s)):
            yield from script.word(test.name, word)
    labels = {getattr(t, f"{s}_label") for t in tests for side in SIDES for s in side}
    for label in sorted(genders.keys() - labels):
        yield Found("grammatical_gender", "missing", f"{label!r} is the label of no list")
    valence: Mapping[str, Sequence[str]] = lexicon.data.get("valence", {})
    for word in repeated(w for words in valence.values() for w in words):
        yield Found("valence", "repeated", f"{word!r} occurs twice")


def _overlaps(test: WordSets) -> Iterator[Found]:
    words = {s: {w.casefold() for w in getattr(test, s)} for side in SIDES for s in side}
    for one, two in (*SIDES, ("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")):
        for word in sorted(words[one] & words[two]):
            lists = " and ".join(getattr(test, f"{s}_label") for s in (one, two))
            yield Found(test.name, "repeated", f"{word!r} is in both lists", lists)
    for one, two in SIDES:
        sizes = [len(getattr(test, s)) for s in (one, two)]
        if sizes[0] != sizes[1]:
            says = f"lists of unequal size: {one} {sizes[0]}, {two} {sizes[1]}"
            yield Found(test.name, "balance", says)


def _balance(pack: Pack, test: WordSets, genders: Mapping[str, str]) -> Iterator[Found]:
    """Require the same number of nouns of every gender on both sides.

    Words for people are exempt: their gender is no accident of grammar.
    """
    for pair, side in zip(SIDES, ("targets", "attributes")):
        lists = {getattr(test, f"{s}_label"): getattr(test, s) for s in pair}
        marks = [genders.get(label, "") for label in lists]
        if all(marks) and Counter(marks[0]) != Counter(marks[-1]):
            says = " and ".join(f"{la} ({ma})" for la, ma in zip(lists, marks))
            yield Found(test.name, "balance", f"{says} differ in gender")
        for (label, words), mark in zip(lists.items(), marks):
            if mark and len(mark) != len(words):
                says = f"{label}: {len(words)} words, but {len(mark)} grammatical genders"
                yield Found(test.name, "missing", says)
            if pack.genders and not mark and test.social != side:
                says = f"{label}: grammatical_gender does not say its words' genders"
                yield Found(test.name, "balance", says)


def _check_swaps(pack: Pack) -> Iterator[Found]:
    """Pairs of two different words, each in one pair only."""
    script, pairs = Script(pack), pack.part("swaps").data["pairs"]
    for pair in pairs:
        text = ", ".join(pair)
        for word in repeated(pair):
            yield Found("pairs", "repeated", f"{word!r} occurs twice in a pair", text)
        for word in pair:
            yield from script.word("pairs", word, text)
    for word in repeated(w for pair in pairs for w in {*pair[:2]}):
        yield Found("pairs", "repeated", f"{word!r} is in two pairs")


# Rules for filled texts


class Texts:
    """Checker of filled texts by the rules of a pack; counts the texts."""

    def __init__(self, pack: Pack) -> None:
        self.pack, self.seen, self.script = pack, 0, Script(pack)

    @cached_property
    def bare(self) -> re.Pattern[str] | None:
        """The pattern of particles that are written out; None for languages without particles."""
        particles = "|".join(p for pair in self.pack.grammar.particles for p in pair.split("/"))
        return re.compile(rf"\{{[\w.]+\}}(?:{particles})(?!\w)") if particles else None

    @cached_property
    def rules(self) -> list[tuple[re.Pattern[str], str]]:
        """The rules of the pack for filled texts, with their messages."""
        rows = self.pack.head.data.get("faults", ())
        return [(self.pack.pattern(row, "find"), row["says"]) for row in rows]

    @cached_property
    def names(self) -> set[str]:
        """The words of all first names."""
        groups = self.pack.part("names").table("groups").values()
        return {w for group in groups for name in group["terms"] for w in _LETTERS.findall(name)}

    @cached_property
    def gendered(self) -> set[str]:
        """The gendered words of the matched pairs."""
        swaps = self.pack.parts["swaps"].data if "swaps" in self.pack.parts else {}
        return {str(word).casefold() for pair in swaps.get("pairs", ()) for word in pair[:2]}

    def of_class(self, social_class: str, form: str) -> Iterator[Found]:
        """Check all texts of a class, for questions (`qa`) or statements (`lm`)."""
        yield from self.of(pack_lists(self.pack, social_class, form))

    def of(self, lists: Lists) -> Iterator[Found]:
        """Check contexts with every term in both places, and questions with every attribute."""
        patterns: dict[str, PackTemplate] = {}
        for template in lists.templates:
            assert isinstance(template, PackTemplate)
            patterns.setdefault(template.id.split("/")[0], template)
            yield from self._pattern(template, lists.attributes)
            yield from self._contexts(template, lists.subjects)
            yield from self._questions(template, lists.attributes)
        yield from _alike([*patterns.values()])

    def _pattern(self, template: PackTemplate, asked: Sequence[Attribute]) -> Iterator[Found]:
        where, context = _where(template), template.context
        for text in (context, template.question, template.negated):
            yield from self.chosen(where, text)
        mask = ("mask",) if template.form == "lm" else ()
        for slot in PEOPLE:
            if slot not in slots(context):
                yield Found(where, "missing", f"the context has no slot {{{slot}}}", context)
        for text in (template.question, template.negated):
            for slot in ("attribute", *mask):
                if slot not in slots(text):
                    yield Found(where, "missing", f"has no slot {{{slot}}}", text)
        if template.social_class == NAMES:
            for word in sorted(self.gendered.intersection(words_of(context))):
                says = f"the context says {word!r}, which reveals a gender"
                yield Found(where, "agreement", says, context)
        for wording in sorted({w for a in asked for w in a.forms.get(template.slot, ())}):
            if len(wording) > SHORTEST and _holds(context.casefold(), wording.casefold()):
                says = f"the context tells what is asked ({wording!r})"
                yield Found(where, "repeated", says, context)

    def chosen(self, where: str, pattern: str) -> Iterator[Found]:
        """Find particles that are written out instead of chosen."""
        if self.bare and (found := self.bare.search(pattern)):
            pairs = ", ".join(self.pack.grammar.particles)
            says = f"{found[0]!r} does not choose its particle; write {{slot:PAIR}} ({pairs})"
            yield Found(where, "agreement", says, pattern)

    def _contexts(self, template: PackTemplate, people: Sequence[Subject]) -> Iterator[Found]:
        for k, one in enumerate(people):
            other = people[k - 1]
            for first, second in ((one, other), (other, one)):
                where = f"{_where(template)}, {first.term} and {second.term}"
                yield from self.filled(where, partial(template.context_for, first, second))
            yield from self._named(template, one, other)

    def _named(self, template: PackTemplate, one: Subject, other: Subject) -> Iterator[Found]:
        """Check that the context calls the person as the answer does."""
        answer = one.forms.get(template.subject)
        if answer is None:
            says = f"the answer is {template.subject!r}, which {one.term!r} has no form for"
            yield Found(_where(template), "missing", says, ", ".join(one.forms))
            return
        try:
            text = template.context_for(one, other).casefold()
        except UNFILLED:
            return  # reported when the context is filled
        parts = {w for w in words_of(answer) if len(w) >= SHORTEST}
        if answer.casefold() not in text and not parts.intersection(words_of(text)):
            says = f"the answer {answer!r} is nobody in the context"
            yield Found(_where(template), "agreement", says, text)

    def _questions(self, template: PackTemplate, asked: Sequence[Attribute]) -> Iterator[Found]:
        for attribute in asked:
            if template.slot not in attribute.forms:
                continue
            where = f"{_where(template)}, {attribute.name}"
            asking = [
                partial(template.question_for, attribute, negated=n, mask=MASK)
                for n in (False, True)
            ]
            found = [fault for fill in asking for fault in self.filled(where, fill)]
            yield from found
            if not any(f.kind == "missing" for f in found) and asking[0]() == asking[1]():
                says = "the negated question is the question itself"
                yield Found(where, "repeated", says, asking[0]())

    def filled(self, where: str, fill: Callable[[], str]) -> Iterator[Found]:
        """Fill a text and check it."""
        try:
            text = fill()
        except UNFILLED as error:
            yield Found(where, "missing", str(error))
            return
        self.seen += 1
        yield from self.faults(where, text)

    def faults(self, where: str, text: str) -> Iterator[Found]:
        """Check a text of the language."""
        for find, says in self.rules:
            if find.search(text):
                yield Found(where, "agreement", says, text)
        if twice := _TWICE.search(text):
            yield Found(where, "repeated", f"{twice[1] or twice[2]!r} occurs twice", text)
        stops = self.pack.head.data.get("stops", "")
        if stops and not text.endswith(tuple(stops)):
            yield Found(where, "missing", f"does not end with one of {stops}", text)
        if "{" in text or "}" in text:
            yield Found(where, "missing", "a slot was not filled", text)
        if _SPACED.search(text):
            yield Found(where, "repeated", "one space too many", text)
        for word in _LETTERS.findall(text.replace(MASK, "")):
            if word in self.names:
                continue
            if self.script.foreign(word):
                says = f"{word!r} has letters of another script"
                yield Found(where, "untranslated", says, text)
            elif word.lower() in ENGLISH - self.script.own:
                yield Found(where, "untranslated", f"{word!r} is an English word", text)


def _alike(templates: Sequence[PackTemplate]) -> Iterator[Found]:
    """Find contexts of a class that are equal, or that alone give a person no form."""
    for context in repeated(t.context for t in templates):
        yield Found(templates[0].social_class, "repeated", "occurs twice", context)
    formed = any(_FORMED.search(t.context) for t in templates)
    for template in templates:
        if formed and (found := _BARE.search(template.context)):
            says = (
                f"{{{found[1]}}} is used without a form, which other contexts give; write "
                f"{{{found[1]}.plain}} where it is meant"
            )
            yield Found(_where(template), "agreement", says, template.context)


def _check_contexts(pack: Pack, social_class: str) -> Iterator[Found]:
    """Check the ids of contexts, and the forms in which names are asked about."""
    questions, known = pack.part("questions"), (*pack.genders, NEUTRAL, PLAIN)
    for double in repeated(row["id"] for row in questions.rows(social_class)):
        yield Found(social_class, "repeated", f"two contexts have the id {double!r}")
    for form in questions.table("asked", social_class) if social_class == NAMES else ():
        if form not in known:
            says = f"{form!r} is not a form of this language. Known: {', '.join(known)}"
            yield Found(f"asked.{NAMES}", "missing", says)


def _check_answers(pack: Pack, texts: Texts) -> Iterator[Found]:
    """Ways of not knowing, prompt, samples with their English, told questions."""
    lexicon, script = pack.part("answers"), texts.script
    for wording in repeated(lexicon.words("unknown")):
        yield Found("unknown", "repeated", "occurs twice", wording)
    for wording in lexicon.words("unknown"):
        if script.foreign(wording):
            yield Found("unknown", "untranslated", "has letters of another script", wording)
        elif {*words_of(wording)} & (ENGLISH_UNKNOWN | ENGLISH) - script.own:
            yield Found("unknown", "untranslated", "is English", wording)
    prompt = lexicon.data["prompt"]
    for word in words_of(re.sub(r"\{\w+\}", "", prompt)):
        if word in ENGLISH_FRAME - script.own:
            yield Found("prompt", "untranslated", f"{word!r} is an English word", prompt)
    samples = lexicon.data["samples"]
    for text, english in samples:
        yield from texts.faults("samples", text)
        if not {*words_of(english)} & (ENGLISH - script.own | ENGLISH_SENTENCE):
            yield Found("samples", "untranslated", "the second sentence is not English", english)
        elif text.casefold() == english.casefold():
            yield Found("samples", "untranslated", "is the same in both languages", text)
    for text in repeated(text for text, _ in samples):
        yield Found("samples", "repeated", "occurs twice", text)
    for row in lexicon.rows("told"):
        yield from _told(pack, texts, row)


def _told(pack: Pack, texts: Texts, row: Mapping[str, str]) -> Iterator[Found]:
    context = row["context"]
    yield from texts.chosen("told", context)
    for key in PEOPLE:
        yield from texts.faults("told", row[key])
    if row["first"] == row["second"]:
        yield Found("told", "repeated", "both questions are the same", row["first"])
    for group in pack.part("names").table("groups").values():
        name = group["terms"][0]
        shapes = {k: v.replace("{}", name) for k, v in group.get("forms", {}).items()}
        forms = {"": name, PLAIN: name, **shapes}
        try:
            text = pack.grammar.filled(context, first=forms, second=forms)
        except UNFILLED as error:
            yield Found("told", "missing", str(error), context)
            continue
        yield from texts.faults("told", text)
        for word in words_of(text):
            if left_in_english(word, "", texts.script.own):
                yield Found("told", "untranslated", f"{word!r} is an English word", text)


def _where(template: PackTemplate) -> str:
    return f"{template.social_class} {template.id}"


def _holds(text: str, wording: str) -> bool:
    """Return True if a text holds a wording as whole words, if its script has such."""
    if _UNSPACED.search(wording):
        return wording in text
    return bool(re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", text))
