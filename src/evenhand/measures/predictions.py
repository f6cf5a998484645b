"""Predictions in the format that UnQover released: one JSON object, one entry per ordered pair.

    {"female|male|Mary|John|0|None|was a nurse|was a nurse": {"context": ...,
       "q0": {"question": ..., "ans0": {"text", "start", "end"}, "ans1": {...}}, "q1": {...}}, ...}

q0 is the question, q1 its negation; ans0 belongs to the first subject. S = sqrt(start * end).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from evenhand.errors import DataError
from evenhand.measures.tables import Table, from_columns

PARTS = 8


def is_predictions(path: Path) -> bool:
    """Whether a file looks like released predictions: one object whose first key has its bars."""
    if path.suffix.lower() != ".json":
        return False
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(4_096).lstrip()
    except (OSError, UnicodeDecodeError):
        return False
    parts = head.split('"')
    return head.startswith("{") and len(parts) > 1 and parts[1].count("|") == PARTS - 1


def read_predictions(path: Path) -> Table:
    """Released predictions as a score table of the `measure underspecified` contract.

    Raises:
        DataError: no JSON, a key without its eight parts, or an answer without probabilities.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: is not readable JSON ({error}).") from error
    names = (
        "template", "attribute", "first", "second", "negated", "score_first", "score_second",
        "group_first", "group_second", "attribute_class",
    )  # fmt: skip
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for key, record in data.items():
        parts = key.split("|")
        if len(parts) != PARTS:
            raise DataError(
                f"{path}: key {key!r} has {len(parts)} parts; expected cluster1|cluster2|subject1|"
                "subject2|template|class|attribute|attribute."
            )
        for negated, question in ((False, "q0"), (True, "q1")):
            scores = [_score(path, key, record, question, who) for who in ("ans0", "ans1")]
            row = (parts[4], parts[6], parts[2], parts[3], negated, *scores, *parts[:2], parts[5])
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    if set(columns["group_first"]) | set(columns["group_second"]) == {"None"}:
        del columns["group_first"], columns["group_second"]
    return from_columns(dict(columns), str(path))


def _score(path: Path, key: str, record: Any, question: str, who: str) -> float:
    try:
        ends = [float(record[question][who][end]) for end in ("start", "end")]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: {key!r}, {question}, {who} has no start and end probability ({error!r}). "
            "Were the predictions made? Unpredicted files leave them empty."
        ) from error
    return math.sqrt(ends[0] * ends[1]) if min(ends) >= 0 else math.nan
