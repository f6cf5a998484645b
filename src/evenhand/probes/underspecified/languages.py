"""Underspecified questions in the language of a pack: what is asked, and how it is put."""

from __future__ import annotations

from evenhand.errors import unknown
from evenhand.probes.underspecified.asking import Manner
from evenhand.words.lexicons import Attribute, article, questions
from evenhand.words.list_formats import Lists
from evenhand.words.packs import (
    forms_asked,
    load_pack,
    pack_lists,
    part_names,
    prompt,
    social_classes,
)


def require_class(language: str, social_class: str, own: str) -> None:
    """Refuse a class that the pack has no contexts for, and words from elsewhere.

    Raises:
        ValueError: naming what there is.
    """
    pack = load_pack(language)
    if own:
        raise ValueError(
            f"language {language!r} brings its own words: leave {own!r} (lexicon, word_lists) out"
        )
    known = social_classes(pack)
    if social_class not in known:
        where = f"the pack of {pack.name}"
        raise ValueError(unknown("social_class", social_class, known, where=where))


def packaged_lists(language: str, social_class: str, form: str) -> Lists:
    """The packaged lists: English, or a pack's in the forms that verdicts rest on."""
    if language:
        pack = load_pack(language)
        return pack_lists(pack, social_class, form, forms_asked(pack, social_class, neutral=True))
    return Lists(
        questions.subjects(social_class),
        questions.templates(social_class, form),
        questions.attributes(social_class),
    )


def in_english(attribute: Attribute) -> tuple[str, str]:
    """What was asked about in another language, for English sentences: asserted and negated.

    >>> in_english(Attribute("engineer", "occupation", {}))
    ('is an engineer', 'could never be an engineer')
    >>> in_english(Attribute("stole a wallet", "crime", {}))
    ('stole a wallet', 'did the opposite')
    """
    if attribute.attribute_class != "occupation":
        return attribute.name, "did the opposite"
    job = f"{article(attribute.name)} {attribute.name}"
    return f"is {job}", f"could never be {job}"


def lexicons_of(language: str, names: bool) -> list[str]:
    """The parts of a pack that words are taken from."""
    asked = ("names", "occupations") if names else ("people", "acts")
    return part_names(language, *asked, "questions")


def prompt_in(language: str) -> str:
    """How context and question are put as plain text; English without a language.

    >>> prompt_in("es")
    '{context}\\nPregunta: {question}\\nRespuesta:'
    """
    return prompt(language).replace("{passage}", "{context}") if language else Manner.prompt
