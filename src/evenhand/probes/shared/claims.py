"""What the benchmark probes share: drawing items, and what stood before scored texts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


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


def begun(model: Mapping[str, Any], start: str) -> dict[str, Any]:
    """What stood before texts without a prefix, for a run's record and its first screen.

    >>> begun({"begins": "bos"}, "auto")["start"]
    'bos'
    >>> begun({}, "none")["trust"]
    ['Sentences were scored with nothing before them, so their first token does not count.']
    """
    used = str(model.get("begins", start)) if start == "auto" else start
    before, counts = ("nothing", "does not count") if used == "none" else (used, "counts too")
    said = f"Sentences were scored with {before} before them, so their first token {counts}."
    return {"start": used, "trust": [] if used == "auto" else [said]}
