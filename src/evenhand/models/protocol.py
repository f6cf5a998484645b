"""What the runner needs of a model, whatever stands behind it.

A model kind is a class derived from `Model`, one line of `plugins.BUILT_IN` (or an entry point
`evenhand.models` of another package). The smallest one sets `name`, `kind` and `answers`, and
gives `fingerprint` and `answer`; everything else has a default that suits it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from evenhand.errors import SpecError, unknown
from evenhand.opening import read_text
from evenhand.requests import Column, Requests

Chat = Literal["auto", "on", "off"]
Way = Literal["continuation", "letters", "answers"]
Load = Literal["whole", "8bit", "4bit"]
LIMITS = ("concurrency", "price_in", "price_out", "max_cost")


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model and how to ask it. None: what suits the machine (see `precision`).

    Attributes:
        revision: of a Hub id: a commit, branch or tag.
        chat: ask through the model's chat template. auto: where it has one.
        system: the system prompt of every conversation; "" for none of ours.
        way: how a language model says which of several options it takes: by the likelihood of
            each as its answer, of the letter it is listed under, or by sampled whole answers.
        model, base_url: of a model behind an address: its name there, and where openai:NAME is.
        rung: ask a model behind an address this way (1 to 5), not the best that it supports.
        concurrency: at most this many calls at once; None adapts to what the server can take.
        price_in, price_out, max_cost: prices per million tokens, and what may be spent.
        calls: a run folder whose finished calls are not to be paid again.
    """

    dtype: str | None = None
    device: str | None = None
    revision: str | None = None
    token_budget: int | None = None
    compile: bool = False
    load: Load = "whole"
    chat: Chat = "auto"
    system: str = ""
    way: Way = "continuation"
    model: str = ""
    base_url: str = ""
    rung: int | None = None
    concurrency: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    max_cost: float | None = None
    calls: Path | None = None

    def __post_init__(self) -> None:
        for name, known in (("chat", Chat), ("way", Way), ("load", Load)):
            if getattr(self, name) not in get_args(known):
                raise SpecError(
                    unknown(name, getattr(self, name), get_args(known), where=f"--{name}")
                )

    def chosen(self) -> dict[str, Any]:
        """What was chosen of all that changes scores, for the record of a run.

        >>> LoadOptions(chat="off", device="cpu").chosen()
        {'chat': 'off'}
        """
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in (*LIMITS, "calls", "device", "token_budget")
            and getattr(self, f.name) != f.default
        }

    def for_others(self) -> LoadOptions:
        """The same machine for a model that is not the audited one, asked in its own usual way."""
        return LoadOptions(
            dtype=self.dtype,
            device=self.device,
            token_budget=self.token_budget,
            compile=self.compile,
        )

    def limits(self) -> dict[str, Any]:
        """What was chosen of speed and spending, which changes no score."""
        return {n: getattr(self, n) for n in LIMITS if getattr(self, n) is not None}


def with_options(options: LoadOptions | None, how: Mapping[str, Any]) -> LoadOptions:
    """The options with single ones changed, as keyword arguments give them.

    >>> with_options(None, {"chat": "off"}).chat
    'off'
    """
    for name in how:
        if name not in LoadOptions.__dataclass_fields__:
            raise SpecError(unknown("option", name, LoadOptions.__dataclass_fields__))
    if how.get("system"):
        how = {**how, "system": system_text(how["system"])}
    return replace(options or LoadOptions(), **how)


def system_text(given: str) -> str:
    """A system prompt as typed: the text, or @FILE for the text in a file.

    >>> system_text("Be brief.")
    'Be brief.'
    """
    return read_text(Path(given[1:]), "a system prompt").strip() if given[:1] == "@" else given


@dataclass(frozen=True)
class Expected:
    """What asking will take of a model that says so itself, because every call may be paid.

    `cost` is None where prices are not known.
    """

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cost: float | None = None

    def __add__(self, other: Expected) -> Expected:
        cost = None if None in (self.cost, other.cost) else (self.cost or 0) + (other.cost or 0)
        return Expected(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            cost,
        )

    def __str__(self) -> str:
        price = "unknown cost (give --price-in and --price-out per million tokens)"
        price = price if self.cost is None else f"cost {self.cost:.4g}"
        return (
            f"about {self.calls:,} calls, {self.tokens_in:,} tokens in, {self.tokens_out:,} out, "
            f"{self.seconds:,.0f} s, {price}"
        )


@dataclass(frozen=True)
class ModelRecipe:
    """What another process needs to build the same model: what the resolver was given."""

    spec: str
    kind: str | None = None
    options: LoadOptions = LoadOptions()

    def build(self, **changes: Any) -> Model:
        """The model once more, with some options changed (`device`, `dtype`)."""
        from evenhand.models.loading.resolver import resolve

        return resolve(self.spec, kind=self.kind, options=replace(self.options, **changes))


class Model:
    """Something that answers requests.

    Class attributes, read before anything is loaded:
        architectures: endings of transformers class names that are of this kind; "" takes what
            no other kind does.
        task: the Hub's name of what such models do, for model cards.
        rungs: the rungs such models have, each with the request kinds that it answers.

    Attributes:
        name: what people call it.
        kind: the name under which its class is registered; or a name of its own.
        answers: the request kinds it can answer.
        device, dtype: where and in which precision it computes.
        token_budget: how many tokens it puts into a batch (0: it has no such limit); halved for a
            moment when memory runs out.
        rung: how it says which of several options it takes (`Choose`), by name: continuation, chat
            continuation, letters, choice head, mask, span, decision endpoint, top
            log-probabilities, completions echo, constrained sampling, free text. Part of its
            fingerprint; scores of two rungs never meet in one table.
        recipe: how another process builds the same model; None when only this object is it.
        mitigations: what was done to it, in order; part of its fingerprint.
    """

    architectures: ClassVar[tuple[str, ...]] = ()
    task: ClassVar[str] = ""
    rungs: ClassVar[Mapping[str, frozenset[str]]] = {}

    name: str
    kind: str
    answers: frozenset[str]
    device: str = "cpu"
    dtype: str = ""
    token_budget: int = 0
    rung: str = ""
    recipe: ModelRecipe | None = None
    mitigations: tuple[str, ...] = ()

    @classmethod
    def claims(cls, path: Path) -> bool:
        """Whether a file or folder without a transformers configuration is of this kind."""
        return False

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> Model:
        """The model from a path or Hub id."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Changes whenever its scores may change: weights, dtype, mitigations, batch plan."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Facts for the record: parameters, dtype, device, source."""
        rung = {"rung": self.rung} if self.rung else {}
        return {"name": self.name, "kind": self.kind, "answers": sorted(self.answers), **rung}

    def conversation(self, requests: Requests) -> str:
        """The first row as the model reads it, where that is more than its texts."""
        return ""

    def prepare(self, requests: Requests) -> Any:
        """Work that can be done ahead of the device (tokenising). May run in another thread."""
        return None

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        """One value per row and output column, in row order."""
        raise NotImplementedError

    @property
    def overlaps(self) -> bool:
        """Whether `begin` returns before its answers are there, so that shards can overlap."""
        return False

    @property
    def alternates(self) -> bool:
        """Whether shards are better prepared between passes than in a thread beside them."""
        return False

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        """Start answering; the function given back waits for the answers."""
        columns = self.answer(requests, prepared)
        return lambda: columns

    def count_tokens(self, texts: Sequence[str]) -> int | None:
        """How many tokens the texts have; None where it has no tokens."""
        return None

    def cut(self, texts: Sequence[str]) -> list[list[str]] | None:
        """What each text is cut into, piece by piece; None where it has no vocabulary.

        An unknown piece is "", a byte that is no character by itself holds U+FFFD.
        """
        return None

    @property
    def threads(self) -> int:
        """How many threads it computes with (0: it does not matter)."""
        return 0

    def keep_below(self, folder: Path) -> None:
        """A run folder where finished calls may be kept until their shard is stored."""

    def stored(self, requests: Requests) -> None:
        """The answers to these requests are stored."""

    def expected(self, requests: Requests, distinct: int) -> Expected | None:
        """What this many distinct rows like these will take; None: try it out and see."""
        return None

    def introduction(self) -> tuple[str, list[dict[str, Any]]] | None:
        """A line and a table about what was found out before anything is asked."""
        return None

    def release(self) -> None:
        """Give cached memory back to the device before it is asked again."""

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")
