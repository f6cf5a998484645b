"""Values as strict JSON takes them, results as JSON objects, and equality of undefined numbers.

NaN differs from itself. Dataclasses hid this up to Python 3.12, which compares tuples of fields and
takes one object as equal to itself; Python 3.13 compares field by field, so that a finding without
a noise floor would differ from its own copy (`SameValues`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

OPTIONAL = {"record": "optional"}
"""Metadata of a dataclass field that is omitted from the record if it is None."""
INLINE = {"record": "inline"}
"""Metadata of a field that is replaced by its own fields; omitted if it is None."""
UNWRITTEN = {"record": "never"}
"""Metadata of a field that is never in the record."""


def plain(value: Any) -> Any:
    """Return a value without NaN, infinities, numpy types, tuples or objects; NaN becomes None.

    >>> plain({"a": float("nan"), "b": (2, "x")})
    {'a': None, 'b': [2, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(record(value))
    return value


def record(value: Any) -> Any:
    """Return a dataclass, and those inside it, as dictionaries; numbers stay as they are.

    An object with a method `recorded` is replaced by the result of that method.

    >>> @dataclasses.dataclass
    ... class Row:
    ...     name: str
    ...     reason: str | None = dataclasses.field(default=None, metadata=OPTIONAL)
    >>> record([Row("a"), Row("b", "too few")])
    [{'name': 'a'}, {'name': 'b', 'reason': 'too few'}]
    """
    if hasattr(value, "recorded") and not isinstance(value, type):
        return record(value.recorded())
    if isinstance(value, Mapping):
        return {key: record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    out: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        item, how = getattr(value, field.name), field.metadata.get("record")
        if how == "inline":
            out |= record(item) or {}
        elif how != "never" and not (how == "optional" and item is None):
            out[field.name] = record(item)
    return out


UNDEFINED = object()
"""Placeholder for NaN in comparisons of values."""


class SameValues:
    """Base of records that are equal if all their values are, undefined ones included.

    For dataclasses declared with `eq=False`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Share(SameValues):
    ...     value: float
    >>> Share(float("nan")) == Share(float("nan")), Share(0.5) == Share(float("nan"))
    (True, False)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(tuple(_values(self)))


def _values(record: Any) -> list[Any]:
    return [_compared(getattr(record, f.name)) for f in fields(record) if f.compare]


def _compared(value: Any) -> Any:
    if isinstance(value, float):
        return UNDEFINED if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {key: _compared(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_compared, value)) if type(value) in (list, tuple) else value
    return value
