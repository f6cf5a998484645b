"""Underspecified questions in the language of a pack.

In a language with grammatical gender a question about a nurse must say enfermero or enfermera, and
a model that answers with a name that agrees knows grammar. Verdicts rest on neutral wordings where
a pack has them (Who works in nursing?); else on all forms, each asked of every pair of names and
every occupation. What the form moves by itself is a factor, told beside the findings, never one.

>>> asked = pack_lists(load_pack("es"), "gender", "qa")
>>> [t.id for t in asked.templates[:3]]
['same_city/masculine', 'same_city/feminine', 'same_city/neutral']
>>> nurse = next(a for a in asked.attributes if a.name == "nurse")
>>> [t.question_for(nurse) for t in asked.templates[:3]]
['¿Quién es enfermero?', '¿Quién es enfermera?', '¿Quién se dedica a la enfermería?']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon
from evenhand.words.lexicons.questions import FORMS, Attribute, Subject, Template
from evenhand.words.list_formats import Lists
from evenhand.words.packs.files import Pack, load_pack
from evenhand.words.packs.grammar import Grammar

__all__ = [
    "PackTemplate",
    "attribute_rows",
    "forms_asked",
    "load_pack",
    "pack_lists",
    "social_classes",
]
NAMES = "gender"
"""The class whose terms are first names; the others are in people.toml."""
PLAIN = "plain"
NEUTRAL = "neutral"
"""The form of an attribute, and of a question, that says nothing of grammatical gender."""


@dataclass(frozen=True, slots=True)
class PackTemplate(Template):
    """A template whose slots agree by the rules of its pack."""

    grammar: Grammar = field(default_factory=Grammar, hash=False, repr=False)

    def context_for(self, first: Subject, second: Subject) -> str:
        """Fill in the two subjects.

        >>> lists = pack_lists(load_pack("ko"), "gender", "qa")
        >>> lists.templates[0].context_for(lists.subjects[0], lists.subjects[-1])
        '민지는 성민과 같은 도시에 삽니다.'
        """
        return self.grammar.filled(
            self.context, first=self._forms(first), second=self._forms(second)
        )

    def question_for(
        self, attribute: Attribute, *, negated: bool = False, mask: str = "[MASK]"
    ) -> str:
        pattern = self.negated if negated else self.question
        said = {"": attribute.forms[self.slot][negated]}
        return self.grammar.filled(pattern, attribute=said, mask={"": mask})

    def _forms(self, subject: Subject) -> dict[str, str]:
        return {"": subject.forms[self.subject], **subject.forms}


def social_classes(pack: Pack) -> tuple[str, ...]:
    """The classes that a pack has contexts for, gender first."""
    listed = pack.part("questions").data
    return tuple(k for k, v in listed.items() if isinstance(v, tuple))


def forms_asked(pack: Pack, social_class: str, *, neutral: bool = False) -> tuple[str, ...]:
    """The forms in which a class is asked about; only those that verdicts rest on.

    >>> forms_asked(load_pack("es"), "gender"), forms_asked(load_pack("es"), "gender", neutral=True)
    (('masculine', 'feminine', 'neutral'), ('neutral',))
    """
    known = tuple(pack.part("questions").table("asked", social_class))
    return (NEUTRAL,) if neutral and NEUTRAL in known else known


def pack_lists(
    pack: Pack, social_class: str, form: str, slots: Sequence[str] | None = None
) -> Lists:
    """Subjects, templates and attributes of a class, for questions (`qa`) or statements (`lm`).

    Args:
        slots: the forms to ask in (`forms_asked`); all when not given.

    Raises:
        SpecError: the pack has no such class, or one of its rows lacks something.
    """
    known = social_classes(pack)
    if social_class not in known:
        where = f"the pack of {pack.name}"
        raise SpecError(unknown("social class", social_class, known, where=where))
    if form not in FORMS:
        raise SpecError(unknown("template form", form, FORMS))
    people = _names(pack) if social_class == NAMES else _people(pack, social_class)
    chosen = tuple(slots or forms_asked(pack, social_class))
    asked = (a for a in _attributes(pack, social_class) if set(chosen) & a.forms.keys())
    return Lists(tuple(people), tuple(_templates(pack, social_class, form, chosen)), tuple(asked))


def _names(pack: Pack) -> Iterator[Subject]:
    held = pack.part("names")
    for name in held.table("groups"):
        group = held.table("groups", name)
        shapes = group.get("forms", {})
        for term in held.words("groups", name, "terms"):
            forms = {PLAIN: term, **{k: v.replace("{}", term) for k, v in shapes.items()}}
            agreed = {k: pack.grammar.agreed(v) for k, v in forms.items()}
            yield Subject(term, name, agreed, dict(group.get("axis", {NAMES: name})))


def _people(pack: Pack, social_class: str) -> Iterator[Subject]:
    """Terms with the forms that are written, and those made of them (`shapes`)."""
    held = pack.part("people")
    shapes = held.table("shapes") if "shapes" in held.data else {}
    for row in held.rows(social_class):
        term = held.text(row, "term")
        written = {k: str(v) for k, v in row.items() if isinstance(v, str) and k != "term"}
        made = {k: _shaped(held, shape, written, term) for k, shape in shapes.items()}
        forms = {PLAIN: written.get(PLAIN, term), **written, **made}
        agreed = {k: pack.grammar.agreed(v) for k, v in forms.items()}
        yield Subject(term, term, agreed, {})


def _shaped(held: Lexicon, shape: str, written: Mapping[str, str], term: str) -> str:
    try:
        return str(shape).format(**written)
    except KeyError as error:
        raise SpecError(
            f"{held.path}: {term!r} has no form {error}, which {shape!r} needs. It has: "
            f"{', '.join(written)}."
        ) from None


def _templates(
    pack: Pack, social_class: str, form: str, slots: Sequence[str]
) -> Iterator[PackTemplate]:
    """Every context in every form."""
    held = pack.part("questions")
    asked = held.table("asked", social_class)
    for row in held.rows(social_class):
        for slot in slots:
            wording = asked[slot]
            subject = str(row.get("answer", PLAIN))
            yield PackTemplate(
                id=f"{held.text(row, 'id')}/{slot}" if len(slots) > 1 else held.text(row, "id"),
                social_class=social_class,
                form=form,
                context=held.text(row, "context"),
                question=held.text(wording, form),
                negated=held.text(wording, f"{form}_negated"),
                slot=slot,
                subject=subject,
                grammar=pack.grammar,
            )


def attribute_rows(pack: Pack, social_class: str) -> tuple[Lexicon, tuple[Mapping[str, Any], ...]]:
    """What is asked about a class: occupations for names, acts for the others."""
    held = pack.part("occupations" if social_class == NAMES else "acts")
    return held, held.rows("attributes")


def _attributes(pack: Pack, social_class: str) -> Iterator[Attribute]:
    held, rows = attribute_rows(pack, social_class)
    slots = pack.part("questions").table("asked", social_class)
    for row in rows:
        forms = {slot: _both(held, row, slot) for slot in slots if slot in row}
        yield Attribute(held.text(row, "name"), held.text(row, "class"), forms)


def _both(held: Lexicon, row: Mapping[str, Any], slot: str) -> tuple[str, str]:
    """The asserted and the negated wording; one word stands for both."""
    match row[slot]:
        case str() as one if one.strip():
            return one, one
        case (str() as asserted, str() as negated):
            return asserted, negated
    raise SpecError(
        f"{held.path}: attribute {row.get('name')!r}: {slot!r} is {row[slot]!r}. Accepted: a word, "
        "or two wordings, the asserted and the negated one."
    )
