"""What the benchmark probes share: drawing items, and findings from measured rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from evenhand.runs.finding import Finding
from evenhand.strict import record

T = TypeVar("T")
KEPT = ("value", "low", "high", "p", "q", "detectable", "error", "freedom")
METHOD = "t over {}, robust to what their items share (CR2)"
"""How means over clusters are judged (`stats.clustered_means`)."""


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


def claim(row: Any, *, over: str = "", otherwise: str = "", **facts: Any) -> Finding:
    """A finding from a measured row: its numbers, and what else the probe says about it.

    Args:
        row: value, interval, p, q and the like; n counts items, n_clusters independent units.
        over: what was sampled ("question templates"): the units, and what the claim reaches.
        otherwise: what is said when nothing is detected.
    """
    told: dict[str, Any] = record(row)
    numbers: dict[str, Any] = {name: float(told[name]) for name in KEPT if name in told}
    listed = told["n"] + told.get("n_missing", 0)
    facts.setdefault("coverage", told["n"] / listed if listed else 0.0)
    facts.setdefault("reason", told.get("reason") or "")
    facts.setdefault("details", {k: v for k, v in told.items() if k not in (*KEPT, "reason")})
    if over:
        facts |= {"units": over, "generalises_over": (over,)}
        facts.setdefault("method", METHOD.format(over))
    if numbers["p"] == numbers["p"]:
        facts["otherwise"] = otherwise
    return Finding(**numbers, n=told.get("n_clusters", told["n"]), **facts)
