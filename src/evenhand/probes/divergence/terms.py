"""Terms of groups in matched rows, control terms of the same form, and lists of next words.

    terms in rows            control rows               next words after "The ... was very"
    woman / man              visitor, guest, tourist    good, kind ...  or  bad, cruel ...
    mother / father          parent, spouse ...

The words of a row differ in the group and, as far as English allows, in nothing else. Control rows
hold people who are described without a group: how they differ within a row is what changing a word
does by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import SpecError, unknown
from evenhand.requests import Continuation
from evenhand.words.lexicons.files import Lexicon, load

SLOT = "{person}"
CONTROL = "control"
Terms = tuple[tuple[str, ...], ...]
SEE = "See docs/lexicons.md"


@dataclass(frozen=True)
class Axis:
    """Groups that are compared: one row of terms per way of naming them."""

    name: str
    form: str
    groups: tuple[str, ...]
    terms: Terms
    lists: tuple[str, ...]


@dataclass(frozen=True)
class WordList:
    """Two sides of next words, and the openings they are asked after.

    A word is asked after one opening, the words of a side after all in turn, so that more openings
    cost no more questions.

    >>> some = WordList("valence", "praise or blame", ("praise", "blame"), ("good", "kind"),
    ...     ("bad", "cruel"), ("The {person} was very", "The {person} seemed"))
    >>> some.asked("guest")[1]
    ('The guest seemed', ' kind')
    """

    name: str
    about: str
    labels: tuple[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]
    frames: tuple[str, ...]
    judged: bool = True

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.first, *self.second)

    @property
    def openings(self) -> tuple[str, ...]:
        """The opening of each word."""
        turn = len(self.frames)
        return tuple(
            self.frames[i % turn] for s in (self.first, self.second) for i in range(len(s))
        )

    def asked(self, term: str) -> list[tuple[str, str]]:
        """Text before and word, for every word of the list."""
        return [(f.replace(SLOT, term), f" {w}") for f, w in zip(self.openings, self.words)]


@dataclass(frozen=True)
class Block:
    """Rows of terms asked about one list: those of an axis, or the controls of a form."""

    axis: str
    form: str
    listed: WordList
    groups: tuple[str, ...]
    terms: Terms

    @property
    def size(self) -> int:
        return sum(map(len, self.terms)) * len(self.listed.words)

    def asked(self) -> Iterator[tuple[str, str]]:
        return (pair for row in self.terms for term in row for pair in self.listed.asked(term))

    def columns(self) -> dict[str, list[Any]]:
        """What each question is about, in the order in which it is asked."""
        sides = ["first"] * len(self.listed.first) + ["second"] * len(self.listed.second)
        out: dict[str, list[Any]] = {name: [] for name in ITEMS}
        for number, row in enumerate(self.terms):
            for place, term in enumerate(row):
                group = self.groups[place] if self.groups else ""
                for side, word, (text, _), frame in zip(
                    sides, self.listed.words, self.listed.asked(term), self.listed.openings
                ):
                    about = (self.axis, self.form, self.listed.name, number, group, term)
                    for name, value in zip(ITEMS, (*about, frame, text, side, word)):
                        out[name].append(value)
        return out


ITEMS = ("axis", "form", "list", "row", "group", "term", "prompt", "text", "side", "word")


@dataclass(frozen=True)
class Material:
    """Everything a run asks about: axes, control rows by form, lists by name."""

    axes: tuple[Axis, ...]
    controls: Mapping[str, Terms]
    lists: Mapping[str, WordList]

    def blocks(self) -> list[Block]:
        """Each axis with its lists, then each form of controls with the judged lists it serves."""
        own = [
            Block(a.name, a.form, self.lists[name], a.groups, a.terms)
            for a in self.axes
            for name in a.lists
        ]
        served = dict.fromkeys((b.form, b.listed.name) for b in own if b.listed.judged)
        return own + [
            Block(CONTROL, form, self.lists[name], (), self.controls[form])
            for form, name in served
            if self.controls[form]
        ]


def requests(blocks: Sequence[Block]) -> Continuation:
    """One question per term and word."""
    asked = [pair for block in blocks for pair in block.asked()]
    return Continuation([text for text, _ in asked], [word for _, word in asked])


def material(
    axes: Sequence[str], *, lexicon: str, controls: str, lists: str, prompts: int, words: int
) -> Material:
    """The axes of a lexicon with the controls of their forms and the lists they are asked about.

    >>> found = material(["gender"], lexicon="contexts", controls="divergence_controls",
    ...     lists="next_words", prompts=4, words=8)
    >>> found.axes[0].terms[0], sum(map(len, found.controls["noun"])), list(found.lists)
    (('woman', 'man'), 42, ['valence', 'jobs', 'grammar'])
    """
    source = load(lexicon)
    chosen = tuple(_axis(source, name) for name in dict.fromkeys(axes))
    neutral, words_of = load(controls), load(lists)
    forms = neutral.table("forms")
    names = dict.fromkeys(name for axis in chosen for name in axis.lists)
    return Material(
        chosen,
        {a.form: _rows(neutral, "forms", a.form) if a.form in forms else () for a in chosen},
        {name: _list(words_of, name, prompts, words) for name in names},
    )


def _axis(lexicon: Lexicon, name: str) -> Axis:
    known = lexicon.table("matched")
    if name not in known:
        raise SpecError(unknown("axis", name, known, where=str(lexicon.path)))
    table = lexicon.table("matched", name)
    groups = lexicon.words("matched", name, "groups")
    rows = _rows(lexicon, "matched", name)
    for row in rows:
        if len(row) != len(groups) or len(groups) < 2:
            raise SpecError(
                f"{lexicon.path}: axis {name!r} has the row {list(row)!r} for the groups "
                f"{list(groups)!r}. Accepted: one term per group, two groups or more. {SEE}"
            )
    lists = lexicon.words("matched", name, "lists")
    return Axis(name, lexicon.text(table, "form"), groups, rows, lists)


def _rows(lexicon: Lexicon, *keys: str) -> Terms:
    rows: Any = lexicon.table(*keys).get("terms")
    good = isinstance(rows, tuple) and rows and all(isinstance(r, tuple) and r for r in rows)
    if not good or not all(isinstance(term, str) for row in rows for term in row):
        raise SpecError(
            f"{lexicon.path}: 'terms' of {'.'.join(keys)} is {rows!r}. Accepted: a list of rows, "
            f"each a list of terms. {SEE}"
        )
    return tuple(rows)


def _list(lexicon: Lexicon, name: str, prompts: int, words: int) -> WordList:
    known = lexicon.table("lists")
    if name not in known:
        raise SpecError(unknown("list", name, known, where=str(lexicon.path)))
    table = lexicon.table("lists", name)
    frames = lexicon.words("lists", name, "frames")[:prompts]
    for frame in frames:
        if SLOT not in frame:
            raise SpecError(f"{lexicon.path}: opening {frame!r} has no slot {SLOT}. {SEE}")
    first, second = (lexicon.words("lists", name, side)[:words] for side in ("first", "second"))
    labels = lexicon.text(table, "first_label"), lexicon.text(table, "second_label")
    judged = bool(table.get("judged", True))
    return WordList(name, lexicon.text(table, "about"), labels, first, second, frames, judged)
