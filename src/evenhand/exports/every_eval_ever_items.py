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
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.exports.common import safe
from evenhand.runs.record import Run

SCHEMA_VERSION = "0.3.0"
MOST_ITEMS = 100_000
LONGEST = 20_000
BATCH = 20_000
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """Which columns of a probe's items hold the input, the options, the answer and the score.

    A score of two columns is the first minus the second.
    """

    text: tuple[str, ...]
    score: tuple[str, ...]
    choices: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()

    def fits(self, columns: list[str]) -> bool:
        wanted = {*self.text, *self.score, *self.choices, *self.answer}
        return bool(self.score) and wanted <= set(columns)


SHAPES = {
    "underspecified": Shape(
        ("template", "attribute"), ("comparative",), choices=("first", "second")
    ),
    "divergence": Shape(("context_a", "context_b"), ("hellinger2",)),
    "generation": Shape(("text",), ("score",), answer=("continuation",)),
    "discovery": Shape(("name", "word"), ("won",)),
    "stereoset": Shape(("target",), ("stereotype", "anti_stereotype")),
    "crows-pairs": Shape(
        ("bias_type", "direction"), ("sent_more_score", "sent_less_score"),
        choices=("sent_more", "sent_less"),
    ),
    "winobias": Shape(("sentence",), ("logprob_male", "logprob_female")),
    "winogender": Shape(("sentence",), ("logprob_male", "logprob_female")),
}  # fmt: skip


def lines(run: Run, model: str, evaluation: str, model_id: str) -> list[bytes]:
    """The records about one model, evenly drawn where there are more than 100,000 items."""
    out = []
    for label, entry in run.facts["probes"].items():
        known = run.facts["models"].get(entry.get("model"), {}).get("name", entry.get("model"))
        if model not in (entry.get("model"), known) or "items" not in run.tables(label):
            continue
        for place, row in _rows(run, label):
            record = item(str(entry.get("probe", label)), row)
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


def item(kind: str, row: Row) -> dict[str, Any] | None:
    """One record without the ids; None for an item without a score.

    >>> item("generation", {"text": "The", "continuation": " sea", "score": 0.25})["output"]
    {'raw': [' sea']}
    >>> item("name-study", {"name": "Ann", "group": "female"}) is None
    True
    """
    read = _bbq if kind == "bbq" else _honest if kind == "honest" else _shaped
    found = read(kind, row)
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


def _bbq(_: str, row: Row) -> dict[str, Any] | None:
    if row.get("picked") is None or row.get("label") is None:
        return None
    choices = [row[f"ans{i}"] for i in range(3)]
    if not 0 <= row["picked"] < 3:
        return None
    right = row["picked"] == row["label"]
    return {
        "text": f"{row['context']} {row['question']}", "choices": choices,
        "reference": [choices[row["label"]]], "answers": [choices[row["picked"]]],
        "score": 1.0 if right else 0.0, "correct": right, "method": "most likely option",
    }  # fmt: skip


def _honest(_: str, row: Row) -> dict[str, Any]:
    hurtful = bool(row["hurtful"])
    return {
        "text": row["template"], "answers": [row["completion"]], "score": 1.0 if hurtful else 0.0,
        "correct": not hurtful, "method": "top completions looked up in a lexicon",
    }  # fmt: skip


def _shaped(kind: str, row: Row) -> dict[str, Any] | None:
    shape = SHAPES.get(kind, Shape((), ()))
    if not shape.fits(list(row)):
        shape = _guess(row)
    if not shape.score or any(row[c] is None for c in shape.score):
        return None
    values = [float(row[c]) for c in shape.score]
    numbers = {k: v for k, v in row.items() if isinstance(v, float)}
    said = [row[c] for c in shape.answer] or [json.dumps(_finite(numbers), ensure_ascii=False)]
    score = values[0] - (values[1] if len(values) > 1 else 0.0)
    return {
        "text": "\n".join(str(row[c]) for c in shape.text), "answers": said, "score": score,
        "choices": [row[c] for c in shape.choices], "correct": score == 0.0,
        "method": " minus ".join(shape.score),
    }  # fmt: skip


def _guess(row: Row) -> Shape:
    """For probes of others: texts are the input, the first number is the score."""
    texts = tuple(k for k, v in row.items() if isinstance(v, str))
    numbers = tuple(k for k, v in row.items() if isinstance(v, float))
    return Shape(texts, numbers[:1])


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {safe(k, 100): v if math.isfinite(v) else None for k, v in values.items()}


def _text(value: object) -> str:
    return "" if value is None else safe(value, LONGEST)
