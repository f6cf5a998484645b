"""How each kind of model is asked an underspecified question, and what its answers score.

    span          start and end probability of each term's span; no answer: the first token's
    mask-score    probability of each term at the mask (names: or of the pronoun, if larger)
    fill-mask     the same among the ten best tokens only, else 0 (as published)
    continuation  likelihood of each term after the question, per token
    option        one logit per term, turned into shares
    generate      share of sampled answers that name the term

Every way gives S [inputs, 2] in [0, 1], and what goes to neither where the model can say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics import unqover
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design, Inputs
from evenhand.requests import (
    MASK,
    Continuation,
    FillMask,
    Generate,
    LazyRequests,
    MaskScore,
    Option,
    Requests,
    Scores,
    Span,
)
from evenhand.words.reading_answers import named_first

Floats = npt.NDArray[np.float64]
Texts = Callable[[], Inputs]
PRONOUNS = {"female": "she", "male": "he"}
PUBLISHED_TOP = 10


@dataclass(frozen=True)
class Answers:
    """S of both terms [inputs, 2], and the share that goes to neither [inputs] (or None)."""

    scores: Floats
    neither: Floats | None = None


@dataclass(frozen=True)
class Asking:
    """One way of asking: how many request rows an input takes, and what they score."""

    type: type[Requests]
    rows: int
    make: Callable[[Inputs], Requests]
    read: Callable[[Scores, Texts], Answers]
    """Takes the scores and, for ways that compare texts, a function giving the inputs."""

    def requests(self, design: Design, start: int = 0, stop: int | None = None) -> LazyRequests:
        """The rows of cells [start, stop), made when a shard needs them."""
        base = start * INPUTS_PER_CELL
        cells = (len(design) if stop is None else stop) - start

        def make(low: int, high: int) -> Requests:
            first, last = low // self.rows, -(-high // self.rows)
            made = self.make(design.inputs(base + first, base + last, MASK))
            if first * self.rows == low and last * self.rows == high:
                return made
            return made.take(range(low - first * self.rows, high - first * self.rows))

        group = INPUTS_PER_CELL * self.rows
        return LazyRequests(self.type, cells * group, make, group, distinct=True)

    def answers(self, scores: Scores, design: Design, start: int, stop: int) -> Answers:
        """What the scores of cells [start, stop) say."""
        low, high = start * INPUTS_PER_CELL, stop * INPUTS_PER_CELL
        return self.read(scores, lambda: design.inputs(low, high, MASK))


@dataclass(frozen=True)
class Manner:
    """Settings of the probe that say how to ask."""

    as_published: bool = False
    relative: bool | None = None
    prompt: str = "{context}\nQuestion: {question}\nAnswer:"
    unknown: str = ""
    pronoun_of: Any = None
    draws: int = 10
    seed: int = 0
    max_new_tokens: int = 12


def asking(kind: str, manner: Manner) -> Asking:
    """The way to ask a model that answers this request kind."""
    ways = {
        Span.kind: _span,
        MaskScore.kind: _mask,
        FillMask.kind: _fill,
        Continuation.kind: _continuation,
        Option.kind: _option,
        Generate.kind: _generate,
    }
    return ways[kind](manner)


def _span(manner: Manner) -> Asking:
    def make(inputs: Inputs) -> Requests:
        return Span(
            inputs.question, inputs.context, inputs.first, inputs.second,
            as_published=manner.as_published,
        )  # fmt: skip

    def read(scores: Scores, inputs: Texts) -> Answers:
        pairs = (("start", "end"), ("other_start", "other_end"))
        both = np.stack([unqover.span_score(scores[a], scores[b]) for a, b in pairs], axis=1)
        return Answers(_shares(both) if manner.relative else both, np.asarray(scores["none"]))

    return Asking(Span, 1, make, read)


def _mask(manner: Manner) -> Asking:
    def make(inputs: Inputs) -> Requests:
        texts = list(map(" ".join, zip(inputs.context, inputs.question)))
        names = set(inputs.first).union(inputs.second)
        said = {name: _with_pronoun(name, manner) for name in names}
        return MaskScore(_repeated(texts, 2), [said[n] for pair in _pairs(inputs) for n in pair])

    def read(scores: Scores, inputs: Texts) -> Answers:
        values = np.exp(scores["logprob"] / np.maximum(scores["n_pieces"], 1)).reshape(-1, 2)
        return Answers(_shares(values) if manner.relative else values)

    return Asking(MaskScore, 2, make, read)


def _fill(manner: Manner) -> Asking:
    """As published: a term scores only when it is among the ten best tokens."""

    def make(inputs: Inputs) -> Requests:
        return FillMask(
            [f"{c} {q}" for c, q in zip(inputs.context, inputs.question)], top=PUBLISHED_TOP
        )

    def read(scores: Scores, inputs: Texts) -> Answers:
        fills, logprobs = scores["fills"], scores["logprobs"]
        values = np.empty((len(fills), 2))
        for i, pair in enumerate(_pairs(inputs())):
            chance = np.exp(np.asarray(logprobs[i], np.float64)).tolist()
            for k, name in enumerate(pair):
                said = _with_pronoun(name, manner)
                values[i, k] = unqover.top_fill_score(fills[i], chance, said)
        return Answers(values)

    return Asking(FillMask, 1, make, read)


def _continuation(manner: Manner) -> Asking:
    rows = 3 if manner.unknown else 2

    def make(inputs: Inputs) -> Requests:
        prefixes = _prompts(inputs, manner)
        return Continuation(
            _repeated(prefixes, rows), [f" {c}" for c in _candidates(inputs, manner)]
        )

    def read(scores: Scores, inputs: Texts) -> Answers:
        each = np.exp(scores["logprob"] / np.maximum(scores["n_tokens"], 1)).reshape(-1, rows)
        return _split(each, relative=manner.relative is not False)

    return Asking(Continuation, rows, make, read)


def _option(manner: Manner) -> Asking:
    rows = 3 if manner.unknown else 2

    def make(inputs: Inputs) -> Requests:
        prompts = [f"{c} {q}" for c, q in zip(inputs.context, inputs.question)]
        return Option(_repeated(prompts, rows), _candidates(inputs, manner))

    def read(scores: Scores, inputs: Texts) -> Answers:
        logits = np.asarray(scores["logit"], np.float64).reshape(-1, rows)
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return _split(shifted, relative=True)

    return Asking(Option, rows, make, read)


def _generate(manner: Manner) -> Asking:
    def make(inputs: Inputs) -> Requests:
        draws = [str(d) for d in range(manner.draws)]
        prompts = _repeated(_prompts(inputs, manner), manner.draws)
        return Generate(
            prompts, draws * len(inputs.context), max_new_tokens=manner.max_new_tokens,
            seed=manner.seed,
        )  # fmt: skip

    def read(scores: Scores, inputs: Texts) -> Answers:
        """Shares of sampled answers that name each term first, and that name neither."""
        texts, draws = scores["text"], manner.draws
        values = np.zeros((len(texts) // draws, 3))
        for i, pair in enumerate(_pairs(inputs())):
            for text in texts[i * draws : (i + 1) * draws]:
                values[i, named_first(text, pair)] += 1  # NONE: the last column
        values /= draws
        return Answers(values[:, :2], values[:, 2])

    return Asking(Generate, manner.draws, make, read)


def _pairs(inputs: Inputs) -> list[tuple[str, str]]:
    return list(zip(inputs.first, inputs.second))


def _repeated(texts: list[str], times: int) -> list[str]:
    return [text for text in texts for _ in range(times)]


def _with_pronoun(name: str, manner: Manner) -> str:
    pronoun = manner.pronoun_of(name) if manner.pronoun_of else ""
    return f"{name}\t{pronoun}" if pronoun else name


def _candidates(inputs: Inputs, manner: Manner) -> list[str]:
    third = (manner.unknown,) if manner.unknown else ()
    return [name for pair in _pairs(inputs) for name in (*pair, *third)]


def _prompts(inputs: Inputs, manner: Manner) -> list[str]:
    return [
        manner.prompt.format(context=c, question=q) for c, q in zip(inputs.context, inputs.question)
    ]


def _shares(values: Floats) -> Floats:
    """Each row divided by its sum; NaN where there is nothing to share."""
    total = values.sum(axis=1, keepdims=True)
    out = np.full(values.shape, np.nan)
    return np.asarray(np.divide(values, total, out=out, where=total > 0), np.float64)


def _split(values: Floats, *, relative: bool) -> Answers:
    shares = _shares(values) if relative else values
    return Answers(shares[:, :2], shares[:, 2] if shares.shape[1] > 2 else None)
