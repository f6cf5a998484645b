"""Runs of the same questions side by side: what a comparison holds, before it is laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.charts.base import Drawn, Listing

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """What one probe adds to a comparison, beside findings and items.

    Attributes:
        key: the list of the JSON contract that the part belongs to.
        label: the entry of the suite it is about.
        data: the part as plain values.
        drawn: its charts and tables for the page.
        brief: its table for the terminal.
    """

    key: str
    label: str
    data: Mapping[str, Any]
    drawn: tuple[Drawn, ...] = ()
    brief: Listing | None = None


@dataclass(frozen=True)
class Change:
    """A later run against the first: findings, paired items, parts of probes.

    `reason` says why items could not be paired; empty when they were.
    """

    before: str
    after: str
    findings: tuple[Row, ...]
    items: tuple[Row, ...] = ()
    parts: tuple[Part, ...] = ()
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of one change."""
        reason = {"reason": self.reason} if self.reason else {}
        return {
            "before": self.before, "after": self.after, "items": list(self.items),
            **listed(self.parts), "findings": list(self.findings), **reason,
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Several runs of one suite: every finding of each, what changed, and parts of probes.

    Attributes:
        runs: the folders, the first is what the others are compared with.
        names: what each run is called.
        findings: one row per finding, with a value and an interval per run.
        rate: the suite's false-discovery rate.
    """

    runs: tuple[str, ...]
    names: tuple[str, ...]
    findings: tuple[Row, ...]
    changes: tuple[Change, ...]
    rate: float
    parts: tuple[Part, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand compare --json`)."""
        return {
            "runs": list(self.runs), "names": list(self.names), "findings": list(self.findings),
            **listed(self.parts), "changes": [c.as_dict() for c in self.changes],
        }  # fmt: skip


def listed(parts: tuple[Part, ...]) -> dict[str, list[Any]]:
    """Parts by their key, in order.

    >>> listed((Part("views", "a", {"x": 1}), Part("views", "b", {"x": 2})))
    {'views': [{'x': 1}, {'x': 2}]}
    """
    found: dict[str, list[Any]] = {}
    for part in parts:
        found.setdefault(part.key, []).append(dict(part.data))
    return found
