"""The narrow waist: the closed set of questions that a model can be asked.

A request type is a table with named text columns and a few options that hold for all its rows.
One row is the smallest thing worth asking (one candidate, one option, one pair of contexts), so
that equal rows can be asked once; rows with equal `shared` columns share a forward pass. A new
kind of model means answering some of these types; a new probe means asking them.

    Divergence    context_a, context_b        kl_ab kl_ba hellinger2 js   of the next token
    NextToken     context                     entropy, top tokens and their log-probabilities
    Continuation  prefix, continuation        logprob (sum), n_tokens
    FillMask      text                        best fills of the mask and their log-probabilities
    MaskScore     text, candidate             logprob of the candidate at the mask, n_pieces
    Span          question, context, candidate  start, end probability of the candidate's span
    Option        prompt, option              logit (comparable within one prompt), n_tokens
    Choose        prompt, options             probability of each option, mass, refused, unread
    Generate      prompt, draw                a sampled text
    Classify      text                        class probabilities
    Embed         text                        a vector (NaN where the model has none)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from evenhand.errors import DataError

MARKS = ("⟦", "⟧")
"""Stand around the part of a text whose vector is asked for (`Embed` with `marked`)."""
MASK = "<mask>"
"""Stands for the mask in request texts; each masked model puts its own token there."""


@dataclass(frozen=True)
class Requests:
    """Base of all request types: equal-length text columns plus options for the whole batch."""

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    shared: ClassVar[tuple[str, ...]]
    outputs: ClassVar[Mapping[str, str]]

    def __post_init__(self) -> None:
        sizes = {name: len(getattr(self, name)) for name in self.columns}
        if len(set(sizes.values())) > 1:
            raise DataError(f"{self.kind} request: columns differ in length: {sizes}.")

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that hold for every row, e.g. how many fills to return."""
        return {k: v for k, v in self.__dict__.items() if k not in self.columns}

    def take(self, rows: Sequence[int] | np.ndarray) -> Requests:
        """The given rows, in the given order, under the same options."""
        places = rows.tolist() if isinstance(rows, np.ndarray) else rows
        picked = {
            name: [column[i] for i in places]
            for name in self.columns
            for column in [getattr(self, name)]
        }
        return type(self)(**picked, **self.settings)

    def rows(self) -> list[tuple[str, ...]]:
        """The rows as tuples, in column order."""
        return list(zip(*(getattr(self, name) for name in self.columns)))

    def digest(self) -> str:
        """SHA-256 of kind, options and every row: equal questions have equal digests.

        >>> Embed(text=["she"]).digest() == Embed(text=("she",)).digest()
        True
        """
        state = hashlib.sha256(json.dumps([self.kind, self.settings], sort_keys=True).encode())
        for name in self.columns:
            values = getattr(self, name)
            # Lengths first, so that no two different columns run together to the same bytes.
            state.update(np.fromiter(map(len, values), np.int64, len(values)).tobytes())
            state.update("".join(values).encode("utf-8", "surrogatepass"))
        return state.hexdigest()


@dataclass(frozen=True)
class Divergence(Requests):
    """How far apart are the next-token distributions after two contexts?"""

    kind: ClassVar[str] = "divergence"
    columns: ClassVar[tuple[str, ...]] = ("context_a", "context_b")
    shared: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[Mapping[str, str]] = {
        "kl_ab": "float",
        "kl_ba": "float",
        "hellinger2": "float",
        "js": "float",
    }
    context_a: Sequence[str]
    context_b: Sequence[str]


@dataclass(frozen=True)
class NextToken(Requests):
    """What comes next? Entropy (nats) and the `top` most probable tokens."""

    kind: ClassVar[str] = "next-token"
    columns: ClassVar[tuple[str, ...]] = ("context",)
    shared: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[Mapping[str, str]] = {
        "entropy": "float",
        "tokens": "strings",
        "logprobs": "floats",
    }
    context: Sequence[str]
    top: int = 10


Start = Literal["auto", "bos", "eos", "none"]
"""What stands before a text without a prefix. auto: the begin token if there is one, else the end
token, so that the first word counts; none: nothing, and the first token is not scored."""


@dataclass(frozen=True)
class Continuation(Requests):
    """How likely is this continuation after this prefix? Sum of token log-probabilities.

    `start` says what stands before a continuation whose prefix is empty.
    """

    kind: ClassVar[str] = "continuation"
    columns: ClassVar[tuple[str, ...]] = ("prefix", "continuation")
    shared: ClassVar[tuple[str, ...]] = ("prefix",)
    outputs: ClassVar[Mapping[str, str]] = {"logprob": "float", "n_tokens": "int"}
    prefix: Sequence[str]
    continuation: Sequence[str]
    start: Start = "auto"


@dataclass(frozen=True)
class FillMask(Requests):
    """The `top` best single-piece fills of the one MASK in each text."""

    kind: ClassVar[str] = "fill-mask"
    columns: ClassVar[tuple[str, ...]] = ("text",)
    shared: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[Mapping[str, str]] = {"fills": "strings", "logprobs": "floats"}
    text: Sequence[str]
    top: int = 10


@dataclass(frozen=True)
class MaskScore(Requests):
    """How likely is this candidate at the one MASK of the text?

    A candidate of one piece gets its exact probability. One of k pieces gets k masks and the
    sum of the pieces' log-probabilities, each with the pieces before it filled in. A candidate
    may list alternatives separated by tabs (a name and a pronoun); the likeliest, per piece,
    counts.
    """

    kind: ClassVar[str] = "mask-score"
    columns: ClassVar[tuple[str, ...]] = ("text", "candidate")
    shared: ClassVar[tuple[str, ...]] = ("text",)
    outputs: ClassVar[Mapping[str, str]] = {"logprob": "float", "n_pieces": "int"}
    text: Sequence[str]
    candidate: Sequence[str]


@dataclass(frozen=True)
class Span(Requests):
    """How likely is this candidate the answer span? Start and end probabilities.

    `other` lists the texts of the rival candidates (tab-separated), which decide which
    occurrence is meant when one candidate contains another ("Asian" in "Caucasian").

    A single rival is scored in the same row (`other_start`, `other_end`; NaN for several or none).
    `as_published` follows the released code: one separator, no token types, padding in the
    softmax, batches of 100 as they come, its own rules for spans and articles.
    """

    kind: ClassVar[str] = "span"
    columns: ClassVar[tuple[str, ...]] = ("question", "context", "candidate", "other")
    shared: ClassVar[tuple[str, ...]] = ("question", "context")
    outputs: ClassVar[Mapping[str, str]] = {
        "start": "float",
        "end": "float",
        "none": "float",
        "other_start": "float",
        "other_end": "float",
    }
    question: Sequence[str]
    context: Sequence[str]
    candidate: Sequence[str]
    other: Sequence[str]
    extend: bool = True
    as_published: bool = False


@dataclass(frozen=True)
class Option(Requests):
    """One score per (prompt, option); larger is more likely chosen, comparable per prompt."""

    kind: ClassVar[str] = "option"
    columns: ClassVar[tuple[str, ...]] = ("prompt", "option")
    shared: ClassVar[tuple[str, ...]] = ("prompt",)
    outputs: ClassVar[Mapping[str, str]] = {"logit": "float", "n_tokens": "int"}
    prompt: Sequence[str]
    option: Sequence[str]


SAMPLED = frozenset({"constrained sampling", "free text"})
"""Rungs whose probabilities are shares of sampled answers."""
ALONE = frozenset({"continuation", "chat continuation", "completions echo", "choice head", "mask"})
"""Rungs on which an option is judged without seeing the others: there are as many as one likes."""


@dataclass(frozen=True)
class Choose(Requests):
    """Which of these? A probability for each option; how it is obtained is the model's rung.

    `prompt` is the passage and, as its last line, the question, as a person would put them;
    `options` are the answers, separated by tabs, in the order in which they are listed or named.

    Answers: `probabilities` in the order of the options, as they are (they sum to `mass` <= 1; on
    rungs that sample, shares of the samples; with `per_token` the geometric mean over an option's
    tokens). `refused` is the share of answers that decline (NaN where the rung cannot see it),
    `unread` the share that cannot be read (0 on rungs that give likelihoods).

    Args:
        opening: how the answer begins, before the option.
        text: the prompt as plain text, for models that are not asked as chat; slots {prompt},
            or {passage} and {question} (`parts`).
        samples, seed: for rungs that sample.
        per_token: compare options of different length by their likelihood per token.
    """

    kind: ClassVar[str] = "choose"
    columns: ClassVar[tuple[str, ...]] = ("prompt", "options")
    shared: ClassVar[tuple[str, ...]] = ("prompt",)
    outputs: ClassVar[Mapping[str, str]] = {
        "probabilities": "floats",
        "mass": "float",
        "refused": "float",
        "unread": "float",
    }
    prompt: Sequence[str]
    options: Sequence[str]
    opening: str = ""
    text: str = "{prompt}\nAnswer:"
    samples: int = 10
    seed: int = 0
    per_token: bool = False

    @property
    def listed(self) -> list[list[str]]:
        """The options of each row."""
        return [row.split("\t") for row in self.options]

    def as_text(self, more: Sequence[str] = ()) -> list[str]:
        """Each prompt as plain text, up to where the option begins; `more` ends the questions.

        >>> form = "{passage}\\nQ: {question}\\nA:"
        >>> Choose(["Ann met Bo.\\nWho sang?"], ["Ann\\tBo"], text=form).as_text()
        ['Ann met Bo.\\nQ: Who sang?\\nA:']
        """
        return [
            self.text.format(prompt=prompt + end, passage=passage, question=question + end)
            + self.opening
            for prompt, end in zip(self.prompt, more or [""] * len(self.prompt))
            for passage, _, question in [prompt.rpartition("\n")]
        ]


@dataclass(frozen=True)
class Generate(Requests):
    """One sampled text per (prompt, draw). Equal draws of different prompts share their random
    numbers, so that paired prompts differ through the model only.

    `turn` says whose words the prompt is: the beginning of the model's own text, or a question.
    """

    kind: ClassVar[str] = "generate"
    columns: ClassVar[tuple[str, ...]] = ("prompt", "draw")
    shared: ClassVar[tuple[str, ...]] = ("prompt",)
    outputs: ClassVar[Mapping[str, str]] = {"text": "string", "n_tokens": "int"}
    prompt: Sequence[str]
    draw: Sequence[str]
    turn: Literal["opening", "question"] = "opening"
    max_new_tokens: int = 20
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Classify(Requests):
    """Class probabilities of each text, in the model's own label order; of a scorer, its score."""

    kind: ClassVar[str] = "classify"
    columns: ClassVar[tuple[str, ...]] = ("text",)
    shared: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[Mapping[str, str]] = {"probabilities": "floats"}
    text: Sequence[str]


@dataclass(frozen=True)
class Embed(Requests):
    """One vector per text: a word's row, or the mean of a sentence's token vectors.

    With `marked`, the mean over the tokens that stand between MARKS, in the context of the rest.
    """

    kind: ClassVar[str] = "embed"
    columns: ClassVar[tuple[str, ...]] = ("text",)
    shared: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[Mapping[str, str]] = {"vector": "floats"}
    text: Sequence[str]
    marked: bool = False


TYPES: dict[str, type[Requests]] = {
    t.kind: t
    for t in (
        Divergence,
        NextToken,
        Continuation,
        FillMask,
        MaskScore,
        Span,
        Option,
        Choose,
        Generate,
        Classify,
        Embed,
    )
}


@dataclass(frozen=True)
class LazyRequests:
    """A request list too large to hold: rows are made when a shard needs them.

    Args:
        type: the request type that `make` returns.
        size: how many rows there are in all.
        make: gives rows [start, stop) as one batch; must be deterministic.
        group: rows are cut into shards only at multiples of this (rows of one forward pass).
        distinct: no row comes twice, so nobody needs to look for duplicates.
    """

    type: type[Requests]
    size: int
    make: Callable[[int, int], Requests]
    group: int = 1
    distinct: bool = False

    @property
    def kind(self) -> str:
        return self.type.kind

    def __len__(self) -> int:
        return self.size


Column = np.ndarray | list[Any]


@dataclass(frozen=True)
class Scores:
    """Answers in the row order of the request: one array (or list of lists) per output.

    >>> Scores({"logprob": np.array([-1.0, -2.0])})["logprob"].sum()
    np.float64(-3.0)
    """

    columns: Mapping[str, Column] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def matrix(self, name: str) -> np.ndarray:
        """A list column of equal-length lists as a [rows, width] array."""
        return np.asarray(self.columns[name], dtype=np.float64)
