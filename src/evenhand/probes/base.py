"""What a probe is: settings that check themselves, a plan, and a measurement.

A probe is an ordinary object that may ask a model several times and returns measured arrays as
findings and tables. It sees requests and scores, never a tokenizer or a tensor, so it does not
know which backend answers.
"""

from __future__ import annotations

import importlib.util
import math
import sys
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

from evenhand.compare.items import Items
from evenhand.compare.rows import Halves, Row, Test, judge, table_of
from evenhand.errors import ModelError
from evenhand.models.choosing import Choices, answered, as_asked, how
from evenhand.requests import Choose, LazyRequests, Requests, Scores
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.controls import Answering
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
class Way:
    """How a model is asked: which kind of request, in which answer mode, with which seed.

    Attributes:
        kind: of the requests.
        rung: how the probability of an option is obtained; of other requests their kind.
        seed: of every draw.
        model: facts about the model (name, labels of a classifier, how its texts begin).
    """

    kind: str
    rung: str = ""
    seed: int = 0
    model: Mapping[str, Any] = field(default_factory=dict)


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
    `answering` is what the probe knows of how the model answers, beside its summary.
    """

    findings: list[Finding]
    items: pa.Table | pa.RecordBatchReader
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    placebos: tuple[Placebo, ...] = ()
    unlisted: tuple[float, ...] = ()
    answering: Answering | None = None


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


def split_halves(rows: Iterable[Row], seed: int) -> list[Placebo]:
    """The split-half checks of comparisons, those with the same words together."""
    splits: dict[str, list[Halves]] = {}
    for row in rows:
        if row.test.split is not None:
            splits.setdefault(row.test.split.what, []).append(row.test.split)
    return [Placebo.of(what, [s.alarms(seed) for s in each]) for what, each in splits.items()]


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
    table: ClassVar[str] = "scores"
    """Under which name the rows of its comparisons are a table of the run; "" for no table."""
    hidden: ClassVar[tuple[str, ...]] = ()
    """Columns of rows that the table leaves out."""
    linear: ClassVar[bool] = False
    """Whether its estimates are linear in the items' numbers, so that runs can be paired."""
    publishes: ClassVar[bool] = True
    """Whether `as_published` changes what is compared; its numbers are then not paired."""
    drawn_by: ClassVar[tuple[str, ...]] = ()
    """The column by whose values `sized_by` draws, and the column of the unit that is drawn."""

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

    # What a probe says -----------------------------------------------------------------------

    def gather(self, way: Way) -> Items:
        """What is asked about whom: a row for each item."""
        raise NotImplementedError

    def ask(self, items: Items, way: Way) -> Requests | Choose:
        """The requests that ask the items of a model that answers this kind."""
        raise NotImplementedError

    def read(self, items: Items, answers: Scores | Choices, way: Way) -> Items:
        """The items with columns for what was answered: `Choices` to a `Choose`, else scores."""
        raise NotImplementedError

    def declare(self, items: Items) -> Iterable[Test]:
        """What is compared in answered items, wherever these come from."""
        raise NotImplementedError

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterable[Finding]:
        """The findings of one comparison among all of them."""
        raise NotImplementedError

    # What it may say beside ------------------------------------------------------------------

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Warnings about what these items are too few to show."""
        return ()

    def checks(self, items: Items, rows: Sequence[Row], seed: int) -> Iterable[Placebo]:
        """Negative controls; by default random halves of each comparison's own sample."""
        return split_halves(rows, seed)

    def beside(
        self, items: Items, rows: Sequence[Row], seed: int
    ) -> tuple[Mapping[str, Sequence[Mapping[str, Any]]], Mapping[str, Any], Sequence[Finding]]:
        """Further tables (lists of rows), facts for the record, and findings."""
        return {}, {}, ()

    # What follows ----------------------------------------------------------------------------

    def run(self, ask: Asker, seed: int) -> Measured:
        """Ask the model and measure."""
        kind = self.choose(ask.answers)
        model = ask.describe()
        way = Way(kind, how(model, kind), seed, model)
        items = self.gather(way)
        asked = self.ask(items, way)
        if not isinstance(asked, Choose):
            return self.measure(self.read(items, ask(asked, self.name), way), seed)
        sizes = [len(options) for options in asked.listed]
        scores = ask(as_asked(kind, asked), self.name)
        given = answered(kind, scores, sizes, lambda: asked, per_token=asked.per_token)
        questions = items.facts.get("questions", items.size)
        facts = {"questions": questions, "rung": way.rung, **given.means()}
        return self.measure(self.read(items, given, way).having(facts=facts), seed)

    def measure(self, items: Items, seed: int = 0) -> Measured:
        """Findings, tables and negative controls of answered items, asked here or elsewhere."""
        items = items.having(seed=seed)
        rows = judge(self.declare(items), self.rate)
        by_table: dict[str, list[Row]] = {} if rows or not self.table else {self.table: []}
        for row in rows:
            if name := row.test.table or self.table:
                by_table.setdefault(name, []).append(row)
        tables, facts, findings = self.beside(items, rows, seed)
        shown = {k: table_of(v, self.hidden) for k, v in {**by_table, **tables}.items()}
        said = [finding for row in rows for finding in self.say(row, items, rows)]
        recorded = {name: [row.recorded() for row in part] for name, part in by_table.items()}
        record = {**items.facts, **recorded, **facts}
        checks = tuple(self.checks(items, rows, seed))
        return Measured(
            [*said, *findings], items.table(), shown, record, checks, answering=items.answering
        )

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        """What `run` would ask first."""
        kind = self.choose(answers)
        way = Way(kind, self._rung or how({}, kind), seed)
        items = self.gather(way)
        asked = self.ask(items, way)
        made = as_asked(kind, asked) if isinstance(asked, Choose) else asked
        example = items.example or str(getattr(asked, asked.columns[0])[0])
        questions = items.facts.get("questions", items.size)
        return Preview(questions, made, example, (*items.notes, *self.too_small(items)))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        """What cannot become significant with these settings, and the smallest design that can.

        Said before a run, with `preview`, and kept in its record.
        """
        if type(self).too_small is Probe.too_small:
            return ()
        return self.too_small(self.gather(Way(self.needs[0], seed=seed)))

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
        found: Mapping[str, Builder] = cls._defined("chart", "CHARTS") or {}
        return found

    @classmethod
    def _defined(cls, module: str, name: str) -> Any:
        """What the probe's module, or one beside it in its folder, defines under a name."""
        home = sys.modules.get(cls.__module__)
        if hasattr(home, name):
            return getattr(home, name)
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
        return {reader.name: reader for reader in cls._defined("measure", "READERS") or ()}

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
        if not self.linear or (self.as_published and self.publishes):
            return {}
        rows = judge(self.declare(self.restored(items)), self.rate)
        return {row.test.place: row.estimate for row in rows if row.test.tested}

    def restored(self, items: pa.Table) -> Items:
        """The items of a run that was written before, with what the probe knows about them."""
        return Items.from_table(items)

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        """What its items say about how well the model does what it is asked to do."""
        return []

    @classmethod
    def answering(cls, summary: Mapping[str, Any]) -> Answering:
        """Return how the model answered, from the summary of a run.

        `runs.controls` decides by it whether the probe can judge the model. Summaries name the
        common facts alike (mass, refused, unread, fluency); a probe that stores further ones under
        names of its own adds them here, one that stores nothing puts them into `Measured`.
        """
        return Answering.from_summary(summary)

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
        if not self.drawn_by:
            return self
        items = self.gather(Way(self.needs[0]))
        part, *unit = self.drawn_by
        parts = items.codes(part)
        most = max(
            items.count(*unit, at=parts == k) if unit else int((parts == k).sum())
            for k in range(int(parts.max()) + 1)
        )
        least = next(
            m.ge for m in type(self).model_fields[self.sized_by].metadata if hasattr(m, "ge")
        )
        return self.model_copy(update={self.sized_by: max(least, int(most * share))})

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
