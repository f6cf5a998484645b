"""CycloneDX 1.6: the audited model as a component of a bill of materials, with its model card.

Every finding that counts is a performance metric with its interval; every detected one that says
who is worse off is a fairness assessment; what was not measured are technical limitations.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID

from evenhand.exports.common import as_json, finished_at, safe, version
from evenhand.models.loading.resolver import task_of
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.unmeasured import not_measured
from evenhand.runs.wording import defined, subject

SPEC = "1.6"
IDENTITY = ("fingerprint", "weights_sha256", "dtype", "rung", "parameters", "kind")


def files(run: Run) -> dict[str, bytes]:
    """model.cdx.json"""
    return {"model.cdx.json": as_json(bom(run))}


def bom(run: Run) -> dict[str, Any]:
    """The bill of materials; the same run always has the same serial number."""
    facts, stamp = run.facts, datetime.fromtimestamp(finished_at(run), UTC)
    model = facts["models"].get(facts["work"]["model"], {})
    component = {
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": safe(audited_name(facts), 300),
        "modelCard": _card(run, model),
        "properties": [
            {"name": f"evenhand:{key}", "value": safe(model[key], 300)}
            for key in IDENTITY
            if model.get(key)
        ],
    }
    digest = sha256(as_json([facts["work"], facts["models"], component])).digest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": f"urn:uuid:{UUID(bytes=digest[:16], version=4)}",
        "version": 1,
        "metadata": {
            "timestamp": stamp.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "tools": {
                "components": [{"type": "application", "name": "evenhand", "version": version(run)}]
            },
        },
        "components": [component],
    }


def _card(run: Run, model: dict[str, Any]) -> dict[str, Any]:
    facts, found = run.facts, counted(run.findings)
    silent = cannot_judge(facts)
    card = partial(kind_of(facts).card, facts)
    parameters = {"task": task_of(str(model.get("kind", "")))}
    if model.get("architecture"):
        parameters["modelArchitecture"] = safe(model["architecture"], 200)
    done = "; ".join(map(str, model.get("mitigations", ()))) or "none recorded"
    limits = [safe(f"Not measured: {line}", 1_000) for line in not_measured(run)]
    return {
        "modelParameters": parameters,
        "quantitativeAnalysis": {
            "performanceMetrics": [_metric(f, card(f)) for f in found if defined(f.value)]
        },
        "considerations": {
            "technicalLimitations": limits,
            "fairnessAssessments": [
                {
                    "groupAtRisk": safe(f.harm.partition(": ")[0], 500),
                    "harms": safe(f"{f.harm}. {f.sentence}", 2_000),
                    "mitigationStrategy": safe(done, 500),
                }
                for f in found
                if f.detected and f.harm and f.probe not in silent
            ],
        },
    }


def _metric(f: Finding, card: MetricCard) -> dict[str, Any]:
    """Numbers are text in this format."""
    told = {
        "type": safe(f"{card.name} (ideal {f.ideal:g})", 300),
        "value": repr(float(f.value)),
        "slice": safe(f"{f.id}: {subject(f, card)}", 500),
    }
    if not (defined(f.low) and defined(f.high)):
        return told
    ends = {"lowerBound": repr(float(f.low)), "upperBound": repr(float(f.high))}
    return {**told, "confidenceInterval": ends}
