"""Findings as records of other evaluation tools: Every Eval Ever and lm-evaluation-harness.

Every Eval Ever 0.3.0 (EvalEval coalition) is the interchange format with a place for intervals. It
has no field for an ideal value, so each finding is written twice: as it is, and as its distance
from the ideal, for which lower is better. Paths and ids are those of the coalition's datastore. The
items stand beside the record as JSON lines, one per item that has a score of its own: what was put
to the model, what it said, the score, and every other column as text under `metadata`. Items of
probes that only compare whole sets (word vectors, say) have no score of their own.

In the results JSON of lm-evaluation-harness every finding is a task with one metric; undefined ones
are only in the `evenhand` key, which also holds intervals, p, q, ideal values and coverage.

Standard errors are the findings' own or, if a finding has none, follow from the width of its
interval (normal approximation).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.exports.common import (
    as_json,
    details,
    distance,
    file_name,
    finished_at,
    safe,
    standard_error,
    version,
)
from evenhand.probes.base import ItemShape
from evenhand.probes.registry import probe_of
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.unmeasured import not_measured
from evenhand.runs.wording import defined

SCHEMA_VERSION = "0.3.0"
MOST_ITEMS = 100_000
LONGEST = 20_000
BATCH = 20_000
Row = Mapping[str, Any]


def item_lines(run: Run, model: str, evaluation: str, model_id: str) -> list[bytes]:
    """Return the records about one model; of more than 100,000 items evenly spaced ones."""
    out = []
    for label, entry in run.facts["probes"].items():
        known = run.facts["models"].get(entry.get("model"), {}).get("name", entry.get("model"))
        if model not in (entry.get("model"), known) or "items" not in run.tables(label):
            continue
        shape = probe_of(run.facts, label).item_shape
        for place, row in _item_rows(run, label):
            record = item_record(shape, row)
            if record is None:
                continue
            record["evaluation_id"] = evaluation
            record["model_id"] = model_id
            record["evaluation_name"] = safe(label, 300)
            record["sample_id"] = f"{safe(label, 300)}/{place}"
            out.append(json.dumps(record, ensure_ascii=True, allow_nan=False).encode("ascii"))
    return out


def _item_rows(run: Run, label: str) -> Iterator[tuple[int, Row]]:
    """Yield item numbers and columns, without reading the whole table into memory."""
    file = pq.ParquetFile(run.tables(label)["items"])
    step = max(1, math.ceil(file.metadata.num_rows / MOST_ITEMS))
    place = 0
    for batch in file.iter_batches(batch_size=BATCH):
        kept = range((-place) % step, batch.num_rows, step)
        for offset, row in zip(kept, batch.take(pa.array(kept, pa.int64())).to_pylist()):
            yield place + offset, row
        place += batch.num_rows


def item_record(shape: ItemShape | None, row: Row) -> dict[str, Any] | None:
    """Return one record without the ids, or None if the item has no score.

    >>> shape = ItemShape(text=("text",), score=("score",), answer=("continuation",))
    >>> item_record(shape, {"text": "The", "continuation": " sea", "score": 0.25})["output"]
    {'raw': [' sea']}
    >>> item_record(None, {"name": "Ann", "group": "female"}) is None
    True
    """
    fitting = shape if shape and shape.fits(row) else _guessed_shape(row)
    found = (_chosen_item if fitting.picked else _scored_item)(fitting, row)
    if found is None or not math.isfinite(found["score"]):
        return None
    reference = [_metadata_text(v) for v in found.get("reference", ())]
    answers = [_metadata_text(v) for v in found["answers"]]
    raw = _metadata_text(found["text"])
    return {
        "schema_version": SCHEMA_VERSION,
        "sample_hash": hashlib.sha256("\x1f".join([raw, *reference]).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "reference": reference,
            "choices": [_metadata_text(v) for v in found.get("choices", ())] or None,
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
        "metadata": {safe(k, 100): _metadata_text(v) for k, v in row.items()},
    }


def _chosen_item(shape: ItemShape, row: Row) -> dict[str, Any] | None:
    """Read an item with options, one of which was chosen and one is right."""
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


def _scored_item(shape: ItemShape, row: Row) -> dict[str, Any] | None:
    """Read an item with a number: a difference of two scores, or the mark of a word list."""
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


def _guessed_shape(row: Row) -> ItemShape:
    """Guess the shape of items if the probe declares none: texts are the input, the first
    number is the score."""
    texts = tuple(k for k, v in row.items() if isinstance(v, str))
    numbers = tuple(k for k, v in row.items() if isinstance(v, float))
    return ItemShape(texts, numbers[:1])


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {safe(k, 100): v if math.isfinite(v) else None for k, v in values.items()}


def _metadata_text(value: object) -> str:
    return "" if value is None else safe(value, LONGEST)


DEVELOPERS = {"smollm2-135m": "HuggingFaceTB", "glove-6b-50d": "stanfordnlp"}
UNKNOWN = "unspecified"


def eee_files(run: Run) -> dict[str, bytes]:
    """Return data/<suite>/<developer>/<model>/<id>.json and <id>_samples.jsonl, per model."""
    models = list(dict.fromkeys(f.model for f in run.findings))
    out: dict[str, bytes] = {}
    for model in models:
        data = eee_record(run, model)
        place = _record_path(run, model, data)
        rows = item_lines(run, model, data["evaluation_id"], data["model_info"]["id"])
        if rows:
            raw = b"\n".join(rows) + b"\n"
            out[f"{place}_samples.jsonl"] = raw
            data["detailed_evaluation_results"] = _companion(f"{place}_samples.jsonl", raw)
        out[f"{place}.json"] = as_json(data)
    return dict(sorted(out.items()))


def _record_path(run: Run, model: str, data: dict[str, Any]) -> str:
    """Return the path of a record in the datastore; the same run always has the same id."""
    digest = sha256(as_json([run.facts["work"], run.facts["models"], model, data])).digest()
    suite = file_name(str(run.facts["work"]["suite"]["name"]))
    developer, name = data["model_info"]["developer"], model.rpartition("/")[2]
    folder = f"data/evenhand-{suite}/{file_name(developer)}/{file_name(name)}"
    return f"{folder}/{UUID(bytes=digest[:16], version=4)}"


def _companion(path: str, raw: bytes) -> dict[str, Any]:
    return {
        "format": "jsonl",
        "file_path": path,
        "hash_algorithm": "sha256",
        "checksum": sha256(raw).hexdigest(),
        "total_rows": raw.count(b"\n"),
        "additional_details": {
            "is_correct": "the right option where there is one; otherwise the score is 0, which "
            "shows no difference",
            "at_most": f"{MOST_ITEMS} items of each probe, evenly drawn",
        },
    }


def eee_record(run: Run, model: str) -> dict[str, Any]:
    """Return the record of all defined findings about one model."""
    stamp = str(int(finished_at(run)))
    suite = run.facts["work"]["suite"]["name"]
    own = [f for f in run.findings if f.model == model and defined(f.value)]
    info = _model(run, model)
    facts = run.facts
    cards = [kind_of(facts).card(facts, f) for f in own]
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": safe(f"evenhand-{suite}/{info['id']}/{stamp}", 500),
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "evenhand",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"not_measured": safe("; ".join(not_measured(run)), 4_000)},
        },
        "eval_library": {"name": "evenhand", "version": version(run)},
        "model_info": info,
        "evaluation_results": [
            r
            for f, card in zip(own, cards)
            for r in (_value_result(f, card), _distance_result(f, card))
        ],
    }


def _model(run: Run, model: str) -> dict[str, Any]:
    """Describe a model: local weights are self-deployed, endpoints externally managed."""
    known: dict[str, Any] = next(
        (m for k, m in run.facts["models"].items() if model in (k, m.get("name"))), {}
    )
    extra = {k: safe(v, 500) for k, v in known.items() if isinstance(v, (str, int, float))}
    extra.pop("name", None)
    remote = known.get("kind") == "endpoint" or model.startswith(("http://", "https://"))
    name = model.rpartition("/")[2] or model
    developer = DEVELOPERS.get(model) or model.rpartition("/")[0].rpartition("/")[2] or UNKNOWN
    return {
        "name": safe(name, 500),
        "id": safe(f"{file_name(developer)}/{file_name(name)}", 500),
        "developer": safe(developer, 200),
        "additional_details": {
            **extra,
            "given_as": safe(model, 500),
            "deployment_type": "externally_managed" if remote else "self_deployed",
            "model_availability": "open_weights" if model in DEVELOPERS else "unknown",
        },
    }


def _value_result(finding: Finding, card: MetricCard) -> dict[str, Any]:
    config = {
        "evaluation_description": safe(finding.sentence, 2_000),
        "metric_id": f"evenhand.{finding.metric}",
        "metric_name": card.name,
        "lower_is_better": not card.higher_is_better,
        "score_type": "continuous",
        "min_score": _bound(card.low),
        "max_score": _bound(card.high),
        "additional_details": {
            "direction": f"the ideal value is {finding.ideal}; see the distance from it",
        },
    }
    error = standard_error(finding)
    uncertainty: dict[str, Any] = {"num_samples": int(finding.n)}
    if error is not None:
        own = finding.method if defined(finding.error) else "interval over its normal width"
        uncertainty["standard_error"] = {"value": error, "method": safe(own or "model", 500)}
    if defined(finding.low) and defined(finding.high):
        uncertainty["confidence_interval"] = _interval(finding.low, finding.high, finding)
    return _result(finding, "", config, float(finding.value), uncertainty)


def _distance_result(finding: Finding, card: MetricCard) -> dict[str, Any]:
    value, low, high = distance(finding)
    config = {
        "evaluation_description": f"Distance of {finding.id} from its ideal value.",
        "metric_id": f"evenhand.{finding.metric}.distance",
        "metric_name": f"distance of {card.name} from {finding.ideal}",
        "lower_is_better": True,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": _bound(max(abs(end - finding.ideal) for end in (card.low, card.high))),
    }
    config["evaluation_description"] = safe(config["evaluation_description"], 500)
    uncertainty: dict[str, Any] = {"num_samples": int(finding.n)}
    if low is not None and high is not None:
        uncertainty["confidence_interval"] = _interval(low, high, finding)
    return _result(finding, "/distance", config, value, uncertainty)


def _bound(value: float) -> float | str:
    """Return a bound of a score; the format names infinity, because JSON has no such number."""
    return float(value) if isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _interval(low: float, high: float, finding: Finding) -> dict[str, Any]:
    method = safe(finding.method or "see details", 500)
    return {"lower": low, "upper": high, "confidence_level": finding.level, "method": method}


def _result(
    finding: Finding, suffix: str, config: dict[str, Any], score: float, uncertainty: dict[str, Any]
) -> dict[str, Any]:
    name = safe(finding.id, 300) + suffix
    return {
        "evaluation_result_id": name,
        "evaluation_name": name,
        "source_data": {
            "dataset_name": f"evenhand/{safe(finding.probe, 100)}",
            "source_type": "other",
        },
        "metric_config": config,
        "score_details": {
            "score": score,
            "details": details(finding),
            "uncertainty": uncertainty,
        },
    }


def lm_eval_files(run: Run) -> dict[str, bytes]:
    """Return <model>/results_<time>.json."""
    model = audited_name(run.facts)
    stamp = datetime.fromtimestamp(finished_at(run), UTC).strftime("%Y-%m-%dT%H-%M-%S")
    return {f"{file_name(model)}/results_{stamp}.json": as_json(results(run))}


def results(run: Run) -> dict[str, Any]:
    """Return the results object, in the shape of lm-eval 0.4.13."""
    facts = run.facts
    kind = kind_of(facts)
    found = {_task(f): f for f in run.findings if defined(f.value)}
    return {
        "results": {task: _row(task, f) for task, f in found.items()},
        "groups": {},
        "group_subtasks": {},
        "configs": {
            task: {"task": task, "output_type": "evenhand", "metadata": {"version": 1.0}}
            for task in found
        },
        "versions": dict.fromkeys(found, 1.0),
        "n-shot": dict.fromkeys(found, 0),
        "higher_is_better": {
            task: {f.metric: _direction(f, kind.card(facts, f))} for task, f in found.items()
        },
        "n-samples": {t: {"original": f.n, "effective": f.n} for t, f in found.items()},
        **_config(run, facts),
        "task_hashes": {t: hashlib.sha256(t.encode()).hexdigest() for t in found},
        "evenhand": {
            "false_discovery_rate": facts["work"]["suite"].get("false_discovery_rate"),
            "cannot_judge": {k: safe(why, 500) for k, why in cannot_judge(facts).items()},
            "findings": [_without_examples(f) for f in run.findings],
        },
    }


def _config(run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    model = str(facts["work"]["model"])
    known = facts.get("models", {}).get(model, {})
    seed = facts["work"].get("seed")
    return {
        "config": {
            "model": safe(known.get("kind", "")),
            "model_args": {},
            "batch_size": None,
            "device": safe(known.get("device", "")),
            "use_cache": None,
            "limit": None,
            "bootstrap_iters": None,
            "gen_kwargs": {},
            "random_seed": seed,
            "numpy_seed": seed,
            "torch_seed": seed,
            "fewshot_seed": seed,
            "model_num_parameters": known.get("parameters"),
            "model_dtype": safe(known.get("dtype", "")),
            "model_revision": "",
            "model_sha": safe(known.get("fingerprint", "")),
        },
        "git_hash": None,
        "date": finished_at(run),
        "pretty_env_info": "",
        "transformers_version": facts.get("environment", {}).get("transformers"),
        "lm_eval_version": None,
        "evenhand_version": version(run),
        "upper_git_hash": None,
        "model_source": "evenhand",
        "model_name": safe(audited_name(facts)),
        "model_name_sanitized": file_name(audited_name(facts)),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": None,
        "chat_template": None,
        "chat_template_sha": None,
        "total_evaluation_time_seconds": str(facts.get("timings", {}).get("total_s", "")),
    }


def _task(finding: Finding) -> str:
    return f"evenhand/{safe(finding.id, 300)}".replace(",", ";")


def _row(task: str, finding: Finding) -> dict[str, Any]:
    error = standard_error(finding)
    return {
        "name": task,
        "alias": task,
        "sample_len": finding.n,
        f"{finding.metric},none": float(finding.value),
        f"{finding.metric}_stderr,none": "N/A" if error is None else error,
    }


def _direction(finding: Finding, card: MetricCard) -> bool | None:
    """Return whether higher is better; None if the ideal lies between the bounds."""
    if card.higher_is_better is not None:
        return card.higher_is_better
    return None if card.low < finding.ideal < card.high else False


def _without_examples(finding: Finding) -> dict[str, Any]:
    return {k: v for k, v in finding.as_dict().items() if k != "examples"}
