"""Every Eval Ever 0.3.0 (EvalEval coalition): the interchange format with a place for intervals.

It has no field for an ideal value, so each finding is written twice: as it is, and as its
distance from the ideal, for which lower is better.
"""

from __future__ import annotations

from typing import Any

from evenhand.exports.common import (
    HIGHER_IS_BETTER,
    RANGES,
    UNBOUNDED,
    as_json,
    details,
    distance,
    file_name,
    finished_at,
    safe,
    standard_error,
    version,
)
from evenhand.findings import Finding
from evenhand.record import Run
from evenhand.report.words import defined, metric_name

SCHEMA_VERSION = "0.3.0"


def files(run: Run) -> dict[str, bytes]:
    """eee/<model>.json, one per model that was asked."""
    models = list(dict.fromkeys(f.model for f in run.findings))
    out: dict[str, bytes] = {}
    for model in models:
        name = file_name(model)
        while f"{name}.json" in out:
            name += "-2"
        out[f"{name}.json"] = as_json(record(run, model))
    return out


def record(run: Run, model: str) -> dict[str, Any]:
    """All defined findings about one model."""
    stamp = str(int(finished_at(run)))
    suite = run.facts["work"]["suite"]["name"]
    own = [f for f in run.findings if f.model == model and defined(f.value)]
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": safe(f"evenhand-{suite}/{model}/{stamp}", 500),
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "evenhand",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "evenhand", "version": version(run)},
        "model_info": _model(run, model),
        "evaluation_results": [r for f in own for r in (_plain(f), _distance(f))],
    }


def _model(run: Run, model: str) -> dict[str, Any]:
    known: dict[str, Any] = next(
        (m for k, m in run.facts["models"].items() if model in (k, m.get("name"))), {}
    )
    extra = {k: str(v) for k, v in known.items() if isinstance(v, (str, int, float))}
    return {
        "name": safe(model, 500),
        "id": safe(model, 500),
        "additional_details": {k: safe(v, 500) for k, v in extra.items() if k != "name"},
    }


def _plain(finding: Finding) -> dict[str, Any]:
    low, high = RANGES.get(finding.metric, UNBOUNDED)
    config = {
        "evaluation_description": safe(finding.sentence, 2_000),
        "metric_id": f"evenhand.{finding.metric}",
        "metric_name": metric_name(finding.metric),
        "lower_is_better": finding.metric not in HIGHER_IS_BETTER,
        "score_type": "continuous",
        "min_score": low,
        "max_score": high,
        "additional_details": {
            "direction": f"the ideal value is {finding.ideal}; see the distance from it",
        },
    }
    error = standard_error(finding)
    uncertainty: dict[str, Any] = {"num_samples": int(finding.n)}
    if error is not None:
        uncertainty["standard_error"] = {"value": error, "method": "interval width / 3.92"}
        uncertainty["confidence_interval"] = _interval(finding.low, finding.high, finding)
    return _result(finding, "", config, float(finding.value), uncertainty)


def _distance(finding: Finding) -> dict[str, Any]:
    value, low, high = distance(finding)
    span = RANGES.get(finding.metric, UNBOUNDED)
    config = {
        "evaluation_description": f"Distance of {finding.id} from its ideal value.",
        "metric_id": f"evenhand.{finding.metric}.distance",
        "metric_name": f"distance of {metric_name(finding.metric)} from {finding.ideal}",
        "lower_is_better": True,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": max(abs(end - finding.ideal) for end in span),
    }
    config["evaluation_description"] = safe(config["evaluation_description"], 500)
    uncertainty: dict[str, Any] = {"num_samples": int(finding.n)}
    if low is not None and high is not None:
        uncertainty["confidence_interval"] = _interval(low, high, finding)
    return _result(finding, "/distance", config, value, uncertainty)


def _interval(low: float, high: float, finding: Finding) -> dict[str, Any]:
    method = safe(finding.method or "see details", 500)
    return {"lower": low, "upper": high, "confidence_level": 0.95, "method": method}


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
