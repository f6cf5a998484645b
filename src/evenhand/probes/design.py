"""Cells of underspecified questions, and their texts, made only when they are needed.

A cell is (first term, second term, template, attribute). It is asked in both orders, with the
question and with its negation, and both terms are scored: eight rows.

    row = cell * 8 + order * 4 + negated * 2 + candidate

The full gender set has 1,372,000 cells, so 5,488,000 model inputs; here they are four integer
columns until a shard asks for its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evenhand.errors import SpecError, unknown
from evenhand.lexicons.questions import Attribute, Subject, Template

ROWS_PER_CELL = 8


@dataclass(frozen=True)
class Design:
    """Which pairs meet in which templates about which attributes."""

    subjects: tuple[Subject, ...]
    templates: tuple[Template, ...]
    attributes: tuple[Attribute, ...]
    first: np.ndarray
    second: np.ndarray
    template: np.ndarray
    attribute: np.ndarray
    population: int

    def __len__(self) -> int:
        return len(self.first)

    def texts(
        self, start: int, stop: int, mask: str
    ) -> tuple[list[str], list[str], list[str], list[str]]:
        """Context, question, candidate and rival of rows [start, stop)."""
        contexts: list[str] = []
        questions: list[str] = []
        candidates: list[str] = []
        rivals: list[str] = []
        seen: dict[tuple[int, int, int], str] = {}
        asked: dict[tuple[int, int, bool], str] = {}
        for row in range(start, stop):
            cell, part = divmod(row, ROWS_PER_CELL)
            order, negated, candidate = part >> 2, bool(part >> 1 & 1), part & 1
            pair = (int(self.first[cell]), int(self.second[cell]))
            t, a = int(self.template[cell]), int(self.attribute[cell])
            template = self.templates[t]
            named = (*pair[::-1], t) if order else (*pair, t)
            if named not in seen:
                seen[named] = template.context_for(self.subjects[named[0]], self.subjects[named[1]])
            if (t, a, negated) not in asked:
                asked[t, a, negated] = template.question_for(
                    self.attributes[a], negated=negated, mask=mask
                )
            contexts.append(seen[named])
            questions.append(asked[t, a, negated])
            candidates.append(self.subjects[pair[candidate]].forms[template.subject])
            rivals.append(self.subjects[pair[1 - candidate]].forms[template.subject])
        return contexts, questions, candidates, rivals


def make_design(
    subjects: Sequence[Subject],
    templates: Sequence[Template],
    attributes: Sequence[Attribute],
    *,
    across: bool,
    pairs: int | None,
    seed: int,
) -> Design:
    """Lay out the cells: every pair (or a balanced sample) x template x fitting attribute.

    Args:
        across: pair terms of different groups only (gender), else any two terms.
        pairs: how many pairs to draw; None for all. Drawn pairs use the terms evenly: every
            term is met before any is met again.
        seed: of the draw.
    """
    first, second = _sampled(*_pairs(subjects, across), pairs, seed)
    population = len(_pairs(subjects, across)[0])
    fits = np.asarray(
        [
            (t, a)
            for t, template in enumerate(templates)
            for a, attribute in enumerate(attributes)
            if template.slot in attribute.forms
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    if not len(first) or not len(fits):
        raise SpecError("underspecified: no pair of terms, template and attribute fit together.")
    cells = len(fits)
    return Design(
        tuple(subjects),
        tuple(templates),
        tuple(attributes),
        np.repeat(first, cells),
        np.repeat(second, cells),
        np.tile(fits[:, 0], len(first)),
        np.tile(fits[:, 1], len(first)),
        population * cells,
    )


def _pairs(subjects: Sequence[Subject], across: bool) -> tuple[np.ndarray, np.ndarray]:
    groups = np.asarray([s.group for s in subjects])
    first, second = np.triu_indices(len(subjects), k=1)
    if across:
        different = groups[first] != groups[second]
        first, second = first[different], second[different]
    return first, second


def _sampled(
    first: np.ndarray, second: np.ndarray, pairs: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A balanced draw: walk the pairs in random order, taking those whose terms were met least."""
    if pairs is None or pairs >= len(first):
        return first, second
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(first))
    met = np.zeros(int(max(first.max(), second.max())) + 1, dtype=np.int64)
    taken = np.zeros(len(first), dtype=bool)
    rounds = 0
    while taken.sum() < pairs:
        rounds += 1
        for k in order:
            if not taken[k] and max(met[first[k]], met[second[k]]) < rounds:
                taken[k] = True
                met[[first[k], second[k]]] += 1
                if taken.sum() == pairs:
                    break
    return first[taken], second[taken]


def choose_attributes(
    known: Sequence[Attribute], wanted: Sequence[str] | None
) -> tuple[Attribute, ...]:
    """The attributes asked for by name, in that order; all when none are named."""
    if wanted is None:
        return tuple(known)
    by_name = {a.name: a for a in known}
    return tuple(_named("attribute", by_name, name) for name in wanted)


def choose_templates(
    known: Sequence[Template], wanted: int | Sequence[str] | None
) -> tuple[Template, ...]:
    """The first so many templates, or those asked for by name; all when nothing is said."""
    if wanted is None or isinstance(wanted, int):
        return tuple(known[:wanted])
    by_name = {t.id: t for t in known}
    return tuple(_named("template", by_name, name) for name in wanted)


T = TypeVar("T")


def _named(kind: str, known: dict[str, T], name: str) -> T:
    if name not in known:
        hint = f"List them with: evenhand ls {kind}s"
        raise SpecError(unknown(kind, name, known, where="underspecified", hint=hint))
    return known[name]
