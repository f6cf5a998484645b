"""Which wrong answers win: one score per distinct (name, context, answer), any pairing from it.

The released program builds three-choice questions and scores every row anew. A choice head gives
each answer a score that does not depend on its rivals, so one score per answer is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.metrics import sodapop
from evenhand.probes.base import Asker
from evenhand.requests import Continuation, LazyRequests, Option
from evenhand.words.social_iqa import Context

LM_PROMPT = "{context}\nQuestion: {question}\nAnswer:"


@dataclass(frozen=True)
class Pool:
    """A context with one name in it, and the distractors shown with it."""

    name: int
    filled: Context
    distractors: Sequence[str]


def prompt(filled: Context, answers: frozenset[str], *, as_published: bool = False) -> str:
    """How context and question are put to the model.

    A choice head reads them as one text (as released: without a space between); a language
    model gets them on two lines.
    """
    if Continuation.kind in answers:
        return LM_PROMPT.format(context=filled.context, question=filled.question)
    return f"{filled.context}{'' if as_published else ' '}{filled.question}"


def option_requests(
    pools: Sequence[Pool], answers: frozenset[str], *, as_published: bool = False
) -> LazyRequests:
    """One row per pool for the right answer and one for each distractor, pool after pool."""
    sizes = np.asarray([1 + len(pool.distractors) for pool in pools], np.int64)
    ends = np.cumsum(sizes)
    texts = [prompt(pool.filled, answers, as_published=as_published) for pool in pools]

    def make(start: int, stop: int) -> Option:
        prompts: list[str] = []
        options: list[str] = []
        at = start
        while at < stop:
            place = int(np.searchsorted(ends, at, side="right"))
            first = int(ends[place] - sizes[place])
            rows = [pools[place].filled.answer, *pools[place].distractors]
            part = rows[at - first : stop - first]
            prompts += [texts[place]] * len(part)
            options += part
            at += len(part)
        return Option(prompts, options)

    return LazyRequests(Option, int(sizes.sum()), make)


def successes(
    ask: Asker, pools: Sequence[Pool], *, pairing: str, seed: int, as_published: bool = False
) -> list[np.ndarray]:
    """Success of every distractor of every pool, in order: 0, 1 or a share."""
    requests = option_requests(pools, ask.answers, as_published=as_published)
    logits = np.asarray(ask(requests, "score answers")["logit"], np.float64)
    out, at = [], 0
    for number, pool in enumerate(pools):
        size = len(pool.distractors)
        correct, values = float(logits[at]), logits[at + 1 : at + 1 + size]
        at += 1 + size
        rng = np.random.default_rng([seed, number, pool.name])
        out.append(_success(values, correct, pairing, rng, as_published))
    return out


def _success(
    values: np.ndarray, correct: float, pairing: str, rng: np.random.Generator, as_published: bool
) -> np.ndarray:
    if pairing == "solo":
        return sodapop.solo_success(values, correct)
    if pairing == "expected":
        return sodapop.expected_success(values, correct)
    # As released the distractors come shuffled: neighbours are partners.
    order = np.arange(len(values)) if as_published else rng.permutation(len(values))
    partner = partners(order)
    return sodapop.paired_success(
        values, correct, partner, first_slot=rng.random(len(values)) < 0.5
    )


def partners(order: np.ndarray) -> np.ndarray:
    """Partner of each distractor when neighbours in `order` are paired; an odd one out is paired
    with the first.

    >>> partners(np.array([2, 0, 1, 3])).tolist()
    [2, 3, 0, 1]
    """
    found = np.empty(len(order), np.int64)
    even = len(order) - len(order) % 2
    found[order[0:even:2]], found[order[1:even:2]] = order[1:even:2], order[0:even:2]
    if even < len(order):
        found[order[-1]] = order[0]
    return found
