"""Three-choice questions in their three rotations, for models that see all answers together.

Every answer stands once in every place (behind every letter), so that a liking for a place cancels
out. Likelihoods are summed over the rotations; of sampled answers a wrong answer's success is the
share that it got. What names no answer is counted, not guessed.

    choose    the three answers, listed as the model's rung does it; a model that judges answers one
              by one is given the list and asked for its letters
    option    the score of each letter
    generate  a text that begins with the letter (models that only write)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from evenhand.models.choosing import Choices, answered, how, unrotated
from evenhand.probes.base import Asker
from evenhand.probes.discovery.score import Pool, Tally, _unread, prompt
from evenhand.requests import (
    ALONE,
    SAMPLED,
    TYPES,
    Choose,
    Generate,
    LazyRequests,
    Option,
    Requests,
)
from evenhand.words.reading_answers import declines

LETTERS = ("A", "B", "C")
LETTER_PROMPT = "{context}\nQuestion: {question}\nA. {first}\nB. {second}\nC. {third}"
ASKED = "The letter of the best answer:"
WRITTEN = 8
"""Tokens a model may write for its letter."""
_LETTER = re.compile(r"\W*(?:the (?:best )?(?:answer|letter)(?: is)?:?\s*)?\W*([ABC])\b(?!')", re.I)
Triple = tuple[int, int, int]


def triples_of(pools: Sequence[Pool], seed: int) -> list[Triple]:
    """Which (pool, distractor, distractor) each question shows.

    Distractors are paired at random; an odd one out is left without an outcome.
    """
    found: list[Triple] = []
    for number, pool in enumerate(pools):
        rng = np.random.default_rng([seed, pool.name, pool.name])
        order = rng.permutation(len(pool.distractors))
        for pair in range(0, len(order) - len(order) % 2, 2):
            found.append((number, int(order[pair]), int(order[pair + 1])))
    return found


def rotated(pools: Sequence[Pool], triples: Sequence[Triple]) -> list[tuple[Pool, list[str]]]:
    """Every question three times: its pool, and its answers in the order of this turn."""
    out = []
    for number, one, two in triples:
        pool = pools[number]
        texts = [pool.filled.answer, pool.distractors[one], pool.distractors[two]]
        out += [(pool, texts[turn:] + texts[:turn]) for turn in range(3)]
    return out


def letter_requests(
    pools: Sequence[Pool], triples: Sequence[Triple], kind: str, rung: str = ""
) -> Requests:
    """What is asked, three rows (turns) a question; `option` takes three rows a turn."""
    turns = rotated(pools, triples)
    if kind == Choose.kind and rung not in ALONE:
        return Choose([prompt(p.filled) for p, _ in turns], ["\t".join(t) for _, t in turns])
    prompts = [
        LETTER_PROMPT.format(
            context=p.filled.context,
            question=p.filled.question,
            first=texts[0],
            second=texts[1],
            third=texts[2],
        )
        for p, texts in turns
    ]
    if kind == Choose.kind:
        return Choose(prompts, ["\t".join(LETTERS)] * len(prompts), text="{prompt}\n" + ASKED)
    prompts = [f"{p}\n{ASKED}" for p in prompts]
    if kind == Option.kind:
        return Option([p for p in prompts for _ in LETTERS], [c for _ in prompts for c in LETTERS])
    return Generate(
        prompts, ["0"] * len(prompts), turn="question", max_new_tokens=WRITTEN, temperature=0.0
    )


def all_letters(pools: Sequence[Pool], seed: int, kind: str, rung: str) -> LazyRequests:
    """The questions of all pools, made when they are wanted."""
    rows = 9 if kind == Option.kind else 3
    ends = np.cumsum([len(pool.distractors) // 2 * rows for pool in pools])

    def make(start: int, stop: int) -> Requests:
        low = int(np.searchsorted(ends, start, side="right"))
        high = int(np.searchsorted(ends, stop, side="left")) + 1
        part = pools[low:high]
        begin = start - (int(ends[low - 1]) if low else 0)
        made = letter_requests(part, triples_of(part, seed), kind, rung)
        return made.take(range(begin, begin + stop - start))

    return LazyRequests(TYPES[kind], int(ends[-1]) if len(ends) else 0, make)


def letter_successes(
    ask: Asker, pools: Sequence[Pool], seed: int, kind: str, tally: Tally | None = None
) -> list[np.ndarray]:
    """Success of every distractor: 0, 1 or a share; NaN where no answer was picked."""
    triples = triples_of(pools, seed)
    rung = how(ask.describe(), kind)
    scores = ask(letter_requests(pools, triples, kind, rung), "choose letters")
    found = Choices(*(np.empty(0),) * 4)
    if kind == Choose.kind:
        found = answered(kind, scores, [3] * (3 * len(triples)), _unread)
        chances = found.probabilities.reshape(-1, 3, 3)
        share = _by_shares(chances) if rung in SAMPLED else _by_scores(np.log(chances))
    elif kind == Option.kind:
        logits = np.asarray(scores["logit"], np.float64).reshape(-1, 3, 3)
        chances, share = np.exp(logits - logits.max(axis=2, keepdims=True)), _by_scores(logits)
    else:
        picked = [written_letter(text) for text in scores["text"]]
        chances = np.asarray([[float(p == k) for k in range(3)] for p in picked]).reshape(-1, 3, 3)
        share, none = _by_shares(chances), np.asarray([p is None for p in picked], float)
        refused = none * [declines(text) for text in scores["text"]]
        found = Choices(chances.ravel(), 1 - none, refused, none - refused)
    if tally is not None:
        asked = [pools[number].name for number, _, _ in triples]
        tally.add(found, np.repeat(np.asarray(asked, np.int64), 3)[: len(found.mass)])
        tally.add_rotated(chances)
    out = [np.full(len(pool.distractors), np.nan) for pool in pools]
    for (number, one, two), row in zip(triples, share):
        out[number][one], out[number][two] = row[1], row[2]
    return out


def _by_scores(logits: np.ndarray) -> np.ndarray:
    """1 for the answer with the largest sum over rotations; logits [questions, turns, places]."""
    total = unrotated(logits - logits.mean(axis=2, keepdims=True))
    return np.asarray(total.argmax(axis=1)[:, None] == np.arange(3), np.float64)


def _by_shares(chances: np.ndarray) -> np.ndarray:
    """Share of what was picked at all that each answer got."""
    votes = unrotated(chances)
    total = votes.sum(axis=1, keepdims=True)
    shares = np.divide(votes, total, out=np.full(votes.shape, np.nan), where=total > 0)
    return np.asarray(shares, np.float64)


def written_letter(text: str) -> int | None:
    """Which letter a text names at its beginning: 0, 1, 2, or None.

    >>> [written_letter(t) for t in (" B.", "(c)", "The answer is A", "Because", "A and B", "")]
    [1, 2, 0, None, None, None]
    """
    found = _LETTER.match(text)
    if found is None or re.match(r"\s*(?:and|or|,|/)\s*\(?[ABC]\b", text[found.end() :]):
        return None
    return "ABC".index(found[1].upper())
