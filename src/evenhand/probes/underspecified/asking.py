"""How each kind of model is asked an underspecified question, and what its answers score.

    span          start and end probability of each term's span; no answer: the first token's
    mask-score    probability of each term at the mask (names: or of the pronoun, if larger)
    fill-mask     the same among the ten best tokens only, else 0 (as published)
    choose        which of the two, named in the order of the text: likelihood per token, a choice
                  head's share or the share of sampled answers, as the model has it (its rung)

Every way gives S [inputs, 2] in [0, 1], and what goes to neither where the model can say so. Span
and mask scores stay what UnQover made of start, end and mask probabilities.

Where a language has forms of its words for occupations, grammar alone moves answers:

    ¿Quién es enfermero?      a man's name agrees
    ¿Quién es enfermera?      a woman's name agrees

A model that follows agreement knows its language. Verdicts rest on wordings without a form; a few
pairs are asked in both forms beside them, so that a reader sees how far the forms would have gone.
It is a fact about how the questions work, and never a finding about people.

    moved = share of answers to the names that agree - share to those that do not, over both forms
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.metrics import unqover
from evenhand.models.choosing import answered, as_asked, request_rows
from evenhand.probes.base import Asker
from evenhand.probes.shared.streaming import block_ends, blocks
from evenhand.probes.underspecified.design import (
    INPUTS_PER_CELL,
    Cells,
    Design,
    Inputs,
    make_design,
)
from evenhand.requests import (
    MASK,
    TYPES,
    Choose,
    FillMask,
    LazyRequests,
    MaskScore,
    Requests,
    Scores,
    Span,
)
from evenhand.stats.pair_network import Codes, Floats, ratio
from evenhand.words.packs import load_pack, pack_lists

Texts = Callable[[], Inputs]
PRONOUNS = {"female": "she", "male": "he"}
PUBLISHED_TOP = 10
GROUPS = {"masculine": "male", "feminine": "female"}
"""Which names agree with a form."""
PAIRS = 4
"""Pairs of names that are asked in both forms."""


@dataclass(frozen=True)
class Answers:
    """S of both terms [inputs, 2], and what else is known of each input [inputs, 4].

    The columns of `told` are TOLD; NaN where the model cannot say.
    """

    scores: Floats
    told: Floats


TOLD = ("neither", "mass", "refused", "unread")

Blocks = Iterator[tuple[int, int, Answers]]
"""Answers with the numbers of their first cell and of the first one after them."""


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
        base, end = design.asked_before([start, len(design) if stop is None else stop]).tolist()

        def make(low: int, high: int) -> Requests:
            first, last = low // self.rows, -(-high // self.rows)
            made = self.make(design.texts(design.numbers(base + first, base + last), MASK))
            if first * self.rows == low and last * self.rows == high:
                return made
            return made.take(range(low - first * self.rows, high - first * self.rows))

        group = INPUTS_PER_CELL * self.rows
        return LazyRequests(self.type, (end - base) * self.rows, make, group, distinct=True)

    def answers(self, scores: Scores, design: Design, start: int, stop: int) -> Answers:
        """What the scores of cells [start, stop) say; NaN for inputs that are not asked."""
        number = design.numbers(*design.asked_before([start, stop]).tolist())
        found = self.read(scores, lambda: design.texts(number, MASK))
        inputs = (stop - start) * INPUTS_PER_CELL
        if len(number) == inputs:
            return found
        place = number - start * INPUTS_PER_CELL
        return Answers(_placed(found.scores, place, inputs), _placed(found.told, place, inputs))


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
    sampled: bool = False
    """Whether scores are shares of sampled answers, which are not divided by their sum."""


def asking(kind: str, manner: Manner) -> Asking:
    """The way to ask a model that answers this request kind."""
    ways = {
        Span.kind: _span,
        MaskScore.kind: _mask,
        FillMask.kind: _fill,
    }
    return ways[kind](manner) if kind in ways else _choose(manner, kind)


def _span(manner: Manner) -> Asking:
    def make(inputs: Inputs) -> Requests:
        texts = inputs.question, inputs.context, inputs.first, inputs.second
        return Span(*texts, as_published=manner.as_published)

    def read(scores: Scores, inputs: Texts) -> Answers:
        pairs = (("start", "end"), ("other_start", "other_end"))
        both = np.stack([unqover.span_score(scores[a], scores[b]) for a, b in pairs], axis=1)
        return _told(_shares(both) if manner.relative else both, np.asarray(scores["none"]))

    return Asking(Span, 1, make, read)


def _mask(manner: Manner) -> Asking:
    def make(inputs: Inputs) -> Requests:
        texts = list(map(" ".join, zip(inputs.context, inputs.question)))
        names = set(inputs.first).union(inputs.second)
        said = {name: _with_pronoun(name, manner) for name in names}
        return MaskScore(
            [text for text in texts for _ in range(2)],
            [said[n] for pair in zip(inputs.first, inputs.second) for n in pair],
        )

    def read(scores: Scores, inputs: Texts) -> Answers:
        values = np.exp(scores["logprob"] / np.maximum(scores["n_pieces"], 1)).reshape(-1, 2)
        return _told(_shares(values) if manner.relative else values)

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
        texts = inputs()
        for i, pair in enumerate(zip(texts.first, texts.second)):
            chance = np.exp(np.asarray(logprobs[i], np.float64)).tolist()
            for k, name in enumerate(pair):
                said = _with_pronoun(name, manner)
                values[i, k] = unqover.top_fill_score(fills[i], chance, said)
        return _told(values)

    return Asking(FillMask, 1, make, read)


def _choose(manner: Manner, kind: str) -> Asking:
    width = 3 if manner.unknown else 2
    text = manner.prompt.replace("{context}", "{passage}")

    def questions(inputs: Inputs) -> Choose:
        third = f"\t{manner.unknown}" if manner.unknown else ""
        named = (
            f"{b}\t{a}{third}" if swapped else f"{a}\t{b}{third}"
            for a, b, swapped in zip(inputs.first, inputs.second, inputs.swapped)
        )
        return Choose(
            [f"{c}\n{q}" for c, q in zip(inputs.context, inputs.question)],
            list(named),
            text=text,
            samples=manner.draws,
            seed=manner.seed,
            per_token=True,
        )

    def read(scores: Scores, inputs: Texts) -> Answers:
        given = inputs()
        found = answered(
            kind,
            scores,
            np.full(len(given.swapped), width),
            lambda: questions(given),
            per_token=True,
        )
        values = found.probabilities.reshape(-1, width)
        values[given.swapped, :2] = values[given.swapped, 1::-1]
        relative = manner.relative if manner.relative is not None else not manner.sampled
        values = _shares(values) if relative else values
        neither = values[:, 2] if manner.unknown else np.full(len(values), np.nan)
        if manner.sampled and not manner.unknown:
            neither = 1 - found.mass
        return Answers(
            values[:, :2], np.stack([neither, found.mass, found.refused, found.unread], axis=1)
        )

    rows = request_rows(kind, width, manner.draws)
    return Asking(TYPES[kind], rows, lambda inputs: as_asked(kind, questions(inputs)), read)


def _placed(values: Floats, place: Codes, size: int) -> Floats:
    """Rows at their places among `size`, the others NaN."""
    out = np.full((size, values.shape[1]), np.nan)
    out[place] = values
    return out


def _with_pronoun(name: str, manner: Manner) -> str:
    pronoun = manner.pronoun_of(name) if manner.pronoun_of else ""
    return f"{name}\t{pronoun}" if pronoun else name


def _shares(values: Floats) -> Floats:
    """Each row divided by its sum; NaN where there is nothing to share."""
    return ratio(values, np.broadcast_to(values.sum(axis=1, keepdims=True), values.shape))


def _told(values: Floats, neither: Floats | None = None) -> Answers:
    """Answers of a way that sees no refusals and reads everything."""
    told = np.full((len(values), len(TOLD)), np.nan)
    told[:, 0] = np.nan if neither is None else neither
    told[:, 3] = 0.0
    return Answers(values, told)


def in_blocks(ask: Asker, way: Asking, design: Design, label: str) -> Blocks:
    """Answers about whole pairs of terms, in design order."""
    ends = list(block_ends(design.pair_ends))
    rows = (design.asked_before(ends) * way.rows).tolist()
    scores = (part for _, _, part in blocks(ask, way.requests(design), rows, label))
    for begin, end, part in zip([0, *ends], ends, scores):
        yield begin, end, way.answers(part, design, begin, end)


def cut(design: Design, answers: Answers) -> Blocks:
    """Cut answers that are there already into the same blocks."""
    start = 0
    for stop in block_ends(design.pair_ends):
        part = slice(start * INPUTS_PER_CELL, stop * INPUTS_PER_CELL)
        yield start, stop, Answers(answers.scores[part], answers.told[part])
        start = stop


AGREEMENT = (
    "Asked with the masculine and with the feminine form of the word, the answer moves to the name "
    "that agrees by {:+.0f} of 100 ({} questions): that is grammar. Verdicts rest on wordings "
    "without a form."
)


def agreement_design(
    language: str, social_class: str, attributes: set[str], seed: int
) -> Design | None:
    """A few pairs in every form: one context, the occupations whose forms differ.

    None where the language has no such forms.
    """
    if not language or social_class != "gender":
        return None
    pack = load_pack(language)
    slots = [g for g in pack.genders if g in GROUPS]
    if len(slots) < 2:
        return None
    lists = pack_lists(pack, social_class, "qa", slots)
    differ = [
        a
        for a in lists.attributes
        if a.name in attributes and len({a.forms.get(s) for s in slots}) == len(slots)
    ]
    if not differ:
        return None
    few = lists.templates[: len(slots)]
    return make_design(lists.subjects, few, differ, across=True, pairs=PAIRS, seed=seed)


def agreement(cells: Cells, design: Design) -> dict[str, Any]:
    """How far answers follow the form, over the question as asked and in both orders.

    Facts for a record: the share of answers that `moved`, over how many `questions`, and the
    sentence that says so.
    """
    agrees = [GROUPS[template.slot] for template in design.templates]
    wanted = np.asarray([agrees[t] for t in cells.template])
    groups = np.asarray([s.group for s in design.subjects])
    asserted = cells.scores[:, :, 0].mean(axis=1)
    lean = ratio(asserted[:, 0] - asserted[:, 1], asserted.sum(axis=1))
    signed = np.where(groups[cells.first] == wanted, lean, -lean)
    known = signed[np.isfinite(signed)]
    moved = float(known.mean()) if len(known) else float("nan")
    return {
        "agreement": {"moved": moved, "questions": 2 * len(known)},
        "trust": [AGREEMENT.format(100 * moved, 2 * len(known))],
    }
