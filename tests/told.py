"""`evenhand.measure` as tests want it: the JSON object of a result, null where a number is NaN."""

from __future__ import annotations

from typing import Any

from evenhand import measure
from evenhand.strict import plain


def told(name: str, *inputs: Any, **settings: Any) -> dict[str, Any]:
    """What `evenhand measure NAME --json` writes for these inputs."""
    result = getattr(measure, name)(*inputs, **settings)
    return dict(plain(result.as_dict()))
