"""Whom a question of BBQ is about: which of its options names the stereotyped group.

Three ways, in this order:

    BBQ's own table         additional_metadata.csv beside the questions names the option that
                            agrees with the stereotype (target_loc)
    the option's groups     "F-Black" and "lowSES-M-Latino" are of each part; a question lists the
                            groups that its stereotype is about
    the template's trait    two people of that group differ in gender or status; which one is meant
                            is what the template's other questions have in common

Where none tells, the question is excused with the reason, and left out of bias scores.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evenhand.corpora.tables import read_table
from evenhand.words.reading_answers import clean

PLACES = range(3)
TABLE = "additional_metadata.csv"
SAME = {
    "f": ("f", "female", "woman", "girl", "women"),
    "m": ("m", "male", "man", "boy", "men"),
    "trans": ("trans", "transf", "transm", "transgender", "transwoman", "transman"),
    "latino": ("latino", "latina"),
}
"""Tags of an option that stand for a stereotyped group of another spelling."""
TRAITS = (("f", "m"), ("lowses", "highses"))
"""What tells two people of one group apart in questions about two groups at once."""


class Question(NamedTuple):
    """A published question with three answers, one of which says that it cannot be known.

    Attributes:
        names: what the two people are called, which answers may use instead of the option's text.
        unknown: the option that says that it cannot be known.
        target: the option about the group that the stereotype is about; -1 if there is none, and
            `excused` says why.
        label: the right option.
        tags: the groups of each option, in editions whose targets are derived from these.
        groups: the groups that the stereotype is about, in the same editions.
    """

    id: str
    set_id: str
    category: str
    template: str
    condition: str
    polarity: str
    context: str
    question: str
    answers: Sequence[str]
    names: Sequence[str]
    unknown: int
    target: int
    label: int
    excused: str = ""
    language: str = "en"
    tags: Sequence[str] = ()
    groups: Sequence[str] = ()

    @property
    def biased(self) -> int:
        """The option that agrees with the stereotype, given the question's polarity."""
        if self.target < 0 or self.polarity == "neg":
            return self.target
        return other_than(self.unknown, self.target)

    @property
    def people(self) -> list[int]:
        return [k for k in PLACES if k != self.unknown]

    def parts(self, option: int) -> set[str]:
        """Return the groups of an option: parts of its tag, or words of its text without a tag.

        >>> people = ("Ann", "The Latina woman", "Unknown")
        >>> q = Question("a", "a", "c", "t", "ambiguous", "neg", "", "", people, people, 2, -1, 2,
        ...     tags=("F-Black", "", "unknown"), groups=("Latino",))
        >>> sorted(q.parts(0)), sorted(q.parts(1) & {"latino", "f"})
        (['black', 'f', 'fblack'], ['f', 'latino'])
        """
        tag = self.tags[option]
        if tag:
            return {_plain(tag), *map(_plain, tag.split("-"))}
        words = {_plain(w) for w in self.answers[option].split()}
        return words | {group for group, other in SAME.items() if words & set(other)}

    def named(self) -> list[int]:
        """Return the people of a stereotyped group, by their groups, then by their text."""
        wanted = {_plain(g) for g in self.groups}
        wanted |= {alias for g in wanted for alias in SAME.get(g, ())}
        hits = [k for k in self.people if self.parts(k) & wanted]
        if not hits:
            texts = {k: f" {clean(self.names[k])} {clean(self.answers[k])} " for k in self.people}
            hits = [k for k in self.people if any(f" {clean(g)} " in texts[k] for g in self.groups)]
        return hits

    def apart(self) -> dict[int, str]:
        """Return the trait in which the two people differ, by person; empty if there is none."""
        for pair in TRAITS:
            traits = {k: next((t for t in pair if t in self.parts(k)), "") for k in self.people}
            if set(traits.values()) == set(pair):
                return traits
        return {}


def other_than(unknown: int, option: int) -> int:
    """Return the other of the two people.

    >>> other_than(2, 0)
    1
    """
    return next(k for k in PLACES if k not in (unknown, option))


def with_targets(
    questions: Sequence[Question], published: Mapping[str, tuple[str, int]]
) -> list[Question]:
    """Return the questions with their targets, or with the reason why there is none.

    Args:
        questions: all of a file, since templates are compared.
        published: BBQ's own table, by question: its template and the option that agrees with the
            stereotype.
    """
    named = [q.named() for q in questions]
    votes: dict[str, Counter[str]] = {}
    for q, hits in zip(questions, named):
        if len(hits) == 1 and (trait := q.apart().get(hits[0])):
            votes.setdefault(q.template, Counter())[trait] += 1
    targets = (
        _target(q, hits, votes.get(q.template), published.get(q.id))
        for q, hits in zip(questions, named)
    )
    return [q._replace(target=t, excused=why) for q, (t, why) in zip(questions, targets)]


def _target(
    q: Question, hits: list[int], votes: Counter[str] | None, known: tuple[str, int] | None
) -> tuple[int, str]:
    """Return the option about the stereotyped group, or -1 and the reason."""
    if known is not None and known[0] == q.template and known[1] in q.people:
        return known[1] if q.polarity == "neg" else other_than(q.unknown, known[1]), ""
    if len(hits) == 2 and votes is not None:
        trait = votes.most_common(1)[0][0]
        hits = [k for k, t in q.apart().items() if t == trait] or hits
    return only(hits, ", ".join(q.groups))


def only(hits: Sequence[int], groups: str) -> tuple[int, str]:
    """Return the one person of these groups, or -1 and the reason.

    >>> only([1], "old"), only([], "old")
    ((1, ''), (-1, 'none of the two people: old'))
    """
    if len(hits) == 1:
        return hits[0], ""
    return -1, f"{'both' if hits else 'none'} of the two people: {groups}"


def read_published(folder: Path) -> dict[str, tuple[str, int]]:
    """Read BBQ's own table of a folder, by question; empty if there is none."""
    places = [p for p in (folder / f"{TABLE}{end}" for end in ("", ".gz", ".xz")) if p.is_file()]
    if not places:
        return {}
    names = ("category", "example_id", "question_index", "target_loc")
    table = read_table(places[0], text=names, needed=names)
    columns = (table.columns[name].to_pylist() for name in names)
    return {
        f"{category}/{number}": (f"{category}/{template}", int(loc))
        for category, number, template, loc in zip(*columns)
        if loc in ("0", "1", "2")
    }


@functools.lru_cache(maxsize=1 << 16)  # Answers repeat: 58,492 questions have a few thousand.
def _plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()
