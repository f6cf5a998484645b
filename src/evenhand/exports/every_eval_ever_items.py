"""Every Eval Ever's item records: one JSON line per item that has a score of its own.

The records keep the published fields (what was put to the model, what it said, the score) and
every other column of the item as text under `metadata`. Items of probes that only compare whole
sets (word vectors, say) have no score of their own and are left out.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.exports.common import safe
from evenhand.probes.base import ItemShape
from evenhand.probes.registry import probe_of
from evenhand.runs.record import Run

SCHEMA_VERSION = "0.3.0"
MOST_ITEMS = 100_000
LONGEST = 20_000
BATCH = 20_000
Row = Mapping[str, Any]


def lines(run: Run, model: str, evaluation: str, model_id: str) -> list[bytes]:
    """The records about one model, evenly drawn where there are more than 100,000 items."""
    out = []
    for label, entry in run.facts["probes"].items():
        known = run.facts["models"].get(entry.get("model"), {}).get("name", entry.get("model"))
        if model not in (entry.get("model"), known) or "items" not in run.tables(label):
            continue
        shape = probe_of(run.facts, label).item_shape
        for place, row in _rows(run, label):
            record = item(shape, row)
            if record is None:
                continue
            record["evaluation_id"] = evaluation
            record["model_id"] = model_id
            record["evaluation_name"] = safe(label, 300)
            record["sample_id"] = f"{safe(label, 300)}/{place}"
            out.append(json.dumps(record, ensure_ascii=True, allow_nan=False).encode("ascii"))
    return out


def _rows(run: Run, label: str) -> Iterator[tuple[int, Row]]:
    """Item number and columns; never the whole table in memory."""
    file = pq.ParquetFile(run.tables(label)["items"])
    step = max(1, math.ceil(file.metadata.num_rows / MOST_ITEMS))
    place = 0
    for batch in file.iter_batches(batch_size=BATCH):
        kept = range((-place) % step, batch.num_rows, step)
        for offset, row in zip(kept, batch.take(pa.array(kept, pa.int64())).to_pylist()):
            yield place + offset, row
        place += batch.num_rows


def item(shape: ItemShape | None, row: Row) -> dict[str, Any] | None:
    """One record without the ids; None for an item without a score.

    >>> shape = ItemShape(text=("text",), score=("score",), answer=("continuation",))
    >>> item(shape, {"text": "The", "continuation": " sea", "score": 0.25})["output"]
    {'raw': [' sea']}
    >>> item(None, {"name": "Ann", "group": "female"}) is None
    True
    """
    fitting = shape if shape and shape.fits(row) else _guess(row)
    found = (_picked if fitting.picked else _scored)(fitting, row)
    if found is None or not math.isfinite(found["score"]):
        return None
    reference = [_text(v) for v in found.get("reference", ())]
    answers = [_text(v) for v in found["answers"]]
    raw = _text(found["text"])
    return {
        "schema_version": SCHEMA_VERSION,
        "sample_hash": hashlib.sha256("\x1f".join([raw, *reference]).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "reference": reference,
            "choices": [_text(v) for v in found.get("choices", ())] or None,
        },
        "output": {"raw": answers},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": answers[0],
                "extraction_method": safe(found["method"], 100),
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(found["score"]), "is_correct": bool(found["correct"])},
        "metadata": {safe(k, 100): _text(v) for k, v in row.items()},
    }


def _picked(shape: ItemShape, row: Row) -> dict[str, Any] | None:
    """An item with options, one of which was taken and one is right."""
    taken, right = row[shape.picked], row[shape.right]
    choices = [row[c] for c in shape.choices]
    if taken is None or right is None or not 0 <= taken < len(choices):
        return None
    return {
        "text": " ".join(str(row[c]) for c in shape.text),
        "choices": choices,
        "reference": [choices[right]],
        "answers": [choices[taken]],
        "score": float(taken == right),
        "correct": taken == right,
        "method": shape.method,
    }


def _scored(shape: ItemShape, row: Row) -> dict[str, Any] | None:
    """An item with a number: a difference of two scores, or the mark of a word list."""
    if not shape.score or any(row[c] is None for c in shape.score):
        return None
    marks = (row[c] for c in shape.score)
    values = [float(bool(v)) if isinstance(v, str) else float(v) for v in marks]
    numbers = {k: v for k, v in row.items() if isinstance(v, float)}
    said = [row[c] for c in shape.answer] or [json.dumps(_finite(numbers), ensure_ascii=False)]
    score = values[0] - (values[1] if len(values) > 1 else 0.0)
    return {
        "text": "\n".join(str(row[c]) for c in shape.text),
        "answers": said,
        "score": score,
        "choices": [row[c] for c in shape.choices],
        "correct": score == 0.0,
        "method": shape.method or " minus ".join(shape.score),
    }


def _guess(row: Row) -> ItemShape:
    """For probes that do not say: texts are the input, the first number is the score."""
    texts = tuple(k for k, v in row.items() if isinstance(v, str))
    numbers = tuple(k for k, v in row.items() if isinstance(v, float))
    return ItemShape(texts, numbers[:1])


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {safe(k, 100): v if math.isfinite(v) else None for k, v in values.items()}


def _text(value: object) -> str:
    return "" if value is None else safe(value, LONGEST)
