"""Which wrong answers win: one score per distinct (name, context, answer), any pairing from it.

The released program builds three-choice questions and scores every row anew. Where an answer is
judged without seeing its rivals (a choice head, likelihoods) one score per answer is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenhand.metrics import sodapop
from evenhand.models.choosing import TOLD, Choices, answered, same_place
from evenhand.probes.base import Asker
from evenhand.requests import TYPES, Choose, LazyRequests, Option, Requests, Scores
from evenhand.words.social_iqa import Context

SHOWN = 64
"""Wrong answers of one question: what a batch holds together."""
TEXT = "{passage}\nQuestion: {question}\nAnswer:"


@dataclass(frozen=True)
class Pool:
    """A context with one name in it, and the distractors shown with it."""

    name: int
    filled: Context
    distractors: Sequence[str]


def prompt(filled: Context) -> str:
    """Context and question as a person would put them."""
    return f"{filled.context}\n{filled.question}"


def score_requests(pools: Sequence[Pool], kind: str, *, as_published: bool = False) -> LazyRequests:
    """What scores every answer of every pool: questions of at most SHOWN wrong answers beside the
    right one (`choose`), or one row an answer, the right one first (`option`)."""
    step = SHOWN if kind == Choose.kind else 1
    first = 0 if kind == Choose.kind else -1
    sizes = np.asarray([_questions(len(pool.distractors), kind) for pool in pools], np.int64)
    ends = np.cumsum(sizes)

    def make(start: int, stop: int) -> Requests:
        prompts: list[str] = []
        options: list[str] = []
        for at in range(start, stop):
            place = int(np.searchsorted(ends, at, side="right"))
            pool, number = pools[place], at - int(ends[place] - sizes[place]) + first
            shown = pool.distractors[number * step : (number + 1) * step] if number >= 0 else ()
            if kind == Choose.kind or number < 0:
                shown = (pool.filled.answer, *shown)
            prompts.append(prompt(pool.filled))
            options.append("\t".join(shown))
        if kind == Choose.kind:
            return Choose(prompts, options, text=TEXT, per_token=True)
        # As released there is no space between context and question.
        return Option([p.replace("\n", "" if as_published else " ") for p in prompts], options)

    return LazyRequests(TYPES[kind], int(sizes.sum()), make)


def _questions(distractors: int, kind: str) -> int:
    """How many request rows a pool takes."""
    return max(1, -(-distractors // SHOWN)) if kind == Choose.kind else 1 + distractors


def successes(
    ask: Asker,
    pools: Sequence[Pool],
    kind: str,
    *,
    pairing: str,
    seed: int,
    as_published: bool = False,
    tally: Tally | None = None,
) -> list[np.ndarray]:
    """Success of every distractor of every pool, in order: 0, 1 or a share."""
    scores = ask(score_requests(pools, kind, as_published=as_published), "score answers")
    values = _by_choice(scores, pools, tally) if kind == Choose.kind else _by_logit(scores, pools)
    out = []
    for pool, (correct, wrong) in zip(pools, values):
        rng = np.random.default_rng([seed, pool.name, pool.name])
        out.append(_success(wrong, correct, pairing, rng, as_published))
    return out


def _by_logit(scores: Scores, pools: Sequence[Pool]) -> Iterator[tuple[float, np.ndarray]]:
    """Logit of the right answer and of the wrong ones, pool by pool."""
    logits, at = np.asarray(scores["logit"], np.float64), 0
    for pool in pools:
        size = len(pool.distractors)
        yield float(logits[at]), logits[at + 1 : at + 1 + size]
        at += 1 + size


def _by_choice(
    scores: Scores, pools: Sequence[Pool], tally: Tally | None
) -> Iterator[tuple[float, np.ndarray]]:
    """The same as log-odds against the right answer, which stands in every question."""
    if tally is not None:
        asked = [_questions(len(pool.distractors), Choose.kind) for pool in pools]
        names = np.repeat([pool.name for pool in pools], asked)
        tally.add(answered(Choose.kind, scores, (), _unread), names)
    rows = iter(scores["probabilities"])
    for pool in pools:
        logs = [np.log(next(rows)) for _ in range(_questions(len(pool.distractors), Choose.kind))]
        yield 0.0, np.concatenate([row[1:] - row[0] for row in logs])


def _unread() -> Choose:
    raise AssertionError("probabilities are read without the questions")


@dataclass
class Tally:
    """What is known of the answers beside which one won: sums over the questions with each name,
    and their number, [names, TOLD] for every context."""

    names: int
    sums: list[np.ndarray] = field(default_factory=list)
    known: list[np.ndarray] = field(default_factory=list)
    one_place: int = 0
    """Questions whose answer stands at one place in all rotations, of `rotated` ones."""
    rotated: int = 0

    def begin(self) -> None:
        """The next context."""
        for part in (self.sums, self.known):
            part.append(np.zeros((self.names, len(TOLD))))

    def add(self, found: Choices, names: np.ndarray) -> None:
        """Answers of this context, with the name that each question is about."""
        for k, name in enumerate(TOLD):
            values = getattr(found, name)
            there = ~np.isnan(values)
            np.add.at(self.sums[-1], (names[there], k), values[there])
            np.add.at(self.known[-1], (names[there], k), 1.0)

    def add_rotated(self, chances: np.ndarray) -> None:
        """Add questions that were asked in several orders, [questions, orders, places]."""
        at_one, compared = same_place(chances)
        self.one_place, self.rotated = self.one_place + at_one, self.rotated + compared

    def cells(self) -> np.ndarray:
        """Means [names, contexts, TOLD]; NaN where nothing is known."""
        return _ratio(np.stack(self.sums, axis=1), np.stack(self.known, axis=1))

    def totals(self) -> np.ndarray:
        """Sums and numbers of answers, [2, TOLD]."""
        return np.stack([np.sum(part, axis=(0, 1)) for part in (self.sums, self.known)])

    def means(self) -> dict[str, float | None]:
        found = _ratio(*self.totals())
        return {n: None if v != v else float(v) for n, v in zip(TOLD, found)}


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    blank = np.full(total.shape, np.nan)
    return np.asarray(np.divide(total, count, out=blank, where=count > 0))


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
