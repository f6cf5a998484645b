"""Values as strict JSON takes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A value without NaN, infinities, numpy types or tuples; what is not finite becomes None.

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
    return value


def dumps(result: Any) -> str:
    """A result as one line of strict JSON; non-ASCII words are kept readable."""
    return json.dumps(plain(result), ensure_ascii=False, allow_nan=False)
