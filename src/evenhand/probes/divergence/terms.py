"""Terms of groups in matched rows, control terms of the same form, and lists of next words.

    terms in rows            control rows               next words after "The ... was very"
    woman / man              visitor, guest, tourist    good, kind ...  or  bad, cruel ...
    mother / father          parent, spouse ...

The words of a row differ in the group and, as far as English allows, in nothing else. Control rows
hold people who are described without a group: how they differ within a row is what changing a word
does by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.compare.items import Items
from evenhand.corpora.tables import read_table
from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons import people
from evenhand.words.lexicons.files import Lexicon, load

SLOT = "{person}"
CONTROL = "control"
Terms = tuple[tuple[str, ...], ...]
SEE = "See docs/lexicons.md"
ITEMS = ("axis", "form", "list", "row", "group", "term", "prompt", "text", "side", "word")


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
    >>> some.openings[1]
    'The {person} seemed'
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


class Block(NamedTuple):
    """Rows of terms asked about one list: those of an axis, or the controls of a form."""

    axis: str
    form: str
    listed: WordList
    groups: tuple[str, ...]
    terms: Terms


class Pair(NamedTuple):
    """Two contexts, which axis and groups they compare, and the prompt they fill."""

    axis: str
    group_a: str
    group_b: str
    prompt: str
    context_a: str
    context_b: str


@dataclass(frozen=True)
class Material:
    """Everything a run asks about: axes, control rows by form, lists by name.

    Attributes:
        distances: pairs of contexts with their distances, where these were asked for.
    """

    axes: tuple[Axis, ...]
    controls: Mapping[str, Terms]
    lists: Mapping[str, WordList]
    distances: Items | None = None

    def blocks(self) -> list[Block]:
        """Each axis with its lists, then each form of controls with the judged lists it serves."""
        blocks = [
            Block(a.name, a.form, self.lists[name], a.groups, a.terms)
            for a in self.axes
            for name in a.lists
        ]
        served = dict.fromkeys((b.form, b.listed.name) for b in blocks if b.listed.judged)
        return blocks + [
            Block(CONTROL, form, self.lists[name], (), self.controls[form])
            for form, name in served
            if self.controls[form]
        ]

    def questions(self) -> Items:
        """One question per term and word."""
        rows = []
        for axis, form, listed, groups, terms in self.blocks():
            sides = ["first"] * len(listed.first) + ["second"] * len(listed.second)
            words = list(zip(listed.openings, sides, listed.words))
            for number, row in enumerate(terms):
                for group, term in zip(groups or [""] * len(row), row):
                    about = (axis, form, listed.name, number, group, term)
                    rows += [(*about, o, fill(o, term), side, word) for o, side, word in words]
        example = f"{rows[0][ITEMS.index('text')]} ... {rows[0][-1]}"
        return Items(dict(zip(ITEMS, zip(*rows))), about=self, example=example)

    def swaps(self) -> list[Pair]:
        """Every two terms of every row after the first opening of each list: for the distances."""
        swaps = []
        for axis in self.axes:
            judged = [self.lists[name] for name in axis.lists if self.lists[name].judged]
            controls = f"{CONTROL}, {axis.form}"
            for frame in dict.fromkeys(words.frames[0] for words in judged):
                for row in axis.terms:
                    for (a, one), (b, two) in combinations(zip(axis.groups, row), 2):
                        contexts = fill(frame, one), fill(frame, two)
                        swaps.append(Pair(axis.name, a, b, frame, *contexts))
                for row in self.controls[axis.form]:
                    for one, two in combinations(row, 2):
                        contexts = fill(frame, one), fill(frame, two)
                        swaps.append(Pair(controls, one, two, frame, *contexts))
        return list(dict.fromkeys(swaps))


def fill(frame: str, term: str) -> str:
    """An opening with a term in its slot."""
    return frame.replace(SLOT, term)


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
    lists = dict.fromkeys(lexicon.words("matched", name, "lists"))
    return Axis(name, lexicon.text(table, "form"), groups, rows, tuple(lists))


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


def pair_items(pairs: Sequence[Pair], about: Any = None) -> Items:
    """Pairs of contexts as items."""
    columns = zip(*pairs) if pairs else [()] * len(Pair._fields)
    example = f"{pairs[0].context_a} | {pairs[0].context_b}" if pairs else ""
    return Items(dict(zip(Pair._fields, columns)), about=about, example=example)


def published_pairs(axes: Sequence[str], lexicon: str) -> list[Pair]:
    """The ten local prompts of Liang et al. with every two groups of the axes."""
    listed = [p for axis in axes for p in people.context_pairs(axis, lexicon=lexicon)]
    distinct = {(p.axis, p.term_a, p.term_b): p for p in listed}.values()
    return [
        Pair(
            p.axis, p.group_a, p.group_b, prompt, *(_named(prompt, t) for t in (p.term_a, p.term_b))
        )
        for p in distinct
        for prompt in people.prompts("local")
    ]


def _named(prompt: str, term: str) -> str:
    """A prompt with a term; names of people have no article."""
    text = fill(prompt, term)
    return text if term[0].islower() or " " in term else text.removeprefix("The ")


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs: a table with `context_a, context_b`, optionally `group_a, group_b, axis`."""
    contexts = ("context_a", "context_b")
    table = read_table(path, text=(*contexts, "group_a", "group_b", "axis"), needed=contexts)
    sides = [table.labels(name) for name in contexts]
    axes, groups = table.texts("axis", "pairs"), (table.texts(f"group_{k}", k) for k in "ab")
    return [Pair(*row) for row in zip(axes, *groups, map(str, range(table.n_rows)), *sides)]
