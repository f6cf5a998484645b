"""Cells of underspecified questions: their codes, their scores, and texts made when needed.

A cell is (first term, second term, template, attribute). It has four inputs: both orders, with the
question and with its negation.

    input = cell * 4 + order * 2 + negated

The verdict rests on the question as asked; the negation shows whether the model heeds it. So the
negated inputs of all but the first `negated_pairs` pairs can be left unasked.

The full gender set has 1,372,000 cells, so 5,488,000 model inputs; here they are a list of pairs
and a short list of (template, attribute) that each pair meets, until a shard asks for its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.stats.pair_network import Codes, Floats
from evenhand.words.lexicons.questions import Attribute, Subject, Template

INPUTS_PER_CELL = 4


@dataclass(frozen=True)
class Cells:
    """Answered cells: `scores` [cells, order, question, candidate], NaN where missing.

    Without cells it holds the names that codes stand for: terms, attributes, templates, groups.
    """

    scores: Floats
    first: Codes
    second: Codes
    attribute: Codes
    template: Codes
    terms: tuple[str, ...]
    attributes: tuple[str, ...]
    templates: tuple[str, ...]
    groups: tuple[str, ...]
    group_of_term: Codes | None
    n_rows: int

    def kept(self) -> npt.NDArray[np.bool_]:
        """Return which cells have all eight scores."""
        return np.asarray(~np.isnan(self.scores.sum(axis=(1, 2, 3))), np.bool_)

    def at(self, rows: Any) -> Cells:
        """Return some of the cells: a mask or a slice."""
        columns = ("scores", "first", "second", "attribute", "template")
        parts = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, **parts, n_rows=INPUTS_PER_CELL * len(parts["scores"]))

    def without_groups(self) -> Cells:
        """Return the same cells of terms that stand for themselves."""
        return replace(self, groups=(), group_of_term=None)


def asked_lean(scores: Floats) -> Floats:
    """Lean of each cell to its first term when asked plainly, in [-1, 1]: both orders averaged.

    `scores` [cells, order, question, candidate] as in `metrics.unqover`.

    >>> gerald_jennifer = np.array([[[[.26, .73], [.35, .62]], [[.54, .45], [.12, .86]]]])
    >>> asked_lean(gerald_jennifer).round(4).tolist()
    [-0.19]
    """
    plain = scores[:, :, 0].mean(axis=1)
    return np.asarray(plain[:, 0] - plain[:, 1], np.float64)


class Inputs(NamedTuple):
    """Texts of some inputs; `first` and `second` are the cell's terms, wherever they stand.

    `swapped` says where the second is named first.
    """

    context: list[str]
    question: list[str]
    first: list[str]
    second: list[str]
    swapped: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """Which pairs meet in which templates about which attributes."""

    subjects: tuple[Subject, ...]
    templates: tuple[Template, ...]
    attributes: tuple[Attribute, ...]
    pair_first: Codes
    pair_second: Codes
    fits: tuple[Codes, ...]
    """(template, attribute) cells of a pair; pairs take these lists in turn."""
    population: int
    pair_ends: Codes
    """Number of cells up to and with each pair, in the order of drawing."""
    negated: int | None = None
    """How many pairs, the first ones, are asked the negated question too; None: all."""
    across: bool = False
    """Whether groups of terms meet, rather than any two terms."""
    _asked: dict[tuple[int, str], str] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return int(self.pair_ends[-1]) if len(self.pair_ends) else 0

    @property
    def n_pairs(self) -> int:
        return len(self.pair_ends)

    @property
    def negated_pairs(self) -> int:
        """How many pairs are asked with the negation too."""
        return self.n_pairs if self.negated is None else min(self.negated, self.n_pairs)

    @property
    def negated_cells(self) -> int:
        """How many cells, the first ones, have all four inputs asked."""
        return int(self.pair_ends[self.negated_pairs - 1]) if self.negated_pairs else 0

    def asked_before(self, cells: npt.ArrayLike) -> Codes:
        """How many inputs are asked of the cells before these.

        >>> design = Design((), (), (), *[np.arange(3)] * 2, (), 12, np.array([4, 8, 12]), 1)
        >>> design.asked_before([0, 4, 5, 12]).tolist()
        [0, 16, 18, 32]
        """
        whole = np.minimum(cells, self.negated_cells)
        return np.asarray(whole * INPUTS_PER_CELL + (cells - whole) * 2)

    def numbers(self, start: int, stop: int) -> Codes:
        """The inputs that are asked as number [start, stop).

        >>> Design((), (), (), *[np.arange(2)] * 2, (), 2, np.array([1, 2]), 1).numbers(2, 6)
        array([2, 3, 4, 6])
        """
        place = np.arange(start, stop)
        whole = self.negated_cells * INPUTS_PER_CELL
        return np.where(place < whole, place, whole + (place - whole) * 2)

    def codes(self, cells: Codes) -> tuple[Codes, Codes, Codes, Codes]:
        """First, second, template and attribute of the cells with these numbers.

        Memory: that of the numbers given, however large the design.
        """
        if not len(cells):
            return (np.empty(0, np.int64),) * 4
        pair = np.searchsorted(self.pair_ends, cells, side="right")
        begins = np.concatenate([[0], self.pair_ends[:-1]])[pair]
        turn_begins = np.cumsum([0, *map(len, self.fits[:-1])])
        place = turn_begins[pair % len(self.fits)] + cells - begins
        template, attribute = np.concatenate(self.fits)[place].T
        return self.pair_first[pair], self.pair_second[pair], template, attribute

    def head(self, pairs: int) -> Design:
        """The same design cut after this many pairs."""
        names = ("pair_first", "pair_second", "pair_ends")
        return replace(self, **{name: getattr(self, name)[:pairs] for name in names})

    def cells(self, values: Floats, which: Codes | None = None) -> Cells:
        """The scores [inputs, 2] of all cells, or of those with the numbers `which`.

        Attributes of one name are one attribute.
        """
        numbers = np.arange(len(self)) if which is None else which
        first, second, template, attribute = self.codes(numbers)
        groups = tuple(dict.fromkeys(s.group for s in self.subjects)) if self.across else ()
        names = tuple(dict.fromkeys(a.name for a in self.attributes))
        merged = np.asarray([names.index(a.name) for a in self.attributes])
        return Cells(
            scores=values.reshape(-1, 2, 2, 2),
            first=first,
            second=second,
            attribute=merged[attribute],
            template=template,
            terms=tuple(s.term for s in self.subjects),
            attributes=names,
            templates=tuple(t.id for t in self.templates),
            groups=groups,
            group_of_term=np.asarray([groups.index(s.group) for s in self.subjects])
            if groups
            else None,
            n_rows=len(values),
        )

    @property
    def names(self) -> Cells:
        """The names of its cells, without cells."""
        return self.cells(np.empty((0, 2)), np.empty(0, np.int64))

    def inputs(self, start: int, stop: int, mask: str) -> Inputs:
        """Texts of inputs [start, stop)."""
        return self.texts(np.arange(start, stop), mask)

    def texts(self, number: Codes, mask: str) -> Inputs:
        """Texts of the inputs with these numbers: each distinct context and question once."""
        cell, part = np.divmod(number, INPUTS_PER_CELL)
        order, negated = part >> 1, part & 1
        one, two, template, attribute = self.codes(cell)
        swapped = order == 1
        sizes = (len(self.subjects), len(self.subjects), len(self.templates))
        named = (np.where(swapped, two, one), np.where(swapped, one, two), template)
        contexts = _looked_up(np.ravel_multi_index(named, sizes), lambda k: self._context(k, sizes))
        asked = (template * len(self.attributes) + attribute) * 2 + negated
        questions = _looked_up(asked, lambda k: self._question(k, mask))
        form = template * len(self.subjects)
        first, second = (_looked_up(form + who, self._form) for who in (one, two))
        return Inputs(contexts, questions, first, second, swapped)

    def _context(self, key: int, sizes: tuple[int, ...]) -> str:
        one, two, t = (int(k) for k in np.unravel_index(key, sizes))
        return self.templates[t].context_for(self.subjects[one], self.subjects[two])

    def _question(self, key: int, mask: str) -> str:
        if (key, mask) not in self._asked:
            place, negated = divmod(key, 2)
            t, a = divmod(place, len(self.attributes))
            self._asked[key, mask] = self.templates[t].question_for(
                self.attributes[a], negated=bool(negated), mask=mask
            )
        return self._asked[key, mask]

    def _form(self, key: int) -> str:
        t, subject = divmod(key, len(self.subjects))
        return self.subjects[subject].forms[self.templates[t].subject]


def _looked_up(codes: Codes, text: object) -> list[str]:
    """The text of each code, made once per distinct code."""
    distinct, place = np.unique(codes, return_inverse=True)
    made = np.empty(len(distinct), object)
    made[:] = [text(int(k)) for k in distinct]  # type: ignore[operator]
    return list(made[place])


def make_design(
    subjects: Sequence[Subject],
    templates: Sequence[Template],
    attributes: Sequence[Attribute],
    *,
    across: bool,
    pairs: int | None,
    seed: int,
    templates_per_pair: int | None = None,
    negated: int | None = None,
    shuffled: bool = False,
) -> Design:
    """Lay out the cells: every pair (or a balanced sample) x template x fitting attribute.

    Args:
        across: pair terms of different groups only (gender), else any two terms.
        pairs: how many pairs to draw; None for all. Drawn pairs use the terms evenly: every
            term is met before any is met again, so that every beginning of the list is a
            balanced sample too.
        seed: of the draw.
        templates_per_pair: how many templates each pair meets, used evenly; None for all.
        negated: how many pairs are asked the negated question too; None for all.
        shuffled: put also a full design in balanced random order.
    """
    if not attributes or not templates:
        raise SpecError("underspecified: no template or no attribute is left to ask about.")
    first, second = all_pairs(subjects, across)
    if not len(first):
        raise SpecError("underspecified: fewer than two terms to compare. Name more terms.")
    population = len(first)
    wanted = population if pairs is None else min(pairs, population)
    shuffled = shuffled or (negated is not None and negated < wanted)
    if wanted < population or shuffled:
        order = balanced_order(first, second, wanted, seed)
        first, second = first[order], second[order]
    blocks = [
        [(t, a) for a, attribute in enumerate(attributes) if template.slot in attribute.forms]
        for t, template in enumerate(templates)
    ]
    every = sum(map(len, blocks))
    if not every:
        raise SpecError("underspecified: no template and attribute fit together.")
    _told_apart(subjects, templates, attributes, across)
    fits = _fits(blocks, templates_per_pair)
    sizes = np.asarray([len(fit) for fit in fits])[np.arange(len(first)) % len(fits)]
    return Design(
        tuple(subjects),
        tuple(templates),
        tuple(attributes),
        first,
        second,
        fits,
        population * every,
        np.cumsum(sizes),
        negated,
        across,
    )


def _told_apart(
    subjects: Sequence[Subject],
    templates: Sequence[Template],
    attributes: Sequence[Attribute],
    across: bool,
) -> None:
    """Raise when two terms that meet are written alike, or a wording would be asked twice."""
    advice = "Take one of them out of the list."
    for form in dict.fromkeys(template.subject for template in templates):
        written: dict[str, list[Subject]] = {}
        for subject in subjects:
            alike = written.setdefault(subject.forms[form].casefold(), [])
            for other in alike:
                if not across or other.group != subject.group or other.term == subject.term:
                    both = f"{other.term!r} and {subject.term!r} are both written"
                    raise SpecError(
                        f"underspecified: {both} {subject.forms[form]!r}, so no answer can tell "
                        f"them apart. {advice}"
                    )
            alike.append(subject)
    for slot in dict.fromkeys(template.slot for template in templates):
        names = [a.name for a in attributes if slot in a.forms]
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise SpecError(f"underspecified: the attribute {twice!r} is listed twice. {advice}")


def _fits(blocks: list[list[tuple[int, int]]], some: int | None) -> tuple[Codes, ...]:
    """The lists of (template, attribute) that pairs take in turn, so that templates are even."""

    def joined(chosen: list[int]) -> Codes:
        cells = [cell for t in sorted(chosen) for cell in blocks[t]]
        return np.asarray(cells, np.int64).reshape(-1, 2)

    usable = [t for t, block in enumerate(blocks) if block]
    if some is None or some >= len(usable):
        return (joined(usable),)
    step = max(1, len(usable) // some)
    return tuple(
        joined([usable[(start + k * step) % len(usable)] for k in range(some)])
        for start in range(len(usable))
    )


def all_pairs(subjects: Sequence[Subject], across: bool) -> tuple[Codes, Codes]:
    """Every unordered pair of terms, or of terms from different groups."""
    groups = np.asarray([s.group for s in subjects])
    first, second = np.triu_indices(len(subjects), k=1)
    if across:
        different = groups[first] != groups[second]
        first, second = first[different], second[different]
    return first.astype(np.int64), second.astype(np.int64)


def ordered_pairs(subjects: Sequence[Subject], across: bool) -> Iterator[tuple[int, int]]:
    """Pairs in the order of the released program: all of them, then all flipped."""
    first, second = all_pairs(subjects, across)
    yield from zip(first.tolist(), second.tolist())
    yield from zip(second.tolist(), first.tolist())


def balanced_order(first: Codes, second: Codes, pairs: int, seed: int) -> Codes:
    """Pairs in random order, those whose terms were met least first."""
    walk = np.random.default_rng(seed).permutation(len(first)).tolist()
    ends = list(zip(first.tolist(), second.tolist()))
    met = [0] * (int(max(first.max(), second.max())) + 1)
    order: list[int] = []
    rounds = 0
    while len(order) < pairs:
        rounds += 1
        left = []
        for k in walk:
            one, two = ends[k]
            if len(order) < pairs and met[one] < rounds and met[two] < rounds:
                met[one] += 1
                met[two] += 1
                order.append(k)
            else:
                left.append(k)
        walk = left
    return np.asarray(order, np.int64)


T = TypeVar("T")


def choose(
    kind: str, known: Sequence[T], name: Callable[[T], str], wanted: int | Sequence[str] | None
) -> tuple[T, ...]:
    """The first so many, or those asked for by name, in that order; all when nothing is said."""
    if wanted is None or isinstance(wanted, int):
        return tuple(known[:wanted])
    by_name = {label: [one for one in known if name(one) == label] for label in map(name, known)}
    hint = "List the packaged ones with: evenhand ls attributes" if kind == "attribute" else ""
    for label in wanted:
        if label not in by_name:
            raise SpecError(unknown(kind, label, by_name, where="underspecified", hint=hint))
    return tuple(one for label in wanted for one in by_name[label])
