"""Items as columns: numbers as arrays, text as codes into its distinct values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.runs.controls import Answering

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MISSING = -1
"""Code of a text that is not there (None)."""


@dataclass(frozen=True)
class Texts:
    """A column of texts: every distinct text once, in sorted order, and a code for each row."""

    values: tuple[str, ...]
    codes: Integers

    @classmethod
    def of(cls, texts: pa.Array | pa.ChunkedArray | Iterable[str | None]) -> Texts:
        """Encode texts.

        >>> Texts.of(["b", "a", "b"]).codes.tolist()
        [1, 0, 1]
        """
        array = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(list(texts))
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_null(array.type):
            return cls((), np.full(len(array), MISSING))
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        known: list[str] = array.dictionary.to_pylist()
        codes = array.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        order = sorted(range(len(known)), key=known.__getitem__)
        rank = np.empty(len(known) + 1, np.int64)
        rank[order] = np.arange(len(known))
        rank[MISSING] = MISSING
        return cls(tuple(known[k] for k in order), rank[codes])

    @cached_property
    def decoded(self) -> Array:
        """The texts themselves, as an array of objects."""
        lookup = np.empty(len(self.values) + 1, object)
        lookup[: len(self.values)] = self.values
        return np.asarray(lookup[self.codes])

    def arrow(self) -> pa.Array:
        """The texts as an Arrow array of strings."""
        codes = pa.array(self.codes, mask=self.codes == MISSING)
        return pa.array(list(self.values), pa.string()).take(codes)


class Items(Mapping[str, Array]):
    """Rows of questions or answers, by column.

    Attributes:
        about: what a probe knows about its items beside the columns (a lexicon, labels).
        facts: what the record of the run says about them; `questions` is how many they are if a
            question shows several.
        example: one of them, for a preview.
        notes: what people should know before these items are asked.
        seed: of every draw in their comparisons.
        answering: how the model answered them, where a probe can see it.

    Columns whose name begins with `_` serve the probe alone and are not written.

    >>> items = Items({"group": ["b", "a", "b"], "score": [1.0, 2.0, 3.0]})
    >>> items["score"][items.where(group="b")].tolist()
    [1.0, 3.0]
    >>> items.levels("group"), items.at(items.where(group="a")).size
    (('a', 'b'), 1)
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        about: Any = None,
        facts: Mapping[str, Any] | None = None,
        example: str = "",
        notes: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}
        self.about, self.facts = about, dict(facts or {})
        self.example, self.notes, self.seed = example, tuple(notes), seed
        self.answering: Answering | None = None
        self._coded: dict[tuple[str, ...], Integers] = {}

    @classmethod
    def from_table(cls, table: pa.Table, **beside: Any) -> Items:
        """The items of a run that was written before."""
        return cls({name: table.column(name) for name in table.column_names}, **beside)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], **beside: Any) -> Items:
        """Items from rows that all have the same keys."""
        listed = list(rows)
        names = listed[0] if listed else ()
        return cls({name: [row[name] for row in listed] for name in names}, **beside)

    def __getitem__(self, name: str) -> Array:
        column = self._columns[name]
        return column.decoded if isinstance(column, Texts) else column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.codes_or_values(next(iter(self._columns)))) if self._columns else 0

    def codes_or_values(self, name: str) -> Array:
        """A column in its cheapest form that tells equal values from others."""
        column = self._columns[name]
        return column.codes if isinstance(column, Texts) else column

    def numbers(self, name: str) -> Floats:
        """A column as floats."""
        return np.asarray(self._columns[name], np.float64)

    def levels(self, name: str) -> tuple[str, ...]:
        """The distinct texts of a column that occur, sorted."""
        column = self._texts(name)
        present = np.unique(column.codes)
        return tuple(column.values[k] for k in present if k != MISSING)

    def codes(self, *names: str, at: Any = slice(None)) -> Integers:
        """Numbers from 0 for the values of a column, or for combinations of several, sorted."""
        if not (isinstance(at, slice) and at == slice(None)):
            return self._numbered(names, at)
        if names not in self._coded:
            self._coded[names] = self._numbered(names, at)
        return self._coded[names]

    def _numbered(self, names: tuple[str, ...], at: Any) -> Integers:
        parts = [
            np.unique(self.codes_or_values(name)[at], return_inverse=True)[1] for name in names
        ]
        joined = parts[0]
        for part in parts[1:]:
            joined = joined * (int(part.max(initial=0)) + 1) + part
        if len(parts) > 1:
            joined = np.unique(joined, return_inverse=True)[1]
        return np.asarray(joined, np.int64)

    def count(self, *names: str, at: Any = slice(None)) -> int:
        """How many different values, or combinations, there are."""
        return int(self.codes(*names, at=at).max(initial=-1)) + 1

    def where(self, **wanted: Any) -> Mask:
        """The rows whose columns have these values."""
        rows = np.ones(self.size, bool)
        for name, value in wanted.items():
            column = self._columns[name]
            if isinstance(column, Texts):
                known = column.values.index(value) if value in column.values else MISSING - 1
                rows &= column.codes == known
            else:
                rows &= column == value
        return rows

    def at(self, rows: Any) -> Items:
        """These rows: a mask, numbers of rows, or a slice."""
        return self._like(
            {
                name: Texts(c.values, c.codes[rows]) if isinstance(c, Texts) else c[rows]
                for name, c in self._columns.items()
            }
        )

    def having(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        facts: Mapping[str, Any] | None = None,
        seed: int | None = None,
        answering: Answering | None = None,
    ) -> Items:
        """The same rows with these columns, facts, seed or answering added or replaced."""
        more = self._like({**self._columns, **(columns or {})})
        more.answering = answering or self.answering
        more.facts |= facts or {}
        more.seed = self.seed if seed is None else seed
        return more

    def regarding(self, about: Any) -> Items:
        """The same rows, with this known about them."""
        more = self._like(self._columns)
        more.about = about
        return more

    def table(self, *names: str) -> pa.Table:
        """The columns that are written, as an Arrow table."""
        wanted = names or tuple(name for name in self._columns if not name.startswith("_"))
        return pa.table({name: _arrow(self._columns[name]) for name in wanted})

    def _texts(self, name: str) -> Texts:
        column = self._columns[name]
        return column if isinstance(column, Texts) else Texts.of(str(v) for v in column.tolist())

    def _like(self, columns: Mapping[str, Any]) -> Items:
        beside = ("about", "facts", "example", "notes", "seed")
        more = Items(columns, **{name: getattr(self, name) for name in beside})
        more.answering = self.answering
        return more


def _column(values: Any) -> Texts | Array:
    """Texts encoded, numbers as an array, anything else as objects."""
    if isinstance(values, Texts):
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return Texts.of(values)
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return np.asarray(values.to_numpy(zero_copy_only=False))
        return _objects(values.to_pylist())
    if isinstance(values, np.ndarray) and values.dtype != object:
        return Texts.of(values.tolist()) if values.dtype.kind == "U" else values
    listed = list(values)
    if all(isinstance(v, str) or v is None for v in listed):
        return Texts.of(listed)
    if all(isinstance(v, bool | int | float | np.number | np.bool_) for v in listed):
        return np.asarray(listed)
    return _objects(listed)


def _objects(values: Sequence[Any]) -> Array:
    return np.fromiter(values, object, len(values))


def _arrow(column: Texts | Array) -> pa.Array:
    if isinstance(column, Texts):
        return column.arrow()
    return pa.array(column.tolist() if column.dtype == object else column)
