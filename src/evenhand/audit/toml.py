"""Suites and recipes written back as TOML, so that a run can be made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def suite_toml(suite: Mapping[str, Any]) -> str:
    """A suite as TOML.

    >>> print(suite_toml({"name": "a", "probe": [{"name": "courtesy", "axes": ["race"]}]}))
    name = "a"
    <BLANKLINE>
    [[probe]]
    name = "courtesy"
    axes = ["race"]
    """
    lines = _lines({k: v for k, v in suite.items() if k != "probe"})
    for probe in suite["probe"]:
        lines += ["", "[[probe]]", *_lines(probe)]
    return "\n".join(lines)


def tables_toml(values: Mapping[str, Any]) -> str:
    """Values and tables of values as TOML.

    >>> print(tables_toml({"name": "a", "corpus": {"files": ["x.txt"]}}))
    name = "a"
    <BLANKLINE>
    [corpus]
    files = ["x.txt"]
    """
    lines = _lines({k: v for k, v in values.items() if not isinstance(v, Mapping)})
    for name, part in values.items():
        if isinstance(part, Mapping):
            lines += ["", f"[{name}]", *_lines(part)]
    return "\n".join(lines)


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{k} = {_value(v)}" for k, v in values.items() if v is not None]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items())
        return "{" + inner + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=True)
