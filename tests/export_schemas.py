"""JSON schemas written from the documented fields of Every Eval Ever 0.3.0 and SARIF 2.1.0."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def needs(names: str, properties: dict[str, Any], *, closed: bool = True) -> dict[str, Any]:
    return {
        "type": "object",
        "required": names.split(),
        "properties": properties,
        "additionalProperties": not closed,
    }


DEPLOYMENT = {"enum": ["self_deployed", "externally_managed", "unknown"]}
AVAILABILITY = {"enum": ["open_weights", "closed_weights", "unknown"]}
MODEL = needs(
    "name id additional_details",
    {
        "name": TEXT,
        "id": {"type": "string", "pattern": "^[^/]+/[^/]+$"},
        "developer": {"type": "string", "minLength": 1},
        "additional_details": {
            **TEXTS,
            "required": ["deployment_type", "model_availability"],
            "properties": {"deployment_type": DEPLOYMENT, "model_availability": AVAILABILITY},
        },
    },
)
BOUND = {"oneOf": [NUMBER, {"enum": ["Infinity", "-Infinity"]}]}
UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
COMPANION = needs(
    "format file_path hash_algorithm checksum total_rows",
    {
        "format": {"const": "jsonl"},
        "file_path": {"type": "string", "pattern": f"^data(/[^/]+){{3}}/{UUID4}_samples\\.jsonl$"},
        "hash_algorithm": {"const": "sha256"},
        "checksum": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "total_rows": {"type": "integer", "minimum": 1},
        "additional_details": TEXTS,
    },
)
INTERVAL = needs(
    "lower upper",
    {
        "lower": NUMBER,
        "upper": NUMBER,
        "confidence_level": {"type": "number", "minimum": 0, "maximum": 1},
        "method": TEXT,
    },
)
UNCERTAINTY = needs(
    "num_samples",
    {
        "num_samples": {"type": "integer"},
        "standard_error": needs("value", {"value": NUMBER, "method": TEXT}),
        "confidence_interval": INTERVAL,
    },
)
METRIC = needs(
    "lower_is_better score_type min_score max_score",
    {
        "lower_is_better": {"type": "boolean"},
        "score_type": {"const": "continuous"},
        "min_score": BOUND,
        "max_score": BOUND,
        "evaluation_description": TEXT,
        "metric_id": TEXT,
        "metric_name": TEXT,
        "additional_details": TEXTS,
    },
)
RESULT = needs(
    "evaluation_name source_data metric_config score_details",
    {
        "evaluation_result_id": TEXT,
        "evaluation_name": TEXT,
        "source_data": needs(
            "dataset_name source_type", {"dataset_name": TEXT, "source_type": {"const": "other"}}
        ),
        "metric_config": METRIC,
        "score_details": needs(
            "score", {"score": NUMBER, "details": TEXTS, "uncertainty": UNCERTAINTY}
        ),
    },
)
EVERY_EVAL_EVER = needs(
    "schema_version evaluation_id retrieved_timestamp source_metadata eval_library model_info "
    "evaluation_results",
    {
        "schema_version": {"const": "0.3.0"},
        "evaluation_id": {"type": "string", "pattern": "^[^/]+/.+/[0-9]+$"},
        "evaluation_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": needs(
            "source_type source_organization_name evaluator_relationship",
            {
                "source_name": TEXT,
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "source_organization_name": TEXT,
                "evaluator_relationship": {
                    "enum": ["first_party", "third_party", "collaborative", "other"]
                },
                "additional_details": TEXTS,
            },
        ),
        "eval_library": needs("name version", {"name": TEXT, "version": TEXT}),
        "model_info": MODEL,
        "evaluation_results": {"type": "array", "items": RESULT},
        "detailed_evaluation_results": COMPANION,
    },
)
ATTRIBUTION = needs(
    "turn_idx source extracted_value extraction_method is_terminal",
    {
        "turn_idx": {"const": 0},
        "source": {"const": "output.raw"},
        "extracted_value": TEXT,
        "extraction_method": TEXT,
        "is_terminal": {"const": True},
    },
)
LIST = {"type": "array", "items": TEXT}
EVERY_EVAL_EVER_ITEM = needs(
    "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input output "
    "answer_attribution evaluation",
    {
        "schema_version": {"const": "0.3.0"},
        "evaluation_id": TEXT,
        "model_id": TEXT,
        "evaluation_name": TEXT,
        "sample_id": TEXT,
        "sample_hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "interaction_type": {"const": "single_turn"},
        "input": needs(
            "raw reference",
            {"raw": TEXT, "reference": LIST, "choices": {"anyOf": [LIST, {"type": "null"}]}},
        ),
        "output": needs("raw", {"raw": {**LIST, "minItems": 1}}),
        "messages": {"type": "null"},
        "answer_attribution": {"type": "array", "items": ATTRIBUTION},
        "evaluation": needs(
            "score is_correct", {"score": NUMBER, "is_correct": {"type": "boolean"}}
        ),
        "metadata": TEXTS,
    },
)

MESSAGE = needs("text", {"text": {"type": "string", "minLength": 1}})
RULE = needs("id", {"id": TEXT, "shortDescription": MESSAGE, "fullDescription": MESSAGE})
LOCATION = needs(
    "",
    {
        "physicalLocation": needs(
            "artifactLocation",
            {
                "artifactLocation": needs("uri", {"uri": TEXT}),
                "region": needs("startLine", {"startLine": {"type": "integer", "minimum": 1}}),
            },
        ),
        "logicalLocations": {
            "type": "array",
            "items": needs("fullyQualifiedName", {"fullyQualifiedName": TEXT}),
        },
    },
)
SARIF_RESULT = needs(
    "message",
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": TEXTS,
        "properties": {"type": "object"},
    },
)
SARIF_RESULT["if"] = {"properties": {"kind": {"not": {"const": "fail"}}}}
SARIF_RESULT["then"] = {"properties": {"level": {"const": "none"}}}
DRIVER = needs(
    "name", {"name": TEXT, "semanticVersion": TEXT, "rules": {"type": "array", "items": RULE}}
)
SARIF_RUN = needs(
    "tool",
    {
        "tool": needs("driver", {"driver": DRIVER}),
        "results": {"type": "array", "items": SARIF_RESULT},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    },
)
SARIF = needs(
    "version runs",
    {
        "$schema": TEXT,
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": SARIF_RUN},
    },
)
