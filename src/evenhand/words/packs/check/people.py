"""Words for people: names by group, jobs and acts in every form, terms that agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.words.lexicons.files import Lexicon
from evenhand.words.packs import NAMES, NEUTRAL, PLAIN, Pack, attribute_rows
from evenhand.words.packs.check.faults import (
    Fault,
    foreign,
    left_in_english,
    own_words,
    regular,
    repeated,
    script_of,
    wordings,
    words_of,
)

GENDERS = {"female": "feminine", "male": "masculine"}
"""The grammatical gender of the articles that names of a group take."""


def names(pack: Pack) -> Iterator[Fault]:
    """Groups of names: of equal size, nobody in two of them, articles of their own."""
    held = pack.part("names")
    yield from (Fault(held.path.name, *fault) for fault in _names(pack, held))


def _names(pack: Pack, held: Lexicon) -> Iterator[tuple[str, ...]]:
    groups = {name: held.words("groups", name, "terms") for name in held.table("groups")}
    bearers = Counter(t for terms in groups.values() for t in {x.casefold() for x in terms})
    for name, terms in groups.items():
        for term, count in Counter(terms).items():
            shared = bearers[term.casefold()] > 1
            if count > 1 or shared:
                says = "is in two groups" if shared else "is listed twice"
                yield name, "repeated", f"{term!r} {says}"
            if not term.strip() or " ".join(term.split()) != term:
                yield name, "missing", f"{term!r} is not a name, or has spaces around it"
            if found := foreign(term, script_of(pack)):
                yield name, "untranslated", f"{found!r} has letters of another script"
    if len(groups) < 2 or not all(groups.values()):
        yield "groups", "missing", "there are not two groups with names in them"
    elif len({len(terms) for terms in groups.values()}) > 1:
        sizes = ", ".join(f"{name} {len(terms)}" for name, terms in groups.items())
        yield "groups", "balance", f"groups of unequal size: {sizes}"
    tables = {name: held.table("groups", name) for name in groups}
    axes = [str(table.get("axis", {}).get(NAMES, name)) for name, table in tables.items()]
    for axis in repeated(axes):
        yield "groups", "repeated", f"two groups are {axis!r} (axis.{NAMES})"
    yield from _name_forms(pack, {n: dict(t.get("forms", {})) for n, t in tables.items()})


def _name_forms(pack: Pack, shapes: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    """Forms of a name: the same ones in every group, with the name in them, and its article."""
    known = {form for forms in shapes.values() for form in forms}
    markers = pack.head.data.get("markers", {})
    for name, forms in shapes.items():
        for form in sorted(known - forms.keys()):
            yield name, "missing", f"has no form {form!r}, which another group has"
        for form, shape in forms.items():
            if "{}" not in shape:
                yield name, "missing", f"{form!r} has no place {{}} for the name", shape
            first = words_of(shape)[:1]
            mine = GENDERS.get(name, "")
            other = [g for g, words in markers.items() if g != mine and {*first} & {*words}]
            if mine in markers and other and not {*first} & {*markers[mine]}:
                yield name, "agreement", f"{form!r} has the article of the {other[0]}", shape


def attributes(pack: Pack, social_class: str) -> Iterator[Fault]:
    """What is asked about a class, in every form, and as no other row says it."""
    held, rows = attribute_rows(pack, social_class)
    asked = tuple(pack.part("questions").table("asked", social_class))
    for fault in _attributes(pack, social_class, rows, asked):
        yield Fault(held.path.name, *fault)
    if social_class == NAMES:
        for form in asked:
            if form not in (*pack.genders, NEUTRAL, PLAIN):
                known = ", ".join((*pack.genders, NEUTRAL, PLAIN))
                says = f"{form!r} is not a form of this language. Known: {known}"
                yield Fault("questions.toml", f"asked.{social_class}", "missing", says)


def _attributes(
    pack: Pack, social_class: str, rows: tuple[Mapping[str, Any], ...], asked: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    own, script = own_words(pack), script_of(pack)
    if not rows:
        yield social_class, "missing", "nothing to ask about"
    for name in repeated(str(row.get("name")) for row in rows):
        yield name, "repeated", "two rows have this name"
    for form in asked:
        for double in repeated(wordings(row, (form,)).get(form, ("",))[0] for row in rows):
            if double:
                yield form, "repeated", "two rows are worded alike", double
    for row in rows:
        name = str(row.get("name"))
        for form in asked:
            if form not in row:
                yield name, "missing", f"has no form {form!r}"
        known = {"name", "class", "common", PLAIN, *pack.genders, *asked}
        for key in sorted(row.keys() - known):
            yield name, "missing", f"{key!r} is asked nowhere. Known: {', '.join(sorted(known))}"
        for form, said in wordings(row, asked).items():
            for text in said:
                if word := left_in_english(text, name, own):
                    says = f"{word!r} is English ({form}); own words go to also_words"
                    yield name, "untranslated", says, text
                elif word := foreign(text, script):
                    yield name, "untranslated", f"{word!r} has letters of another script", text
        yield from _gendered(pack, name, row)
        yield from _neutral(pack, name, row)


def _neutral(pack: Pack, name: str, row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A neutral wording holds none of the gendered words that it stands for."""
    forms = {str(row[g]).casefold() for g in pack.genders if isinstance(row.get(g), str)}
    if NEUTRAL not in row or row.get("common") or not isinstance(row[NEUTRAL], str):
        return
    for word in words_of(row[NEUTRAL]):
        if word in forms:
            yield name, "agreement", f"the neutral wording has a gender ({word!r})", row[NEUTRAL]


def terms(pack: Pack, social_class: str) -> Iterator[Fault]:
    """Words for the people of a class, in every gender."""
    if social_class not in getattr(pack.parts.get("people"), "data", {}):
        return
    held = pack.part("people")
    rows = held.rows(social_class)
    yield from (Fault(held.path.name, *fault) for fault in _terms(pack, rows, social_class))


def _terms(
    pack: Pack, rows: tuple[Mapping[str, Any], ...], social_class: str
) -> Iterator[tuple[str, ...]]:
    own, script = own_words(pack), script_of(pack)
    if len(rows) < 2:
        yield social_class, "missing", "fewer than two terms: nobody to compare"
    for term in repeated(str(row.get("term")) for row in rows):
        yield social_class, "repeated", f"two rows are about {term!r}"
    for form in sorted({key for row in rows for key in row} - {"term", "common"}):
        for said in repeated(str(row[form]) for row in rows if form in row):
            yield social_class, "repeated", f"two rows have the same {form!r}", said
    for row in rows:
        name = str(row.get("term"))
        for gender in pack.genders:
            if gender not in row:
                yield name, "missing", f"has no form {gender!r}"
        for key, text in row.items():
            if key == "term" or not isinstance(text, str):
                continue
            if word := left_in_english(text, name, own):
                says = f"{word!r} is English ({key}); own words go to also_words"
                yield name, "untranslated", says, text
            elif word := foreign(text, script):
                yield name, "untranslated", f"{word!r} has letters of another script", text
        yield from _gendered(pack, name, row, endings=False)


def _gendered(
    pack: Pack, name: str, row: Mapping[str, Any], *, endings: bool = True
) -> Iterator[tuple[str, ...]]:
    """Articles and endings that belong to another gender; forms that are alike and not said so."""
    given = {g: str(row[g]) for g in pack.genders if isinstance(row.get(g), str)}
    markers = pack.head.data.get("markers", {})
    wrong = pack.head.data.get("wrong_endings", {}) if endings else {}
    alike = len(set(given.values())) < len(given)
    for gender, word in given.items():
        first = (word.split() or [""])[0].lower()
        other = [g for g, known in markers.items() if g != gender and first in known]
        if other and first not in markers.get(gender, ()):
            yield name, "agreement", f"the {gender} form has the article of the {other[0]}", word
        if gender in wrong and not alike and regular(pack, str(wrong[gender])).search(word):
            yield name, "agreement", f"the {gender} form ends as another gender's does", word
    if alike and not row.get("common"):
        says = "is the same in two genders; say so with common = true, or give both forms"
        yield name, "agreement", says, ", ".join(given.values())
    if row.get("common") and len(given) > 1 and not alike:
        says = "common = true, but the forms differ"
        yield name, "agreement", says, ", ".join(given.values())
