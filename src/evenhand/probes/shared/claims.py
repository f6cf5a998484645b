"""What the benchmark probes share: drawing items, and findings from measured rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from evenhand.runs.finding import NAN, Finding

T = TypeVar("T")
KEPT = ("value", "low", "high", "p", "q", "detectable")


def drawn(items: Sequence[T], groups: Sequence[Hashable], most: int | None, draw: int) -> list[T]:
    """At most `most` items of each group, drawn with a seed and kept in their order.

    >>> drawn(["a", "b", "c"], ["x", "x", "y"], 1, draw=0)
    ['a', 'c']
    """
    if most is None:
        return list(items)
    rows: dict[Hashable, list[int]] = {}
    for number, group in enumerate(groups):
        rows.setdefault(group, []).append(number)
    rng = np.random.default_rng(draw)
    kept = [row[i] for row in rows.values() for i in rng.permutation(len(row))[:most]]
    return [items[i] for i in sorted(kept)]


def claim(row: Mapping[str, Any], **facts: Any) -> Finding:
    """A finding from a measured row: its numbers, and what else the probe says about it."""
    numbers: dict[str, Any] = {name: _number(row.get(name)) for name in KEPT}
    listed = row["n"] + row.get("n_missing", 0)
    facts.setdefault("coverage", row["n"] / listed if listed else 0.0)
    facts.setdefault("reason", row.get("reason") or "")
    facts.setdefault("details", {k: v for k, v in row.items() if k not in (*KEPT, "reason")})
    return Finding(**numbers, n=row["n"], **facts)


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)


def sure(row: Mapping[str, Any], form: str = ".1f") -> str:
    """The interval of a row in words, empty when there is none."""
    low, high = _number(row.get("low")), _number(row.get("high"))
    return f" (95 % interval {low:{form}} to {high:{form}})" if low == low else ""
