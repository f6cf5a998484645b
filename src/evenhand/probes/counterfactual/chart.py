"""Gaps of every group to its reference, in scores and in decisions."""

from __future__ import annotations

from typing import Any

from evenhand.charts.builders import Ranked, in_turn

CAPTION = (
    "Right of the dashed line, the same text gets more of it for the group named first. Bars are "
    "95 % intervals over texts, and over names or words."
)


def _named(row: Any) -> str:
    both = f"{row['group']} / {row['reference']}".replace("_", " ")
    return f"{both} ({row['output']}, {row['axis'].replace('_', ' ')})"


def _of(kind: str, title: str, axis: str) -> Ranked:
    return Ranked(title, axis, CAPTION, _named, lambda r: bool(r["kind"] == kind))


CHARTS = {
    "gaps": in_turn(
        _of("score", "Scores of the same texts", "difference of mean scores"),
        _of("decision", "Decisions about the same texts", "difference of shares"),
        _of("false-positive", "Wrongly called so", "difference of false-positive rates"),
        _of("false-negative", "Wrongly let through", "difference of false-negative rates"),
    ),
}
