"""What a probe is: settings that check themselves, a plan, and a measurement.

A probe is an ordinary object that may ask a model several times and returns measured arrays as
findings and tables. It sees requests and scores, never a tokenizer or a tensor, so it does not
know which backend answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from evenhand.errors import ModelError
from evenhand.requests import LazyRequests, Requests, Scores
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.probes.reading import Reader
    from evenhand.runs.record import Run


class Asker(Protocol):
    """The door to a model, as a probe sees it."""

    answers: frozenset[str]

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores: ...

    def stream(
        self, requests: Requests | LazyRequests, label: str = ""
    ) -> Iterator[tuple[int, Scores]]:
        """The same scores piece by piece, for lists too large to hold."""

    def helper(self, name: str) -> Asker:
        """The door to a second model that the probe asked for in `helpers`."""


@dataclass(frozen=True)
class Preview:
    """What a probe would ask, before anything runs."""

    items: int
    requests: Requests | LazyRequests
    example: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placebo:
    """Comparisons that must find nothing, made with the scores of the run itself.

    Attributes:
        what: which comparisons, in words ("random halves of the female names").
        tests, alarms: how many there were, and how many had p <= 0.05.
    """

    what: str
    tests: int
    alarms: int


@dataclass(frozen=True)
class Measured:
    """What a probe found: claims, tables for charts and re-analysis, and its items.

    Items too many to hold come as a reader of batches, which can be read once.
    """

    findings: list[Finding]
    items: pa.Table | pa.RecordBatchReader
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    placebos: tuple[Placebo, ...] = ()


@dataclass(frozen=True)
class ItemShape:
    """Which columns of a probe's items hold the input, the options, the answer and the score.

    A score of two columns is the first minus the second. `clusters` are the columns whose values
    were sampled (templates, names, contexts), over which a comparison of two runs generalises.
    """

    text: tuple[str, ...]
    score: tuple[str, ...]
    choices: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()


class Probe(BaseModel):
    """Base of all probes: frozen settings, unknown settings refused.

    Class attributes:
        name: how suites and the command line call it.
        title: what it asks, in a few words.
        paper: the publication it follows.
        needs: request kinds; a model must answer one of them.
        detects: what a finding of it says, for people who read reports.
        cards: what its metrics are called, how to read them, whom they harm.
        item_shape: what the columns of its items are; None where items are not single questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    detects: ClassVar[str] = ""
    cards: ClassVar[tuple[MetricCard, ...]] = ()
    item_shape: ClassVar[ItemShape | None] = None

    as_published: bool = False
    """Follow the released code to the digit instead of the sound default."""

    def run(self, ask: Asker, seed: int) -> Measured:
        """Ask the model and measure."""
        raise NotImplementedError

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        """What `run` would ask first."""
        raise NotImplementedError

    def helpers(self) -> dict[str, str]:
        """Further models this probe asks, by the name it gives them (a path, alias or id)."""
        return {}

    def rows(self, items: pa.Table) -> dict[str, list[dict[str, Any]]]:
        """Lists of this probe's JSON contract, from its items table; most probes have none."""
        return {}

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        """Chart builders by table name, in the order of the page."""
        return {}

    @classmethod
    def readers(cls) -> Mapping[str, type[Reader]]:
        """What `evenhand measure NAME` reads from files made elsewhere, by NAME."""
        return {}

    @classmethod
    def is_control(cls, finding: Finding) -> bool:
        """Whether a finding of it checks the method on something everybody agrees on."""
        return bool(finding.details.get("control"))

    @classmethod
    def compare(
        cls, runs: Sequence[Run], names: Sequence[str], label: str, seed: int
    ) -> Mapping[str, Any]:
        """What this probe adds to a comparison of runs, beside findings and items; by part."""
        return {}

    def lexicons(self) -> list[str]:
        """Lexicons that these settings take their words from."""
        return []

    def finer(self) -> Probe | None:
        """The same probe with more material, for smaller effects; None when there is no more."""
        return None

    def within(self, share: float) -> Probe:
        """The same probe on about this share of its items (for `--budget`)."""
        return self

    def choose(self, answers: frozenset[str]) -> str:
        """The request kind to use with a model, in the probe's order of preference."""
        for kind in self.needs:
            if kind in answers:
                return kind
        raise ModelError(
            f"probe {self.name!r} needs a model that answers {' or '.join(self.needs)}; this one "
            f"answers {', '.join(sorted(answers)) or 'nothing'}. See which probes fit which "
            f"models with: evenhand ls probes"
        )
