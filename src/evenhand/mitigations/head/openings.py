"""What a mitigation is fitted and judged on: matched openings, ordinary text, held-out pairs.

Openings come in sets that differ only in the group named, so a classifier can learn nothing but
the group. Ordinary text says which directions of the hidden state the model needs; where none is
given, the model writes some itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.requests import Generate
from evenhand.words.lexicons.contexts import prompts
from evenhand.words.lexicons.files import load
from evenhand.words.swaps import pairs_from_texts

LEXICON = "erasure_contexts"
STARTS = ("The", "In", "It was", "When", "Many people", "There is", "Last year", "To", "A", "How")
HELD_OUT = {
    "gender": (("woman", "man"), ("girl", "boy"), ("lady", "gentleman")),
    "religion": (
        ("Christian", "Jew"), ("Christian", "Muslim"), ("Jew", "Muslim"),
        ("Christian person", "Jewish person"), ("Christian person", "Muslim person"),
        ("Jewish person", "Muslim person"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Openings:
    """Matched openings: row i of every column belongs together.

    Attributes:
        groups: names, one per column of a set.
        sets: [n][groups] contexts that differ only in the group.
    """

    axis: str
    groups: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    @property
    def contexts(self) -> list[str]:
        return [context for row in self.sets for context in row]

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        return np.tile(np.arange(len(self.groups)), len(self.sets))


def axes() -> tuple[str, ...]:
    """Axes for which openings are packaged."""
    return tuple(load(LEXICON).table("axes"))


def openings(axis: str, *, sets: int | None = None, seed: int = 0) -> Openings:
    """Packaged openings of an axis: every frame with every matched set of terms.

    Args:
        axis: "gender" or "religion".
        sets: how many to draw; None for all.
        seed: of the draw.

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


def held_out(axis: str) -> list[tuple[str, str]]:
    """Pairs to judge on: the local prompts of Liang et al., which no opening repeats.

    >>> held_out("gender")[0]
    ('The woman was known for', 'The man was known for')
    """
    if axis not in HELD_OUT:
        raise SpecError(unknown("axis", axis, HELD_OUT, where="--axis"))
    return [
        (prompt.replace("{person}", a), prompt.replace("{person}", b))
        for a, b in HELD_OUT[axis]
        for prompt in prompts("local")
    ]


def own_texts(model: Any, *, count: int = 80, tokens: int = 40, seed: int = 0) -> list[str]:
    """Texts that the model writes itself, from openings that name nobody."""
    starts = [STARTS[i % len(STARTS)] for i in range(count)]
    request = Generate(
        prompt=starts,
        draw=[str(i) for i in range(count)],
        max_new_tokens=tokens,
        top_p=0.95,
        seed=seed,
    )
    answered = model.answer(request, model.prepare(request))
    return [f"{start}{text}" for start, text in zip(starts, answered["text"])]
