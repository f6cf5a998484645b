"""StereoSet's own two files: the gold examples and a model's predictions."""

from __future__ import annotations

import math
import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import DataError
from evenhand.opening import read_json, unswept

SPLITS = ("intrasentence", "intersentence")
LABELS = ("stereotype", "anti-stereotype", "unrelated")
ABOUT = ("id", "target", "bias_type", "context")


class Example(NamedTuple):
    """One example: its target, domain, context and three sentences with their ids, by `LABELS`."""

    id: str
    split: str
    target: str
    domain: str
    context: str
    sentences: Sequence[str]
    ids: Sequence[str]


@unswept()
def read_gold(path: str | Path) -> list[Example]:
    """Read StereoSet's gold file (.json, .gz or .xz); a sentence id stands in it once."""
    data = _json(Path(path)).get("data")
    if not isinstance(data, Mapping) or not any(s in data for s in SPLITS):
        raise DataError(
            f"{path}: no 'data' with 'intrasentence' or 'intersentence'. Accepted: StereoSet's own "
            "gold format (dev.json)."
        )
    found: list[Example] = []
    for split in SPLITS:
        rows = _rows(path, data, split)
        found += _plain_examples(split, rows) or [_example(path, split, row) for row in rows]
    ids = [i for e in found for i in e.ids]
    if len(set(ids)) < len(ids):
        twice = [i for i, n in Counter(ids).items() if n > 1]
        raise DataError(
            f"{path}: {len(twice)} sentence ids occur more than once, for example {twice[0]!r}. "
            "Accepted: every sentence of the gold file with an id of its own (files that were "
            "joined repeat them)."
        )
    return found


def _plain_examples(split: str, rows: Sequence[Any]) -> list[Example]:
    """The examples column by column, where every row is as it should be; else none."""
    try:
        about = [list(map(itemgetter(name), rows)) for name in ABOUT]
        parts = list(map(itemgetter("sentences"), rows))
        if set(map(len, parts)) != {len(LABELS)}:
            return []
        said = list(chain.from_iterable(parts))
        codes = np.asarray([LABELS.index(s["gold_label"]) for s in said]).reshape(-1, len(LABELS))
        texts, ids = ([s[name] for s in said] for name in ("sentence", "id"))
        if set(map(type, chain(*about, texts, ids))) != {str}:
            return []
    except (KeyError, TypeError, ValueError):
        return []
    order = codes.argsort(axis=1)
    if (np.take_along_axis(codes, order, axis=1) != np.arange(len(LABELS))).any():
        return []  # a label twice
    places = order + np.arange(0, len(said), len(LABELS))[:, None]
    by_label = (np.asarray(column, object)[places].tolist() for column in (texts, ids))
    names, targets, domains, contexts = about
    columns = names, repeat(split), targets, domains, contexts, *by_label
    return list(map(Example._make, zip(*columns)))


def _example(path: Any, split: str, row: Any) -> Example:
    try:
        by_label = {s["gold_label"]: s for s in row["sentences"]}
        about = row["id"], row["target"], row["bias_type"], row["context"]
        three = [by_label[k] for k in LABELS]
        texts = [s["sentence"] for s in three]
        if set(map(type, said := (*about, *texts))) != {str}:
            wrong = next(v for v in said if not isinstance(v, str))
            raise TypeError(f"a text where it has {wrong!r:.60}")
        name, target, domain, context = about
        ids = [str(s["id"]) for s in three]
        return Example(name, split, target, domain, context, texts, ids)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: {split} example {str(row)[:60]!r} lacks {error}. Accepted: id, target, "
            "bias_type, context and three sentences with gold_label and id."
        ) from None


@unswept()
def read_predictions(path: str | Path) -> dict[str, float]:
    """Sentence id -> score, over all splits of a prediction file; null is NaN: it failed.

    Rows that say the same twice (joined shards) count once, with a warning. Two scores for one
    sentence are refused: nothing tells which of them is right.
    """
    data = _json(Path(path))
    plain = _plain(path, data)
    if plain:
        return plain
    found: dict[str, list[float]] = {}
    for split in SPLITS:
        for row in _rows(path, data, split):
            name, score = _prediction(path, split, row)
            found.setdefault(name, []).append(score)
    if not found:
        raise DataError(
            f"{path}: no predictions. Accepted: {{'intrasentence': [{{'id', 'score'}}], ...}}."
        )
    repeated = {name: scores for name, scores in found.items() if len(scores) > 1}
    unlike = [name for name, scores in repeated.items() if len(_different(scores)) > 1]
    if unlike:
        first, second, *_ = _different(found[unlike[0]])
        raise DataError(
            f"{path}: {len(unlike)} of {len(found)} sentence ids have more than one score, for "
            f"example {unlike[0]!r}: '{first}' and '{second}'. Accepted: one score for each "
            "sentence id; equal rows count once. Keep the scores of one model and run: "
            f"evenhand measure stereoset --gold GOLD {shlex.quote(str(path))}"
        )
    if repeated:
        warnings.warn(
            f"{path}: {len(repeated)} sentence ids occur more than once with equal scores, for "
            f"example {next(iter(repeated))!r}; each counts once.",
            stacklevel=2,
        )
    return {name: scores[0] for name, scores in found.items()}


def _plain(path: Any, data: Mapping[str, Any]) -> dict[str, float]:
    """The scores at once, where every row is as it should be and no id comes twice; else none."""
    rows = [row for split in SPLITS for row in _rows(path, data, split)]
    try:
        found = {row["id"]: row["score"] for row in rows}
    except (KeyError, TypeError):
        return {}
    good = len(found) == len(rows) and set(map(type, found)) == {str}
    return found if good and set(map(type, found.values())) == {float} else {}


def _different(scores: Sequence[float]) -> list[str]:
    """The different ones as text, so that null equals null; adding 0 makes -0 a 0."""
    return list(dict.fromkeys("null" if math.isnan(s) else str(s + 0.0) for s in scores))


def _prediction(path: Any, split: str, row: Any) -> tuple[str, float]:
    try:
        name, score = str(row["id"]), row["score"]
        if isinstance(score, bool):
            raise TypeError(f"{score} is not a number")
        return name, float("nan") if score is None else float(score)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: {split} row {str(row)[:60]!r}: expected an id and a number in 'score', or "
            f"null for a sentence that could not be scored ({error})."
        ) from None


def _rows(path: Any, data: Mapping[str, Any], split: str) -> Sequence[Any]:
    rows = data.get(split, [])
    if not isinstance(rows, list):
        raise DataError(
            f"{path}: {split} holds {str(rows)[:60]!r}. Accepted: a list with one object per row."
        )
    return rows


def _json(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(found).__name__}.")
    return found
