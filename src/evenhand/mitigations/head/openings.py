"""What a mitigation is fitted and judged on: matched openings, ordinary text, held-out pairs.

Openings come in sets that differ only in the group named, so a classifier can learn nothing but
the group. Ordinary text says which directions of the hidden state the model needs; where none is
given, the model writes some itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.requests import Generate
from evenhand.runner.ask import Ask
from evenhand.words.lexicons.files import load
from evenhand.words.lexicons.people import prompts
from evenhand.words.swaps import pairs_from_texts

Ints = npt.NDArray[np.int64]
LEXICON = "erasure_contexts"
STARTS = ("The", "In", "It was", "When", "Many people", "There is", "Last year", "To", "A", "How")


@dataclass(frozen=True)
class Openings:
    """Matched openings: `sets` [n][groups] of contexts that differ only in the group."""

    axis: str
    groups: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    @property
    def contexts(self) -> list[str]:
        return [context for row in self.sets for context in row]


def axes() -> tuple[str, ...]:
    """Axes for which openings are packaged."""
    return tuple(load(LEXICON).table("axes"))


def openings(axis: str, *, sets: int | None = None, seed: int = 0) -> Openings:
    """Packaged openings of an axis: every frame with every matched set of terms, or some sets.

    >>> found = openings("religion", sets=10)
    >>> found.groups, len(found.contexts)
    (('christian', 'jewish', 'muslim'), 30)
    """
    lexicon = load(LEXICON)
    if axis not in axes():
        raise SpecError(unknown("axis", axis, axes(), where="--axis"))
    table = lexicon.table("axes", axis)
    rows = [
        tuple(frame.replace("{person}", term) for term in terms)
        for frame in lexicon.words("frames")
        for terms in table["terms"]
    ]
    if sets is not None and sets < len(rows):
        keep = np.sort(np.random.default_rng(seed).choice(len(rows), sets, replace=False))
        rows = [rows[i] for i in keep]
    return Openings(axis, tuple(table["groups"]), tuple(rows))


def mined(texts: list[str], limit: int, seed: int = 0) -> Openings:
    """Counterfactual openings cut from own text: the same words, genders swapped."""
    found = pairs_from_texts(texts, limit=limit, seed=seed)
    return Openings(
        "gender", ("original", "swapped"), tuple((p.text, p.swapped) for p in found.pairs)
    )


@dataclass(frozen=True)
class Pairs:
    """Contexts that differ in the group alone, and which terms and prompt each was made of."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    terms: npt.NDArray[np.int64]
    prompts: npt.NDArray[np.int64]


def held_out(axis: str, seed: int = 0) -> tuple[Pairs, Pairs]:
    """Pairs to choose a setting on, and pairs to judge it on: no term or prompt is in both.

    The prompts are the local ones of Liang et al., which no opening repeats; terms and prompts are
    drawn into halves with the seed.

    >>> choosing, judging = held_out("gender")
    >>> len(choosing.first), len(judging.first), set(choosing.prompts) & set(judging.prompts)
    (30, 30, set())
    """
    if axis not in axes():
        raise SpecError(unknown("axis", axis, axes(), where="--axis"))
    rows, texts = load(LEXICON).table("judged", axis)["terms"], prompts("local")
    rng = np.random.default_rng([seed, 17])
    halves = zip(*(np.array_split(rng.permutation(len(part)), 2) for part in (rows, texts)))
    one, two = (_crossed(rows, texts, np.sort(t), np.sort(p)) for t, p in halves)
    return one, two


def _crossed(
    rows: Sequence[Sequence[str]], texts: Sequence[str], terms: Ints, asked: Ints
) -> Pairs:
    found = [
        (texts[p].replace("{person}", a), texts[p].replace("{person}", b), int(t), int(p))
        for t in terms
        for p in asked
        for a, b in combinations(rows[t], 2)
    ]
    first, second, codes, numbers = zip(*found)
    return Pairs(first, second, np.asarray(codes), np.asarray(numbers))


def own_texts(model: Any, *, count: int = 80, tokens: int = 40, seed: int = 0) -> list[str]:
    """Texts that the model writes itself, from openings that name nobody."""
    starts = [STARTS[i % len(STARTS)] for i in range(count)]
    draws = [str(i) for i in range(count)]
    request = Generate(starts, draws, max_new_tokens=tokens, top_p=0.95, seed=seed)
    return [f"{start}{text}" for start, text in zip(starts, Ask(model)(request)["text"])]
