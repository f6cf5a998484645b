"""What a probe is: settings that check themselves, a plan, and a measurement.

A probe is an ordinary object that may ask a model several times and returns measured arrays as
findings and tables. It sees requests and scores, never a tokenizer or a tensor, so it does not
know which backend answers.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, get_origin

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from evenhand.errors import ModelError
from evenhand.requests import LazyRequests, Requests, Scores
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.finding import Finding
from evenhand.settings import refused

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.probes.reading import Reader
    from evenhand.runs.compared import Part
    from evenhand.runs.record import Run
    from evenhand.stats.estimate import Estimate

TOO_FEW = "too few of them to be split in enough ways to tell"
FDR = 0.05
"""The false-discovery rate where a suite sets none."""


class Asker(Protocol):
    """The door to a model, as a probe sees it."""

    answers: frozenset[str]

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores: ...

    def stream(
        self, requests: Requests | LazyRequests, label: str = ""
    ) -> Iterator[tuple[int, Scores]]:
        """The same scores piece by piece, for lists too large to hold."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the model behind the door: name, kind, labels of a classifier."""

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
        reason: why there could be none.
    """

    what: str
    tests: int
    alarms: int
    reason: str = ""

    @classmethod
    def of(cls, what: str, found: Iterable[tuple[int, int]]) -> Placebo:
        """All of several parts, each with its tests and alarms; none where nothing can be split.

        >>> Placebo.of("halves", [(100, 4), (0, 0)]).alarms
        4
        >>> Placebo.of("halves", [(0, 0)]).reason
        'too few of them to be split in enough ways to tell'
        """
        parts = list(found)
        tests, alarms = sum(n for n, _ in parts), sum(k for _, k in parts)
        return cls(what, tests, alarms, "" if tests else TOO_FEW)


@dataclass(frozen=True)
class Behaviour:
    """What a model is asked to do whatever it thinks of people, one value per item.

    Attributes:
        what: the value in words ("share of answers that go to the person named first").
        values: per item; NaN where there is none.
        margin: how much worse the mean may become and the behaviour still stand.
        ideal: the best value; inf where higher is better, -inf where lower is.
        relative: the margin is a share of the value before.
        weights: how much each item counts; all alike by default.
    """

    what: str
    values: npt.NDArray[np.float64]
    margin: float
    ideal: float = float("inf")
    relative: bool = False
    weights: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Measured:
    """What a probe found: claims, tables for charts and re-analysis, and its items.

    Items too many to hold come as a reader of batches, which can be read once. `unlisted` are the
    p values of tests that were made but are too many to be findings: the family counts them.
    """

    findings: list[Finding]
    items: pa.Table | pa.RecordBatchReader
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    placebos: tuple[Placebo, ...] = ()
    unlisted: tuple[float, ...] = ()


@dataclass(frozen=True)
class ItemShape:
    """Which columns of a probe's items hold the input, the options, the answer and the score.

    A score of two columns is the first minus the second; one of text is 1 where there is any.
    Where an option was taken, `picked` and `right` are the columns with its number and that of the
    right one, and the score is 1 where they agree. `method` says how the answer was read.
    `clusters` are the columns whose values were sampled (templates, names, contexts), over which
    a comparison of two runs generalises.
    """

    text: tuple[str, ...]
    score: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    picked: str = ""
    right: str = ""
    method: str = ""
    clusters: tuple[str, ...] = ()

    def fits(self, columns: Iterable[str]) -> bool:
        """Whether a table has what the shape names, and a score among it."""
        single = [name for name in (self.picked, self.right) if name]
        wanted = {*self.text, *self.score, *self.choices, *self.answer, *single}
        return bool(self.score or self.picked) and wanted <= set(columns)


class Probe(BaseModel):
    """Base of all probes: frozen settings, unknown settings refused.

    Class attributes:
        name: what suites and the command line call it.
        title: what it asks, in a few words.
        paper: the publication it follows.
        needs: request kinds; a model must answer one of them.
        detects: what one of its findings says, for people who read reports.
        cards: what its metrics are called, how to read them, whom they harm.
        item_shape: what the columns of its items are; None where items are not single questions.
        sized_by: the setting that says how many units (pairs, sentences, names) are drawn.
        streams: whether a run too large to hold is summed as its scores arrive
            (`shared.streaming`).
        bound: what keeps the rows of a probe that does not stream few enough to be held.

    Charts are in `CHARTS` (builders by table name) of a `chart.py` beside the probe's module.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    packs: ClassVar[bool] = False
    """Whether its setting `language` names a language pack."""
    detects: ClassVar[str] = ""
    cards: ClassVar[tuple[MetricCard, ...]] = ()
    item_shape: ClassVar[ItemShape | None] = None
    sized_by: ClassVar[str] = ""
    streams: ClassVar[bool] = False
    bound: ClassVar[str] = ""

    def __init__(self, **given: Any) -> None:
        """A probe with these settings; wrong ones are refused in one sentence, as by make_probe."""
        try:
            super().__init__(**given)
        except ValidationError as error:
            kind = type(self)
            raise refused(
                error, kind, f"probe {getattr(kind, 'name', kind.__name__)!r}: "
            ) from error

    as_published: bool = False
    """Follow the released code to the digit instead of the sound default."""
    _rate: float = PrivateAttr(FDR)
    _rung: str = PrivateAttr("")

    @property
    def spoken(self) -> str:
        """The language of a pack that it asks in; "" for English."""
        return str(getattr(self, "language", "")) if self.packs else ""

    @model_validator(mode="before")
    @classmethod
    def _single_values(cls, given: Any) -> Any:
        """A single value where several are taken, as in `--set groups=female`."""
        if not isinstance(given, Mapping):
            return given
        lists = {
            name
            for name, field in cls.model_fields.items()
            if get_origin(field.annotation) is tuple
            and not any(isinstance(m, BeforeValidator) for m in field.metadata)  # splits by itself
        }
        one = {n for n, v in given.items() if n in lists and isinstance(v, str | int)}
        return {n: (v,) if n in one else v for n, v in given.items()}

    @property
    def rate(self) -> float:
        """The false-discovery rate at which sentences speak of a difference: the suite's."""
        return self._rate

    def at_rate(self, rate: float) -> Self:
        """The same probe, wording its findings at this false-discovery rate."""
        same = self.model_copy()
        same._rate = rate
        return same

    def asked_of(self, rung: str) -> Self:
        """The same probe for a model that chooses in this way: some ask more where options are
        seen together."""
        same = self.model_copy()
        same._rung = rung
        return same

    def run(self, ask: Asker, seed: int) -> Measured:
        """Ask the model and measure."""
        raise NotImplementedError

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        """What `run` would ask first."""
        raise NotImplementedError

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        """What cannot become significant with these settings, and the smallest design that can.

        Said before a run, with `preview`, and kept in its record.
        """
        return ()

    @classmethod
    def least_terms(cls) -> tuple[int, int, int]:
        """The fewest terms of a group that tell something: of one comparison, a dozen, hundreds."""
        from evenhand.probes.shared.reach import least_units

        return least_units(1), least_units(12), least_units(600)

    def helpers(self) -> dict[str, str]:
        """Further models this probe asks, by the name it gives them (a path, alias or id)."""
        return {}

    def rows(self, items: pa.Table) -> dict[str, list[dict[str, Any]]]:
        """Lists of this probe's JSON contract, from its items table; most probes have none."""
        return {}

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        """Chart builders by table name, in the order of the page: CHARTS of its chart.py."""
        found: Mapping[str, Builder] = cls._beside("chart", "CHARTS") or {}
        return found

    @classmethod
    def _beside(cls, module: str, name: str) -> Any:
        """What a file of the probe's own folder defines under a name; None when there is none."""
        place = f"{cls.__module__.rpartition('.')[0]}.{module}"
        if place.startswith(".") or not importlib.util.find_spec(place):
            return None
        return getattr(importlib.import_module(place), name, None)

    @classmethod
    def card(cls, metric: str) -> MetricCard:
        """How to read one of its metrics."""
        return next((c for c in cls.cards if c.metric == metric), plain_card(metric))

    @classmethod
    def readers(cls) -> Mapping[str, type[Reader]]:
        """What `evenhand measure NAME` reads from files made elsewhere: READERS of measure.py."""
        return {reader.name: reader for reader in cls._beside("measure", "READERS") or ()}

    @classmethod
    def is_control(cls, finding: Finding) -> bool:
        """Whether a finding of it checks the method on something everybody agrees on."""
        return finding.control or bool(finding.details.get("control"))

    @classmethod
    def compare(cls, runs: Sequence[Run], names: Sequence[str], label: str) -> list[Part]:
        """What this probe adds to a comparison of runs, model by model."""
        return []

    @classmethod
    def changed(cls, before: Run, after: Run, label: str, seed: int) -> list[Part]:
        """What this probe adds to the paired comparison of two runs, item by item.

        Raises:
            RunError: the runs did not ask the same, so they cannot be paired.
        """
        return []

    def estimates(self, items: pa.Table) -> Mapping[str, Estimate]:
        """Its verdicts from items alone, by the end of their findings' ids.

        They must be linear in the items' numbers: the estimates of the difference of two tables
        then say, item by item, how much each changed. Empty where that cannot be.
        """
        return {}

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        """What its items say about how well the model does what it is asked to do."""
        return []

    def lexicons(self) -> list[str]:
        """Lexicons that these settings take their words from."""
        return []

    def finer(self, times: float = 4.0) -> Probe | None:
        """The same probe with this many times its sampled units, for smaller effects.

        None where it has no more material. What is there may still be less than asked for.
        """
        now = getattr(self, self.sized_by) if self.sized_by else None
        return self.model_copy(update={self.sized_by: math.ceil(now * times)}) if now else None

    def most_units(self) -> int | None:
        """How many units there are to draw, however much is asked; None where that is open."""
        return None

    def within(self, share: float) -> Probe:
        """The same probe on about this share of its items (for `--budget`)."""
        return self

    def lacks(self, answers: frozenset[str]) -> str:
        """What a model with these answers cannot do for the probe; "" when it can be asked."""
        return "" if answers & {*self.needs} else f"cannot answer {' or '.join(self.needs)}"

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
