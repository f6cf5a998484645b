"""`samples_TASK_TIME.jsonl`, what lm-eval writes with --log_samples, one object per line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import DataError
from evenhand.opening import json_lines, read_object
from evenhand.probes.logs import Log, Sample

PROGRAM = "lm-eval"
FIELDS = ("doc", "arguments", "filtered_resps")
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-inf"
ROUNDING = 1e-3
"""How far above 0 a sum of logarithms may come to lie."""
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<stamp>\d{4}-\d\d-\d\dT[^_]*)")


def is_samples(first: Any) -> bool:
    """Whether the first object of a file is a sample of lm-eval."""
    return isinstance(first, Mapping) and all(name in first for name in FIELDS)


def read_samples(path: Path) -> Log:
    """Every sample. Where a task has several filters, those of the first one."""
    found: list[Sample] = []
    kept = None
    seen: set[str] = set()
    for number, row in json_lines(path, "a sample of lm-eval per line"):
        where = f"{path}, line {number}"
        if not is_samples(row) or not isinstance(row["doc"], Mapping):
            raise DataError(f"{where}: is not a sample of lm-eval; it lacks {', '.join(FIELDS)}.")
        kept = row.get("filter", "none") if kept is None else kept
        if row.get("filter", "none") == kept:
            if "doc_id" in row:
                if (place := repr(row["doc_id"])) in seen:
                    raise DataError(f"{where}: the item {place:.80} occurs twice.")
                seen.add(place)
            found.append(_sample(row, where))
    if not found:
        raise DataError(f"{path}: holds no samples.")
    named = _NAME.fullmatch(path.name.partition(".jsonl")[0])
    task, stamp = (named["task"], named["stamp"]) if named else ("", "")
    return Log(str(path), PROGRAM, found, task, _model(path, stamp))


def _sample(row: Mapping[str, Any], where: str) -> Sample:
    calls = row["arguments"]
    if isinstance(calls, Mapping):
        calls = [list(call.values()) for call in calls.values()]
    given = row["filtered_resps"]
    try:
        scored = [(_likelihood(p[0]), p[1]) for p in given if not isinstance(p, str)]
        if len(scored) == len(calls) and scored:
            asked = tuple((str(text), str(more)) for text, more, *_ in calls)
            return Sample(row["doc"], asked, tuple(value for value, _ in scored))
        (answer,) = given
        return Sample(row["doc"], answer=str(answer if isinstance(answer, str) else answer[0]))
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(
            f"{where}: its answers are neither log-likelihoods nor one text ({given!r:.80}). "
            f"Accepted: tasks of lm-eval that score options, or generate one text."
        ) from error


def _likelihood(value: Any) -> float:
    """A log-likelihood: a plain number, not above 0."""
    written = isinstance(value, str) and re.fullmatch(_NUMBER, value, re.ASCII)
    counted = isinstance(value, int | float) and not isinstance(value, bool)
    if (not written and not counted) or not float(value) <= ROUNDING:
        raise ValueError(f"{value!r:.40} is not a log-likelihood")
    return float(value)


def _model(path: Path, stamp: str) -> str:
    """The model, from the results that lm-eval writes beside the samples of the same run."""
    results = path.with_name(f"results_{stamp}.json")
    if not stamp or not results.is_file():
        return ""
    return str(read_object(results, "results of lm-eval").get("model_name") or "")
