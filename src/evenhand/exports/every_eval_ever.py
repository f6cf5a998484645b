"""Every Eval Ever 0.3.0 (EvalEval coalition): the interchange format with a place for intervals.

It has no field for an ideal value, so each finding is written twice: as it is, and as its
distance from the ideal, for which lower is better. The items stand beside it as JSON lines, with
their number and SHA-256 in the record. Paths and ids are those of the coalition's datastore.
"""

from __future__ import annotations

from hashlib import sha256
from math import isfinite
from typing import Any
from uuid import UUID

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
from evenhand.exports.every_eval_ever_items import MOST_ITEMS, SCHEMA_VERSION, lines
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.unmeasured import not_measured
from evenhand.runs.wording import defined

DEVELOPERS = {"smollm2-135m": "HuggingFaceTB", "glove-6b-50d": "stanfordnlp"}
UNKNOWN = "unspecified"


def files(run: Run) -> dict[str, bytes]:
    """data/<suite>/<developer>/<model>/<id>.json and <id>_samples.jsonl, per model asked."""
    models = list(dict.fromkeys(f.model for f in run.findings))
    out: dict[str, bytes] = {}
    for model in models:
        data = record(run, model)
        place = _place(run, model, data)
        rows = lines(run, model, data["evaluation_id"], data["model_info"]["id"])
        if rows:
            raw = b"\n".join(rows) + b"\n"
            out[f"{place}_samples.jsonl"] = raw
            data["detailed_evaluation_results"] = _companion(f"{place}_samples.jsonl", raw)
        out[f"{place}.json"] = as_json(data)
    return dict(sorted(out.items()))


def _place(run: Run, model: str, data: dict[str, Any]) -> str:
    """Where the datastore keeps a record; the same run always has the same id."""
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


def record(run: Run, model: str) -> dict[str, Any]:
    """All defined findings about one model."""
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
            r for f, card in zip(own, cards) for r in (_plain(f, card), _distance(f, card))
        ],
    }


def _model(run: Run, model: str) -> dict[str, Any]:
    """A local model's weights were run here; whoever asked an API ran them elsewhere."""
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


def _plain(finding: Finding, card: MetricCard) -> dict[str, Any]:
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


def _distance(finding: Finding, card: MetricCard) -> dict[str, Any]:
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
    """A bound of a score; JSON has no infinity, the format names it."""
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
