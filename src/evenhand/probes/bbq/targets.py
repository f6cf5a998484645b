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
from dataclasses import dataclass
from pathlib import Path

from evenhand.corpora.tables import read_table
from evenhand.words.reading_answers import clean

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


@dataclass(frozen=True)
class Question:
    """What a question says about its three options; `none` says that it cannot be known."""

    id: str
    template: str
    polarity: str
    tags: Sequence[str]
    names: Sequence[str]
    answers: Sequence[str]
    groups: tuple[str, ...]
    none: int

    @property
    def people(self) -> list[int]:
        return [k for k in range(3) if k != self.none]

    def parts(self, option: int) -> set[str]:
        """The groups of an option: parts of its tag; words of its text where it has no tag.

        >>> q = Question("a", "t", "neg", ("F-Black", "", "unknown"), ("", "", ""),
        ...     ("Ann", "The Latina woman", "Unknown"), ("Latino",), 2)
        >>> sorted(q.parts(0)), sorted(q.parts(1) & {"latino", "f"})
        (['black', 'f', 'fblack'], ['f', 'latino'])
        """
        tag = self.tags[option]
        if tag:
            return {_plain(tag), *map(_plain, tag.split("-"))}
        words = {_plain(w) for w in self.answers[option].split()}
        return words | {group for group, other in SAME.items() if words & set(other)}

    def named(self) -> list[int]:
        """The people of a stereotyped group, by their groups, then by their text (demonyms)."""
        wanted = {_plain(g) for g in self.groups}
        wanted |= {alias for g in wanted for alias in SAME.get(g, ())}
        hits = [k for k in self.people if self.parts(k) & wanted]
        if not hits:
            texts = {k: f" {clean(self.names[k])} {clean(self.answers[k])} " for k in self.people}
            hits = [k for k in self.people if any(f" {clean(g)} " in texts[k] for g in self.groups)]
        return hits

    def apart(self) -> dict[int, str]:
        """The trait in which the two people differ, by person; empty when there is none."""
        for pair in TRAITS:
            found = {k: next((t for t in pair if t in self.parts(k)), "") for k in self.people}
            if set(found.values()) == set(pair):
                return found
        return {}


def resolved(
    questions: Sequence[Question], published: Mapping[str, tuple[str, int]]
) -> list[tuple[int, str]]:
    """Per question the option about the stereotyped group, or -1 and why there is none.

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
    return [
        _target(q, hits, votes.get(q.template), published.get(q.id))
        for q, hits in zip(questions, named)
    ]


def _target(
    q: Question, hits: list[int], votes: Counter[str] | None, known: tuple[str, int] | None
) -> tuple[int, str]:
    if known is not None and known[0] == q.template and known[1] in q.people:
        other = next(k for k in q.people if k != known[1])
        return known[1] if q.polarity == "neg" else other, ""
    if len(hits) == 2 and votes is not None:
        trait = votes.most_common(1)[0][0]
        hits = [k for k, found in q.apart().items() if found == trait] or hits
    if len(hits) == 1:
        return hits[0], ""
    return -1, f"{'both' if hits else 'none'} of the two people: {', '.join(q.groups)}"


def read_published(folder: Path) -> dict[str, tuple[str, int]]:
    """BBQ's own table of a folder, by question; empty where there is none."""
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


@functools.lru_cache(maxsize=1 << 16)  # answers repeat: 58,492 questions have a few thousand
@functools.lru_cache(maxsize=1 << 16)
def _plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()
