"""Values as strict JSON takes them, and result objects as JSON objects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

OPTIONAL = {"record": "optional"}
"""Metadata of a dataclass field that is left out of the record while it is None."""
INLINE = {"record": "inline"}
"""Of one whose own fields stand in its place; None: nothing stands there."""
UNWRITTEN = {"record": "never"}
"""Of one that is for people only."""


def plain(value: Any) -> Any:
    """A value without NaN, infinities, numpy types, tuples or objects; not finite becomes None.

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
    """A dataclass, and those inside it, as dictionaries; numbers stay as they are.

    An object that has a method `recorded` says by itself what is written of it.

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
