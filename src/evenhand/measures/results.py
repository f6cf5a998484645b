"""Results as strict JSON: NaN and infinity become null, numpy numbers become plain ones."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """The value in types that JSON knows; a number that is not finite becomes None.

    >>> plain({"a": np.float64("nan"), "b": (np.int64(2),)})
    {'a': None, 'b': [2]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def dumps(result: Any) -> str:
    """A result as one line of strict JSON; non-ASCII words are kept readable."""
    return json.dumps(plain(result), ensure_ascii=False, allow_nan=False)
