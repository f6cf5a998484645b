"""Which texts are scored, and what a model's numbers on them mean.

    {name} returned the headphones.     ->   Lakisha returned ...      Emily returned ...
    A {person} asked the driver.        ->   A Muslim woman asked ...  A tall woman asked ...

The same text is scored with other names, other words for people, or in another dialect. Texts are
evenhand's own, or the user's: with a slot, or plain texts in which a known name, or a word for an
identity before a noun for people, stands where the slot would be. Of a model's labels the one that
harms the person counts, and the texts that are called so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from evenhand.compare.groups import reference_group
from evenhand.compare.items import Floats
from evenhand.corpora.tables import FLAGS, Table, read_table
from evenhand.errors import DataError, ModelError, SpecError, unknown
from evenhand.probes.matched_guise.probe import read_material
from evenhand.probes.shared import claims
from evenhand.words.lexicons.files import Lexicon, load
from evenhand.words.lexicons.people import Group, agreed, groups

LEXICON, GUISES = "counterfactual_texts", "dialect_guises"
NAMES, WORDS, PAIRS, CONTROL = "names", "words", "dialect", "control"
NAME, PERSON, WORD = "{name}", "{person}", "{word}"
SLOTS = (NAME, PERSON)
T = TypeVar("T")
Harms = Literal["high", "low", "unknown"]
ENDS = ("high", "low")
HALF = 0.5
PAIRED = {"entailment", "contradiction", "not_entailment", "paraphrase", "equivalent", "duplicate"}
"""Labels of a text beside another one, in their plain form."""
SAID_NAMES = "with names of {group} than with names of {reference}"


@dataclass(frozen=True)
class Filled:
    """One text to score.

    Attributes:
        source: names, words or dialect: what is swapped.
        item: the text it was made from.
        cell: whom the term stands for (`african_american_female`, `muslim`, `control`).
        term: the name or word in the slot.
        text: the whole text.
        truth: the right label, where the user gives one.
    """

    source: str
    item: str
    cell: str
    term: str
    text: str
    truth: str = ""


@dataclass(frozen=True)
class View:
    """Cells compared with each other: `sides[cell]` is its group and its stratum.

    Groups are compared within strata (Black and white names of women, then of men). `said` is how
    a sentence tells two groups apart.
    """

    axis: str
    source: str
    sides: Mapping[str, tuple[str, str]]
    reference: str
    said: str

    @property
    def contrasts(self) -> list[tuple[str, str]]:
        """Every group with the reference."""
        listed = dict.fromkeys(group for group, _ in self.sides.values())
        return [(group, self.reference) for group in listed if group != self.reference]


@dataclass(frozen=True)
class Slotted:
    """A text with a slot; `gender` where the rest of the text may agree with one."""

    text: str
    truth: str = ""
    gender: str = ""


@dataclass(frozen=True)
class Texts:
    """Everything to score, how it is compared, and what could not be used."""

    filled: tuple[Filled, ...]
    views: tuple[View, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class People:
    """Names and words that fill slots."""

    lexicon: Lexicon
    names: Mapping[str, Group]
    most: int
    identities: tuple[str, ...]
    references: tuple[str, ...] = ()
    given: bool = False
    """Whether the user named the groups, so that they are compared as they are."""

    @classmethod
    def of(
        cls,
        chosen: Sequence[str],
        most: int,
        identities: Sequence[str],
        references: Sequence[str] = (),
        extra: str | None = None,
    ) -> People:
        """People of these groups of names and axes of identity; all packaged ones by default."""
        lexicon = load(LEXICON)
        axes = lexicon.table("identities")
        for axis in identities:
            if axis not in axes:
                raise SpecError(unknown("identity", axis, axes, where="identities"))
        found = groups(chosen or None, extra=(extra,) if extra else ())
        if not chosen:  # those that carry every axis, so that one can be held while one is swapped
            found = {k: g for k, g in found.items() if {"race", "gender"} <= set(g.axis)}
        elif len(found) < 2:
            raise SpecError(f"groups: {tuple(chosen)!r} is one group; give two or more.")
        short = [name for name, group in found.items() if len(group.terms) < 2]
        if short:
            raise SpecError(f"groups: {short[0]!r} has one term. Accepted: two or more names.")
        named = tuple(identities) or tuple(axes)
        return cls(lexicon, found, most, named, tuple(references), bool(chosen))

    def terms(self, group: Group) -> tuple[str, ...]:
        return group.terms[: self.most]

    def name_views(self) -> list[View]:
        if self.given:
            sides = {name: (name, "") for name in self.names}
            first = reference_group(list(sides), self.references)
            return [View("groups", NAMES, sides, first, SAID_NAMES)]
        views = []
        for axis, usual in self.lexicon.table("references").items():
            sides = {
                name: (g.axis[axis], " ".join(v for k, v in g.axis.items() if k != axis))
                for name, g in self.names.items()
            }
            known = [str(usual), *(group for group, _ in sides.values())]
            first = reference_group(known, self.references)
            views.append(View(axis, NAMES, sides, first, SAID_NAMES))
        return views

    def word_views(self) -> list[View]:
        views = []
        for axis in self.identities:
            cells = list(self.lexicon.table("identities", axis))
            first, sides = reference_group(cells, self.references), {c: (c, "") for c in cells}
            views.append(View(axis, WORDS, sides, first, "about {group} than about {reference}"))
        return views

    def words(self) -> Iterator[tuple[str, str, str]]:
        """Axis, cell and word of every identity, then the controls."""
        for axis in self.identities:
            for cell, terms in self.lexicon.table("identities", axis).items():
                yield from ((axis, cell, term) for term in terms)
        yield from (("", CONTROL, term) for term in self.lexicon.words("controls"))

    def filled(self, slotted: Slotted) -> Iterator[Filled]:
        """Every text that a slot can become."""
        text, truth = slotted.text, slotted.truth
        if NAME in text:
            for cell, group in self.names.items():
                if slotted.gender and group.axis.get("gender") != slotted.gender:
                    continue
                for term in self.terms(group):
                    yield Filled(NAMES, text, cell, term, text.replace(NAME, term), truth)
        elif PERSON in text or WORD in text:
            nouns = self.lexicon.words("nouns") if PERSON in text else ("",)
            for _, cell, term in self.words():
                for noun in nouns:
                    whole = text.replace(PERSON, f"{term} {noun}").replace(WORD, term)
                    yield Filled(WORDS, text, cell, term, agreed(whole), truth)

    def slot(self, text: str) -> Slotted | None:
        """The text with a slot where it names somebody; None where it does not, or names two.

        >>> people = People.of((), 2, ())
        >>> people.slot("I told Latisha twice.").text, people.slot("A gay couple moved in.").text
        ('I told {name} twice.', 'A {word} couple moved in.')
        """
        if any(slot in text for slot in SLOTS):
            return Slotted(text)
        found = {m[0] for m in self._known_names().finditer(text)}
        if len(found) == 1:
            (name,) = found
            genders = {g.axis.get("gender", "") for g in self.names.values() if name in g.terms}
            if len(genders) == 1:
                whole = re.compile(rf"\b{re.escape(name)}\b")
                return Slotted(whole.sub(NAME, text), gender=genders.pop())
        spots = list(self._known_words().finditer(text))
        if len(spots) == 1 and not found:
            spot = spots[0]
            return Slotted(text[: spot.start()] + WORD + text[spot.end() :])
        return None

    def _known_names(self) -> re.Pattern[str]:
        terms = sorted({t for g in self.names.values() for t in g.terms}, key=len, reverse=True)
        return re.compile(rf"\b({'|'.join(map(re.escape, terms))})\b")

    def _known_words(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for _, cell, word in self.words() if cell != CONTROL)
        nouns = "|".join(self.lexicon.words("before"))
        return re.compile(rf"\b(?:{words})(?= (?:{nouns})\b)", re.IGNORECASE)


def packaged(people: People, swaps: Sequence[str], most: int | None) -> Texts:
    """evenhand's own texts."""
    listed = {NAMES: "names", WORDS: "people"}
    slotted = [
        Slotted(text)
        for swap in swaps
        if swap != PAIRS
        for text in people.lexicon.words(listed[swap])[:most]
    ]
    two = [from_pairs("", (), most, 0)] if PAIRS in swaps else []
    return joined(*([made(people, slotted)] if slotted else []), *two)


def made(people: People, slotted: Sequence[Slotted], notes: Sequence[str] = ()) -> Texts:
    """Slots filled, each text once, and the comparisons that they allow."""
    rows = tuple(dict.fromkeys(f for one in dict.fromkeys(slotted) for f in people.filled(one)))
    sources = {f.source for f in rows}
    views = [*(people.name_views() if NAMES in sources else ())]
    views += [*(people.word_views() if WORDS in sources else ())]
    return Texts(rows, tuple(views), tuple(notes))


def read_texts(path: str | Path | Table) -> list[Slotted]:
    """The user's texts: a table with the column `text` and perhaps `label`."""
    table = read_table(path, text=("text", "label"), needed=("text",))
    return [
        Slotted(text, truth)
        for text, truth in dict.fromkeys(zip(table.labels("text"), table.texts("label", "")))
    ]


def from_file(people: People, path: str | Path, most: int | None, draw: int) -> Texts:
    """The user's texts with their slots, or with slots where they name somebody."""
    rows = sorted(read_texts(path), key=lambda s: (s.text, s.truth))
    found = [(row, people.slot(row.text)) for row in rows]
    slotted = [Slotted(s.text, row.truth, s.gender) for row, s in found if s is not None]
    if not slotted:
        raise DataError(
            f"{path}: none of {len(rows)} texts has a slot {NAME} or {PERSON}, or names exactly "
            f"one person by a listed first name or by a listed word for an identity before a noun "
            f"('Muslim woman'). Put {NAME} where a first name belongs, or see the lists with: "
            f"evenhand ls groups"
        )
    notes = []
    if len(slotted) < len(rows):
        notes.append(
            f"{len(rows) - len(slotted)} of {len(rows)} texts name nobody, or several people, and "
            f"were left out"
        )
    kept = drawn(slotted, most, draw)
    if len(kept) < len(slotted):
        notes.append(f"{len(kept)} of {len(slotted)} texts were drawn (texts={most})")
    return made(people, kept, notes)


def from_pairs(data: str, names: Sequence[str], most: int | None, draw: int) -> Texts:
    """Texts that say the same in two dialects: evenhand's own, or those of a file."""
    held = read_material(GUISES, data, ())
    head = tuple(names) or held.groups
    if len(head) != 2 or head[0] == head[1]:
        raise SpecError(f"pair_names: {names!r}. Accepted: the names of the two dialects.")
    if len({p.unit for p in held.pairs}) < 2:
        raise DataError(f"{data}: has {len(held.pairs)} pairs of texts. Accepted: two or more.")
    kept = drawn(sorted(held.pairs, key=lambda p: (p.unit, p.dialect)), most, draw)
    filled = [
        Filled(PAIRS, pair.unit, cell, cell, text)
        for pair in kept
        for cell, text in zip(head, (pair.dialect, pair.standard))
    ]
    sides = {cell: (cell, "") for cell in head}
    said = "written in {group} than in {reference}"
    return Texts(tuple(filled), (View("dialect", PAIRS, sides, head[1], said),))


def drawn(rows: Sequence[T], most: int | None, draw: int) -> list[T]:
    """At most this many of them."""
    return claims.drawn(rows, [""] * len(rows), most, draw)


def joined(*parts: Texts) -> Texts:
    """Several sources together."""
    return Texts(
        tuple(f for p in parts for f in p.filled),
        tuple(v for p in parts for v in p.views),
        tuple(n for p in parts for n in p.notes),
    )


# Labels ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Label:
    """One number of the model that is compared between groups.

    Attributes:
        name: the label, or the score's name.
        column: where it stands among the model's numbers.
        harms: whether a high or a low value is bad for the person.
        guessed: by the label's name, not by the user.
        share: it is a probability.
        cut: the value from which on a text is called this; None: when it is the likeliest label,
            NaN: nobody said.
    """

    name: str
    column: int
    harms: Harms = "unknown"
    guessed: bool = False
    share: bool = True
    cut: float | None = None

    @property
    def decides(self) -> bool:
        return self.cut is None or self.cut == self.cut

    def called(self, values: Floats) -> Floats:
        """1 where a text is called this (of a score whose low end is bad: where it falls short)."""
        scores = values[:, self.column]
        if self.cut is None:
            return np.asarray(values.argmax(axis=1) == self.column, np.float64)
        if not self.decides:
            return np.full(len(scores), np.nan)
        below = self.harms == "low"
        return np.asarray(scores < self.cut if below else scores >= self.cut, np.float64)

    @property
    def verdict(self) -> str:
        """What a sentence says of a text that is called this."""
        if self.share:
            return f"called {self.name}"
        return f"{'below' if self.harms == 'low' else 'at or above'} {self.cut:g}"


def read_labels(
    facts: Mapping[str, Any], values: Floats, bad: Sequence[str], threshold: float | None
) -> list[Label]:
    """Return the labels to compare, from what the model and the user say.

    Args:
        facts: `labels` and `activation` (softmax, sigmoid or none), where the model tells them.
        values: what it gave, [texts, labels].
        bad: labels that harm the person; of a model with one score, "high" or "low".
        threshold: the decision threshold.

    >>> toxic = read_labels({"labels": ["fine", "toxic"]}, np.array([[0.7, 0.3]]), (), None)
    >>> [(t.name, t.harms, t.guessed) for t in toxic]
    [('toxic', 'high', True)]
    """
    if not np.isfinite(values).all():
        raise DataError(
            f"the model gave no number for {int((~np.isfinite(values)).any(axis=1).sum())} of "
            f"{len(values)} texts, so they cannot be compared."
        )
    width = values.shape[1]
    inside = bool(((values >= 0) & (values <= 1)).all())
    activation = facts.get("activation")
    if width == 1:
        name = str((list(facts.get("labels") or ()) or ["score"])[0])
        share = activation == "sigmoid" or (activation is None and inside)
        return [_score("score" if name == "LABEL_0" else name, bad, threshold, share)]
    names = [str(n) for n in facts.get("labels") or [f"LABEL_{k}" for k in range(width)]]
    sums = bool(np.allclose(values.sum(axis=1), 1.0, atol=1e-3))
    cut = threshold
    if threshold is None and not (activation == "softmax" or (activation is None and sums)):
        cut = HALF if inside else float("nan")
    known = {_plain(n): k for k, n in enumerate(names)}
    for label in bad:
        if _plain(label) not in known:
            hint = "Name one of the model's labels with: --set bad=LABEL"
            raise SpecError(unknown("label", label, names, where="bad", hint=hint))
    harmful = [known[_plain(label)] for label in bad]
    guess = [] if bad else [k for k, n in enumerate(names) if _plain(n) in _harmful()]
    chosen = harmful or guess or ([1] if width == 2 else range(width))
    harms: Harms = "high" if harmful or guess else "unknown"
    return [Label(names[k], k, harms, bool(guess), inside, cut) for k in chosen]


def require_texts(facts: Mapping[str, Any]) -> None:
    """Raise ModelError if the labels of a model are about two texts."""
    names = [str(n) for n in facts.get("labels") or ()]
    if {_plain(n) for n in names} & PAIRED:
        raise ModelError(
            f"model {facts.get('name')!r}: its labels ({', '.join(names)}) are about two texts "
            f"together, and counterfactual texts are judged one by one. Score pairs of your own, "
            f"one row each, and read them with: evenhand measure counterfactual SCORES.csv"
        )


def _score(name: str, bad: Sequence[str], threshold: float | None, share: bool) -> Label:
    if bad and (len(bad) > 1 or bad[0] not in (*ENDS, name)):
        hint = "This model gives one score: which end is bad for the person?"
        raise SpecError(unknown("end of the score", str(bad[0]), ENDS, where="bad", hint=hint))
    guess = not bad and _plain(name) in _harmful()
    harms: Harms = "low" if bad and bad[0] == "low" else "high" if bad or guess else "unknown"
    cut = threshold if threshold is not None else HALF if share else float("nan")
    return Label(name, 0, harms, guess, share and harms != "low", cut)


def _plain(name: str) -> str:
    """Return a label without what writers vary.

    >>> _plain("Hate Speech"), _plain("severe-toxic")
    ('hate_speech', 'severe_toxic')
    """
    return "_".join(name.strip().lower().replace("-", " ").split())


def _harmful() -> frozenset[str]:
    return frozenset(load("counterfactual_texts").words("harmful"))


def right_label(truth: str, label: Label, names: Sequence[str]) -> bool | None:
    """Return whether a text truly is what the label says; None if the right label is unknown.

    >>> right_label("toxic", Label("toxic", 1), []), right_label("0", Label("toxic", 1), [])
    (True, False)
    """
    plain = _plain(truth)
    if plain in {_plain(n) for n in (*names, label.name)}:
        return plain == _plain(label.name)
    if plain and plain not in FLAGS:
        accepted = ", ".join(dict.fromkeys((*names, label.name)))
        raise DataError(f"label {truth!r}: expected a label of the model ({accepted}), or 1 or 0.")
    return FLAGS.get(plain)
