"""Predictions in the format that UnQover released: one JSON object, one entry per ordered pair.

    {"female|male|Mary|John|0|None|was a nurse|was a nurse": {"context": ...,
       "q0": {"question": ..., "ans0": {"text", "start", "end"}, "ans1": {...}}, "q1": {...}}, ...}

q0 is the question, q1 its negation; ans0 belongs to the first subject. S = sqrt(start * end).
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import Table, from_columns
from evenhand.errors import DataError
from evenhand.opening import opened, read_json

PARTS = 8
ROUNDING = 1e-6
"""How far a float32 softmax may overshoot."""
_FIRST_KEY = re.compile(rb'\{\s*"((?:[^"\\]|\\.)*)"')


def is_predictions(path: Path) -> bool:
    """Whether a file looks like released predictions: one object whose first key has its bars.

    The name does not matter; packed files are unpacked.
    """
    try:
        with opened(path) as file:
            head = file.read(4_096).lstrip()
    except DataError:
        return False
    key = _FIRST_KEY.match(head)
    return key is not None and key[1].count(b"|") == PARTS - 1


def read_predictions(path: Path) -> Table:
    """Released predictions as a score table of the `measure underspecified` contract.

    Raises:
        DataError: no JSON, a key without its eight parts, or an answer without probabilities.
    """
    data = read_json(path, "released predictions")
    names = (
        "template",
        "attribute",
        "first",
        "second",
        "negated",
        "score_first",
        "score_second",
        "group_first",
        "group_second",
        "attribute_class",
    )
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
    wrong = next((end for end in ends if not -ROUNDING <= end <= 1 + ROUNDING), None)
    if wrong is not None:
        raise DataError(
            f"{path}: {key!r}, {question}, {who}: {wrong!r} is not a probability. Start and end "
            "lie between 0 and 1; convert logits first, and leave out what was not predicted."
        )
    return math.sqrt(max(ends[0], 0.0) * max(ends[1], 0.0))
