"""Contexts that differ only in the group named, prompts, and sets of gendered terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon, load


@dataclass(frozen=True, slots=True)
class ContextPair:
    """Two contexts that are the same but for the term of a group.

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
    return tuple(pair for name in chosen for pair in _pairs(found, name))


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


def _pairs(lexicon: Lexicon, axis: str) -> Iterator[ContextPair]:
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
