"""Asking which of these: `Choose` where a model answers it, else what it does answer.

    choose        probabilities, mass, refused, unread: the model knows how (its rung)
    continuation  the likelihood of each option after the prompt as text
    option        one logit per option, turned into shares
    generate      sampled answers, read by rule
    mask-score    the likelihood of each option at a mask after the prompt

Adapters answer `Choose` by one of the others; probes ask them of models that know no `Choose`
(scripts, other packages' kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.requests import (
    MASK,
    Choose,
    Column,
    Continuation,
    FillMask,
    Generate,
    MaskScore,
    Option,
    Requests,
    Scores,
    Span,
)
from evenhand.words import packs as own
from evenhand.words.reading_answers import tallied

Floats = npt.NDArray[np.float64]
Sizes = Sequence[int] | npt.NDArray[np.integer[Any]]
CHOICES = (Choose.kind, Continuation.kind, Option.kind, Generate.kind)
"""Request kinds that can say which of several options, in order of preference."""
RUNGS = {
    Continuation.kind: "continuation",
    Option.kind: "choice head",
    Generate.kind: "free text",
    MaskScore.kind: "mask",
    FillMask.kind: "mask",
    Span.kind: "span",
}
"""What single request kinds are, as ways of saying which."""
WRITTEN = 16
"""Tokens of a sampled answer."""
TOLD = ("mass", "refused", "unread")
ROUNDING = 1e-9
"""Options closer than this share of the likeliest one are tied."""
ALIKE = 0.01
"""Answers are the same if no option's share differs by more from the usual answer."""


def heard() -> dict[str, own.Wordings]:
    """What answers are read by beside the installed languages, for a worker elsewhere."""
    return own.adopted()


def hear(packs: Mapping[str, own.Wordings]) -> None:
    """Read answers by these packs too (`heard` of the process that gives the work)."""
    own.adopt(packs)


@dataclass(frozen=True)
class Choices:
    """What was answered.

    Attributes:
        probabilities: of every option, row after row.
        mass, refused, unread: by row, as in `Choose`; NaN where the model cannot say.
    """

    probabilities: Floats
    mass: Floats
    refused: Floats
    unread: Floats

    def columns(self, sizes: Sizes) -> dict[str, Column]:
        """As the answers to `Choose`."""
        rows: list[Any] = np.split(self.probabilities, np.cumsum(sizes)[:-1])
        told: dict[str, Column] = {name: getattr(self, name) for name in TOLD}
        return {"probabilities": rows[: len(sizes)], **told}

    def means(self) -> dict[str, float | None]:
        """Mean mass, refusals and unread answers, None where unknown."""
        return {name: mean_if_any(getattr(self, name)) for name in TOLD}


def mean_if_any(values: Floats) -> float | None:
    """The mean of what is known.

    >>> mean_if_any(np.array([0.5, np.nan])), mean_if_any(np.array([np.nan]))
    (0.5, None)
    """
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def how(asked: Mapping[str, Any], kind: str) -> str:
    """The rung behind answers of a request kind, from what the model says of itself."""
    return str(asked.get("rung") or kind) if kind == Choose.kind else RUNGS.get(kind, kind)


def request_rows(kind: str, options: int, samples: int) -> int:
    """How many request rows a question with this many options takes."""
    return {Choose.kind: 1, Generate.kind: samples}.get(kind, options)


def as_asked(kind: str, questions: Choose) -> Requests:
    """The questions as requests of a kind."""
    if kind == Choose.kind:
        return questions
    texts = questions.as_text()
    if kind == Generate.kind:
        n = questions.samples
        return Generate(
            [t for t in texts for _ in range(n)],
            [str(d) for d in range(n)] * len(texts),
            turn="question",
            max_new_tokens=WRITTEN,
            seed=questions.seed,
        )
    if kind == Option.kind:  # a choice head knows that it is asked
        texts = [prompt.replace("\n", " ") for prompt in questions.prompt]
    repeated = [t for t, row in zip(texts, questions.listed) for _ in row]
    options = list(chain.from_iterable(questions.listed))
    if kind == Option.kind:
        return Option(repeated, options)
    if kind == MaskScore.kind:
        return MaskScore([f"{t} {MASK}." for t in repeated], options)
    return Continuation(repeated, [f" {o}" for o in options])


def answered(
    kind: str,
    scores: Scores,
    sizes: Sizes,
    questions: Callable[[], Choose],
    *,
    per_token: bool = False,
) -> Choices:
    """What the scores say.

    Args:
        kind: of the requests.
        scores: their answers.
        sizes: how many options each question has.
        questions: gives the questions again, where reading needs their texts.
        per_token: as in `Choose`.
    """
    if kind == Choose.kind:
        flat = np.fromiter(chain.from_iterable(scores["probabilities"]), np.float64)
        return Choices(flat, *(np.asarray(scores[name], np.float64) for name in TOLD))
    if kind == Generate.kind:
        return _read(scores["text"], questions())
    if kind == Option.kind:
        logits, starts = np.asarray(scores["logit"], np.float64), _starts(sizes)
        shifted = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts), sizes))
        shares = shifted / np.repeat(np.add.reduceat(shifted, starts), sizes)
        return Choices(shares, np.ones(len(sizes)), *_unseen(sizes))
    count = scores["n_pieces" if kind == MaskScore.kind else "n_tokens"]
    return likelihoods(scores["logprob"], count, sizes, per_token=per_token)


def likelihoods(logprob: Floats, count: Any, sizes: Sizes, *, per_token: bool) -> Choices:
    """Choices from summed log-probabilities of options of this many tokens."""
    exact = np.exp(logprob)
    shown = np.exp(logprob / np.maximum(count, 1)) if per_token else exact
    return Choices(shown, np.minimum(1.0, np.add.reduceat(exact, _starts(sizes))), *_unseen(sizes))


def answered_by(kind: str, questions: Choose, columns: Mapping[str, Any]) -> dict[str, Column]:
    """The answers to `Choose` from those to the requests of a kind that stood for it."""
    sizes = [len(row) for row in questions.listed]
    found = answered(kind, Scores(columns), sizes, lambda: questions, per_token=questions.per_token)
    return found.columns(sizes)


def unrotated(values: Floats) -> Floats:
    """[questions, turns, places] summed by option: in turn t place l holds option l + t.

    >>> unrotated(np.array([[[3.0, 1, 2], [1, 2, 3], [2, 3, 1]]])).tolist()
    [[9.0, 3.0, 6.0]]
    """
    turns, places = values.shape[1:]
    total = np.zeros((len(values), places))
    for turn in range(turns):
        for place in range(places):
            total[:, (place + turn) % places] += values[:, turn, place]
    return total


def same_place(chances: Floats) -> tuple[int, int]:
    """Count the questions whose answer stands at the same place in every order of the options.

    There the order decides, not what the options say. Ties in any order are left out.

    Args:
        chances: [questions, orders, places].

    Returns:
        Questions at one place in all orders, and questions that were compared.

    >>> first, reads = [[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]
    >>> same_place(np.array([first, reads, [[0.5, 0.5], [0.8, 0.2]]]))
    (1, 2)
    """
    if chances.shape[1] < 2 or not chances.size:
        return 0, 0
    apart = _decided(chances).all(axis=1)
    picked = chances.argmax(axis=2)[apart]
    return int((picked == picked[:, :1]).all(axis=1).sum()), int(apart.sum())


def most_common_place(chances: Floats) -> tuple[int, int]:
    """Count the questions answered at the most frequent place, and those that are answered.

    For options that stand in a random order, each question in one order only. Ties are left out.

    Args:
        chances: [questions, places].

    >>> most_common_place(np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]))
    (2, 3)
    """
    if chances.ndim != 2 or chances.shape[1] < 2:
        return 0, 0
    picked = chances.argmax(axis=1)[_decided(chances)]
    return int(np.bincount(picked, minlength=1).max()), len(picked)


def most_alike(chances: Floats) -> tuple[int, int]:
    """Count the questions that get the most frequent answer, and those that get an answer.

    For options that are listed in one order only: a model that picks one of them whatever is asked
    answers all questions alike, within one hundredth of the probability of its options. The usual
    answer is the median. Questions without a likeliest option are left out.

    Args:
        chances: [questions, options].

    >>> most_alike(np.array([[0.9, 0.1], [0.9, 0.1], [0.7, 0.3], [0.5, 0.5]]))
    (2, 3)
    """
    if chances.ndim != 2 or chances.shape[1] < 2:
        return 0, 0
    answers = chances[_decided(chances)]
    if len(answers) < 2:
        return 0, 0
    shares = answers / answers.sum(axis=1, keepdims=True)
    away = np.abs(shares - np.median(shares, axis=0)).max(axis=1)
    return int((away <= ALIKE).sum()), len(answers)


def share_of(counts: tuple[int, int]) -> float | None:
    """Return the first number as a share of the second, None of nothing.

    >>> share_of((1, 4)), share_of((0, 0))
    (0.25, None)
    """
    return counts[0] / counts[1] if counts[1] else None


def _decided(chances: Floats) -> npt.NDArray[np.bool_]:
    """Return which rows have one likeliest option, by more than rounding."""
    ranked = np.sort(chances, axis=-1)
    return np.asarray(ranked[..., -1] - ranked[..., -2] > ROUNDING * ranked[..., -1])


def _starts(sizes: Sizes) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def _unseen(sizes: Sizes) -> tuple[Floats, Floats]:
    """Refusals cannot be seen, and nothing has to be read."""
    return np.full(len(sizes), np.nan), np.zeros(len(sizes))


def _read(texts: Sequence[str], questions: Choose) -> Choices:
    """Shares of sampled answers that take each option, decline, or cannot be read."""
    n = questions.samples
    rows = [
        tallied(texts[row * n : (row + 1) * n], options)
        for row, options in enumerate(questions.listed)
    ]
    mass = np.asarray([sum(shares) for shares, _, _ in rows])
    flat = np.asarray(list(chain.from_iterable(shares for shares, _, _ in rows)), np.float64)
    return Choices(flat, mass, *np.asarray([row[1:] for row in rows], np.float64).reshape(-1, 2).T)
