"""Measures from files: settings that check themselves, and one call that gives a result.

A probe offers readers under the names of `evenhand measure NAME` (`Probe.readers`); those of no
probe are listed in `plugins.READERS`. The command line makes its options from the settings, and
`evenhand.measure` its functions, so a reader is all that a new measure needs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BeforeValidator, Field, InstanceOf

from evenhand import plugins
from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.corpora.tables import Table, in_memory
from evenhand.errors import DataError, SpecError
from evenhand.runs.controls import Answering
from evenhand.settings import Settings
from evenhand.strict import record

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.probes.base import Measured, Placebo, Probe
    from evenhand.probes.logs import Log
    from evenhand.runs.card import MetricCard
    from evenhand.runs.finding import Finding


def _split(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return tuple(v.strip() for v in value.split(",") if v.strip())


def _given(value: Any) -> Any:
    """A table in memory as one; a path as it is, and anything else is refused."""
    if isinstance(value, str | Path):
        return value
    table = in_memory(value)
    if table is None:
        raise DataError(
            f"{type(value).__name__} is not a table. Accepted: the path of a CSV, JSON lines or "
            "Parquet file; a DataFrame of pandas or polars; an Arrow table; a mapping of column "
            "names to values; a list of rows."
        )
    return table


Input = Annotated[
    Path | InstanceOf[Table],
    BeforeValidator(_given),
    Field(description="A CSV, JSON lines or Parquet file.", json_schema_extra={"metavar": "INPUT"}),
]
T = TypeVar("T")
Names = Annotated[tuple[T, ...], BeforeValidator(_split)]
"""Several texts; one text with commas is split."""
Seed = Annotated[
    int, Field(ge=0, le=2**53, description="Seed of every draw: same seed, same bytes.")
]
Resamples = Annotated[int, Field(ge=2, le=10_000_000, description="Replicates of an interval.")]
Published = Annotated[bool, Field(description="Count as the benchmark's released code does.")]


@dataclass(frozen=True)
class Shown:
    """One table for people: a title, column heads, rows of text; or a note without rows."""

    title: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def text(self) -> str:
        """Columns of equal width below the title."""
        lines = [self.head, *self.rows] if self.head else []
        wide = [max(len(line[k]) for line in lines) for k in range(len(self.head))]
        told = ["  ".join(c.ljust(w) for c, w in zip(line, wide)).rstrip() for line in lines]
        return "\n".join([self.title, *told])


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What a result says about groups: all that a run folder with a report is made of.

    Attributes:
        name, title: of the measure.
        source: whose scores they are, e.g. the name of a file.
        findings: without verdicts; those follow from all of them together.
        tables: items and what charts are drawn from.
        placebos: comparisons that must find nothing.
        settings, summary: for the record.
        unlisted: p values of tests that are too many to be findings.
        probe: settings of the probe that words the findings.
        answering: how whoever made the scores answered, beside the summary.
    """

    name: str
    title: str
    source: str
    findings: Sequence[Finding]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    placebos: Sequence[Placebo] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    unlisted: Sequence[float] = ()
    probe: Mapping[str, Any] = field(default_factory=dict)
    answering: Answering | None = None

    @classmethod
    def of(
        cls,
        probe: Probe,
        reader: Reader,
        source: str | Path | Table,
        found: Measured,
        **answers: int,
    ) -> Claims:
        """What a probe found in scores that a reader read.

        Args:
            probe: whose sentences, cards and charts they are.
            source: the file.
            found: as `Probe.run` gives it.
            answers: how many have not been read, were refused or not asked, for the first screen.
        """
        import pyarrow as pa

        named = source.source if isinstance(source, Table) else source
        told = [f"Answers {what.replace('_', ' ')}: {n:,}." for what, n in answers.items() if n]
        items = found.items if isinstance(found.items, pa.Table) else found.items.read_all()
        return cls(
            name=probe.name,
            title=probe.title,
            source=Path(named).name,
            findings=found.findings,
            tables={"items": items, **found.tables},
            placebos=found.placebos,
            settings=reader.given(),
            unlisted=found.unlisted,
            summary={**found.summary, "trust": [*found.summary.get("trust", ()), *told]},
            probe=probe.model_dump(mode="json", exclude_defaults=True),
            answering=found.answering,
        )


@dataclass(frozen=True)
class Columns:
    """A table that a result shows to people: some columns of the rows in one of its fields.

    The title may name other fields of the result: "HONEST ({n_terms} terms)".
    """

    title: str
    rows: str
    keys: tuple[str, ...]


class Result:
    """What a reader gives: a frozen dataclass that can be printed and written as JSON."""

    measure: ClassVar[str] = ""
    tables: ClassVar[tuple[Columns, ...]] = ()
    called: ClassVar[str] = ""
    """What a person types for it, where the contract has no `measure`."""
    reader: ClassVar[Reader | None] = None
    """Who read it, where that is known."""
    _claims: ClassVar[tuple[Callable[[], Claims], ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.called = cls.measure or cls.called

    def telling(self, claims: Callable[[], Claims]) -> Self:
        """The same result, of which a report can be made; claims are made when asked for."""
        object.__setattr__(self, "_claims", (claims,))
        return self

    def claims(self) -> Claims | None:
        """What a report can be made of; None where there are numbers only."""
        return self._claims[0]() if self._claims else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract; undefined numbers are NaN here and null in the file."""
        named = {"measure": self.measure} if self.measure else {}
        return named | dict(record(self))

    def shown(self) -> Iterable[Shown]:
        """Tables and notes for people; by default those that the class declares."""
        for part in self.tables:
            rows = getattr(self, part.rows)
            listing = [rows] if isinstance(rows, Mapping) else rows
            yield listed(part.title.format(**vars(self)), listing, part.keys)

    def __str__(self) -> str:
        """The tables of the command line as plain text."""
        return "\n".join(part.text() for part in self.shown())

    def _repr_html_(self) -> str:
        from evenhand.runs.html import box, paragraph, table

        parts = [
            paragraph(p.title) + (table(p.head, p.rows) if p.head else "") for p in self.shown()
        ]
        return box(f"measure {self.called}".strip(), *parts)


class RowsResult(Result):
    """A result whose `rows` are told apart by two columns; JSON has them by these, too."""

    keys: ClassVar[tuple[str, str]]

    def as_dict(self) -> dict[str, Any]:
        """`scores[first][second]` beside the flat `rows`."""
        told = super().as_dict()
        scores: dict[str, dict[str, Any]] = {}
        for row in told["rows"]:
            rest = {k: v for k, v in row.items() if k not in self.keys}
            scores.setdefault(row[self.keys[0]], {})[row[self.keys[1]]] = rest
        return {"measure": self.measure, "scores": scores} | told


class Task(Settings):
    """Settings that do something and end in a result; a command is made of each.

    Class attributes:
        name: how the command is called.
        help: what it does, and what its input is; the first line is the short form.
        positional: settings that are arguments and not options, in their order.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    positional: ClassVar[tuple[str, ...]] = ()

    def work(self, say: Callable[[str], None]) -> Result:
        """Do the work; `say` hears how it goes."""
        raise NotImplementedError

    def only(self, *names: str) -> dict[str, Any]:
        """Some of the settings by name, as the result keeps them."""
        return {name: getattr(self, name) for name in names}


class Reader(Task):
    """Base of all readers: what `evenhand measure NAME` reads from files.

    Class attributes:
        cards: of metrics that no probe has.
    """

    cards: ClassVar[tuple[MetricCard, ...]] = ()

    def work(self, say: Callable[[str], None]) -> Result:
        result = self.read()
        object.__setattr__(result, "reader", self)
        return result

    def read(self) -> Result:
        """Read the files and measure."""
        raise NotImplementedError

    @classmethod
    def from_log(cls, log: Log, given: Mapping[str, Any]) -> Reader | None:
        """The same measure of the items of another program's log; None where they do not fit.

        `given` holds what the user said beside the log, e.g. where the benchmark's files are.
        """
        return None

    def given(self) -> dict[str, Any]:
        """Options that are not the default, as a command line has them."""
        held = {k: getattr(self, k) for k in sorted(self.model_fields_set - {*self.positional})}
        own = {k: str(v) if isinstance(v, Path) else v for k, v in held.items()}
        plain = (str, int, float, tuple)
        return {k: v for k, v in own.items() if v != self._default(k) and isinstance(v, plain)}

    def files(self) -> dict[str, Path]:
        """The files it read, by setting; a folder or a table in memory is none."""
        given = {k: getattr(self, k) for k in sorted(self.model_fields_set)}
        found = {k: Path(v) for k, v in given.items() if v and isinstance(v, str | Path)}
        return {k: path for k, path in found.items() if path.is_file()}

    def kept(self) -> Mapping[str, bytes]:
        """Contents to keep with the files it read, by setting: what else the numbers rest on."""
        return {}

    def whole(self) -> bool:
        """Whether files and options are all that it read."""
        held = {*self.files(), *self.given()}
        folders = (self.given().get(k) for k in held - {*self.files()})
        known = not any(isinstance(v, str) and Path(v).is_dir() for v in folders)
        return known and {*self.positional} <= held

    def _default(self, name: str) -> Any:
        return type(self).model_fields[name].get_default(call_default_factory=True)


@dataclass(frozen=True)
class FileItems:
    """What a file holds, as items of a probe.

    Attributes:
        probe: the probe, with the settings that the file and the options give.
        items: answered items.
        source: the table or file they come from.
        lost: answers that were declined, empty or not read, by what became of them.
        counts: other numbers of the file that the contract states.
    """

    probe: Probe
    items: Items
    source: Table | Path
    lost: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class ItemsReader(Reader):
    """Base of readers whose files hold answered items of a probe.

    A subclass turns the file into items (`items`) and puts the rows of the comparisons into its
    contract (`result`); findings, tables and negative controls are then the probe's own.
    """

    def items(self) -> FileItems:
        """Read the file."""
        raise NotImplementedError

    def compared(self, file: FileItems) -> list[Row]:
        """Judge the comparisons for the contract; none if it has no rows of them."""
        seed = int(getattr(self, "seed", 0))
        return judge(file.probe.declare(file.items.having(seed=seed)), file.probe.rate)

    def result(self, rows: list[Row], file: FileItems) -> Result:
        """Put the rows into the contract."""
        raise NotImplementedError

    def read(self) -> Result:
        file = self.items()
        seed = int(getattr(self, "seed", 0))
        return self.result(self.compared(file), file).telling(
            lambda: Claims.of(
                file.probe, self, file.source, file.probe.measure(file.items, seed), **file.lost
            )
        )


class BenchmarkReader(Reader):
    """Base of readers that score a benchmark's files, soundly or as its released code does."""

    as_published: Published = False

    @property
    def how(self) -> dict[str, Any]:
        """How it is scored."""
        return self.only("as_published")


def readers() -> dict[str, type[Reader]]:
    """Every reader by name, evenhand's own first; a package that cannot be loaded is noted."""
    found: dict[str, type[Reader]] = {}
    for part in _offered():
        for name, reader in part.items():
            found.setdefault(name, reader)
    return found


def _offered() -> Iterator[Mapping[str, type[Reader]]]:
    for group in (plugins.PROBES, plugins.READERS):
        for name in plugins.places(group):
            try:
                yield _of(group, name)
            except SpecError as error:
                warnings.warn(f"left out: {error}", stacklevel=2)


def _of(group: str, name: str) -> Mapping[str, type[Reader]]:
    found = plugins.load(group, name, what="probe" if group == plugins.PROBES else "measure")
    offered: Mapping[str, type[Reader]]
    offered = found.readers() if group == plugins.PROBES else {name: found}
    return offered


def reader_of(name: str) -> type[Reader] | None:
    """The reader of that name, without loading other probes when its own has the same name."""
    for group in (plugins.READERS, plugins.PROBES):
        if name in plugins.places(group):
            found = _of(group, name).get(name)
            if found is not None:
                return found
    return readers().get(name)


def number(value: float | None, form: str = ".3f") -> str:
    """A number for people; a dash when it is undefined.

    >>> number(0.12345, "+.2f"), number(float("nan"))
    ('+0.12', '-')
    """
    return "-" if value is None or value != value else format(value, form)


def span(low: float | None, high: float | None, form: str = "+.4f") -> str:
    """An interval for people."""
    if number(low) == "-" or number(high) == "-":
        return "-"
    return f"[{low:{form}}, {high:{form}}]"


def listed(title: str, rows: Iterable[Any], keys: Sequence[str]) -> Shown:
    """A table of some fields of rows, in the order of the keys."""
    flat = [record(row) for row in rows]
    cells = [[_cell(row.get(key)) for key in keys] for row in flat]
    return Shown(title, keys, cells) if cells else Shown(f"{title}: none")


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value if value is not None else "")
