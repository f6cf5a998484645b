"""Chat models pick a letter: three-choice questions in their three rotations.

Every answer stands once behind every letter, so that a liking for a letter cancels out. A model
that scores options is asked for the score of each letter, summed over the rotations; one that
only writes text (a chat service) is asked to write the letter, and a wrong answer's success is
the share of rotations in which it was picked. Texts without a letter are counted, not guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from evenhand.probes.base import Asker
from evenhand.probes.discovery.score import Pool
from evenhand.requests import Generate, Option

LETTERS = ("A", "B", "C")
LETTER_PROMPT = (
    "{context}\nQuestion: {question}\nA. {first}\nB. {second}\nC. {third}\n"
    "The letter of the best answer:"
)
WRITTEN = 8
"""Tokens a model may write for its letter."""
_LETTER = re.compile(r"\W*(?:the (?:best )?(?:answer|letter)(?: is)?:?\s*)?\W*([ABC])\b(?!')", re.I)
Triple = tuple[int, int, int]


def letter_prompts(pools: Sequence[Pool], seed: int) -> tuple[list[str], list[Triple]]:
    """Three prompts per question, and which (pool, distractor, distractor) each question shows.

    Distractors are paired at random; an odd one out is left without an outcome.
    """
    prompts: list[str] = []
    triples: list[Triple] = []
    for number, pool in enumerate(pools):
        order = np.random.default_rng([seed, number, pool.name]).permutation(len(pool.distractors))
        for pair in range(0, len(order) - len(order) % 2, 2):
            one, two = int(order[pair]), int(order[pair + 1])
            triples.append((number, one, two))
            texts = [pool.filled.answer, pool.distractors[one], pool.distractors[two]]
            for turn in range(3):
                first, second, third = texts[turn:] + texts[:turn]
                prompts.append(
                    LETTER_PROMPT.format(
                        context=pool.filled.context, question=pool.filled.question,
                        first=first, second=second, third=third,
                    )
                )  # fmt: skip
    return prompts, triples


def letter_requests(prompts: Sequence[str], answers: frozenset[str]) -> Option | Generate:
    """Scores of the letters where the model gives them, otherwise a short text."""
    if Option.kind in answers:
        return Option([p for p in prompts for _ in LETTERS], [c for _ in prompts for c in LETTERS])
    return Generate(prompts, ["0"] * len(prompts), max_new_tokens=WRITTEN, temperature=0.0)


def letter_successes(
    ask: Asker, pools: Sequence[Pool], seed: int, tally: Counter[str] | None = None
) -> list[np.ndarray]:
    """Success of every distractor: 0, 1 or a share; NaN where the model picked no letter.

    `tally` counts texts (`letters asked`) and those without a letter (`no letter`).
    """
    prompts, triples = letter_prompts(pools, seed)
    scores = ask(letter_requests(prompts, ask.answers), "choose letters")
    if Option.kind in ask.answers:
        share = _by_scores(np.asarray(scores["logit"]).reshape(-1, 3, 3))
    else:
        picked = [written_letter(text) for text in scores["text"]]
        if tally is not None:
            tally["letters asked"] += len(picked)
            tally["no letter"] += picked.count(None)
        share = _by_votes(picked)
    out = [np.full(len(pool.distractors), np.nan) for pool in pools]
    for (number, one, two), row in zip(triples, share):
        out[number][one], out[number][two] = row[1], row[2]
    return out


def _by_scores(logits: np.ndarray) -> np.ndarray:
    """1 for the answer with the largest sum over rotations; logits [questions, turns, letters]."""
    logits = logits - logits.mean(axis=2, keepdims=True)
    total = np.zeros((len(logits), 3))
    for turn in range(3):
        for letter in range(3):  # in turn t the answer behind letter l is number (l + t) mod 3
            total[:, (letter + turn) % 3] += logits[:, turn, letter]
    return np.asarray(total.argmax(axis=1)[:, None] == np.arange(3), np.float64)


def _by_votes(picked: Sequence[int | None]) -> np.ndarray:
    """Share of the rotations with a letter in which each answer was picked."""
    share = np.full((len(picked) // 3, 3), np.nan)
    for question in range(len(share)):
        turns = picked[3 * question : 3 * question + 3]
        votes = [(p + turn) % 3 for turn, p in enumerate(turns) if p is not None]
        if votes:
            share[question] = np.bincount(votes, minlength=3) / len(votes)
    return share


def written_letter(text: str) -> int | None:
    """Which letter a text names at its beginning: 0, 1, 2, or None.

    >>> [written_letter(t) for t in (" B.", "(c)", "The answer is A", "Because", "A and B", "")]
    [1, 2, 0, None, None, None]
    """
    found = _LETTER.match(text)
    if found is None or re.match(r"\s*(?:and|or|,|/)\s*\(?[ABC]\b", text[found.end() :]):
        return None
    return "ABC".index(found[1].upper())
