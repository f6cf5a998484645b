"""Equality of results, of which some numbers are undefined.

NaN differs from itself. Dataclasses hid this up to Python 3.12, which compares tuples of fields and
takes one object as equal to itself; Python 3.13 compares field by field, so that a finding without
a noise floor would differ from its own copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

UNDEFINED = object()
"""Stands for NaN wherever values are compared."""


class SameValues:
    """A record that equals another of its class with the same values, undefined ones included.

    For dataclasses that are made with `eq=False`.

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
