"""What a bundle says about its run, each made from the run folder alone and made again to check.

verdict.json     the policy and what it decides
scenarios.json   one bias scenario per finding that counts: group, hazard, measurement,
                 threshold, mitigation, review trigger; and what was not measured
statement.json   an in-toto statement with a test-result predicate
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.audit.gate import Check, Gate, gate
from evenhand.audit.marking import harm_of
from evenhand.evidence.canonical import canonical, canonical_hash
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import counted, undefined
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name

VERDICT, SCENARIOS, STATEMENT = "verdict.json", "scenarios.json", "statement.json"
DEFAULT_POLICY = (
    "failed when a finding that counts is detected and its interval reaches beyond its margin; "
    "undefined when nothing could be tested; else passed"
)
NO_HARM = "a measured difference; who is worse off by it is not said by its sign"
RESULTS = {"passed": "PASSED", "failed": "FAILED", "undecided": "WARNED", "undefined": "WARNED"}


def documents(run: Run) -> dict[str, bytes]:
    """Every document by its name, in canonical JSON."""
    decided = gate(run)
    policy = {"name": "default", "rule": DEFAULT_POLICY}
    return {
        VERDICT: canonical({"policy": policy, **decided.as_dict()}),
        SCENARIOS: canonical(scenarios(run, decided)),
        STATEMENT: canonical(statement(run, decided)),
    }


def about(run: Run) -> dict[str, Any]:
    """What manifest.json says beside the hashes."""
    facts, work = run.facts, run.facts["work"]
    found, verdict = run.findings, gate(run)
    return {
        "kind": kind_of(facts).name,
        "model": {"typed": work["model"], **facts["models"].get(work["model"], {})},
        "other_models": {k: v for k, v in facts["models"].items() if k != work["model"]},
        "settings": {k: v for k, v in work.items() if k != "model"},
        "environment": facts.get("environment", {}),
        "started": facts.get("started", ""), "finished": facts.get("finished", ""),
        "verdict": verdict.outcome,
        "findings": {
            "all": len(found), "count": len(counted(found)),
            "detected": sum(bool(f.detected) for f in counted(found)),
            "canonical_sha256": canonical_hash([f.as_dict() for f in found]),
        },
        "placebos": facts.get("placebos", {}),
        "not_measured": not_measured(run),
    }  # fmt: skip


def not_measured(run: Run) -> list[str]:
    """What a reader might take for granted and this run does not show."""
    facts = run.facts
    skipped = [
        f"{label}: {entry['skipped']}"
        for label, entry in facts["probes"].items()
        if entry.get("skipped")
    ]
    lost = [f"{f.id}: {f.reason}" for f in undefined(run.findings, audited_name(facts))]
    groups = sorted({g for f in counted(run.findings) for g in f.groups})
    return [
        *skipped, *lost,
        f"groups other than: {', '.join(groups)}" if groups else "any group",
        "how the model is used after it was asked these questions, and by whom",
    ]  # fmt: skip


def scenarios(run: Run, decided: Gate) -> dict[str, Any]:
    """A record for each finding that counts, in the order of the findings."""
    facts, checks = run.facts, {c.id: c for c in decided.checks}
    card = partial(kind_of(facts).card, facts)
    model = facts["models"].get(facts["work"]["model"], {})
    triggers = _triggers(facts, model)
    return {
        "model": audited_name(facts),
        "scenarios": [
            _scenario(f, card, checks.get(f.id), list(model.get("mitigations", ())), triggers)
            for f in counted(run.findings)
        ],
        "not_measured": not_measured(run),
    }  # fmt: skip


def _scenario(
    f: Finding, card: Callable[[Finding], MetricCard], check: Check | None,
    mitigations: list[str], triggers: list[str],
) -> dict[str, Any]:  # fmt: skip
    known = card(f)
    return {
        "id": f.id,
        "group": list(f.groups),
        "attribute": f.attribute,
        "hazard": f.harm or harm_of(known, replace(f, detected=True)) or NO_HARM,
        "shown": bool(f.detected),
        "measurement": {
            "says": f.sentence, "probe": f.probe, "metric": known.name, "reads": known.reads,
            "value": f.value, "low": f.low, "high": f.high, "level": f.level, "p": f.p, "q": f.q,
            "detected": f.detected, "detectable": f.detectable, "n": f.n, "units": f.units,
            "generalises_over": list(f.generalises_over), "method": f.method,
        },
        "threshold": {"ideal": f.ideal, "margin": f.margin, "why": known.margin_why},
        "outcome": check.outcome if check else "undefined",
        "mitigation": mitigations or ["none recorded"],
        "review_trigger": triggers,
    }  # fmt: skip


def _triggers(facts: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """What makes this measurement say nothing any more."""
    way = ", ".join(filter(None, [
        f"rung {facts['rung']!r}" if facts.get("rung") else "",
        "through its chat template" if facts.get("chat") else "",
        "with a system prompt" if facts.get("system") else "",
    ]))  # fmt: skip
    return [
        f"other weights or another precision than fingerprint {model.get('fingerprint', '')[:16]}",
        f"asked in another way than here{f' ({way})' if way else ''}",
        f"another suite than {facts['work']['suite']['name']!r} of evenhand "
        f"{facts.get('environment', {}).get('evenhand', '')}",
    ]


def statement(run: Run, decided: Gate) -> dict[str, Any]:
    """in-toto: Statement v1 about the audited model, predicate test-result v0.1."""
    facts = run.facts
    model = facts["models"].get(facts["work"]["model"], {})
    digest = {
        "evenhandFingerprint": model.get("fingerprint", ""),
        "evenhandWeights": model.get("weights_sha256", ""),
    }
    by_outcome = {
        outcome: [c.id for c in decided.checks if c.outcome == outcome] for outcome in RESULTS
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {
                "name": audited_name(facts),
                "digest": {k: v for k, v in digest.items() if v}
                or {"evenhandSettings": canonical_hash(facts["work"])},
            }
        ],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": RESULTS[decided.outcome],
            "configuration": [
                {"name": f"run/{name}", "digest": {"sha256": _digest(run.folder / name)}}
                for name in ("run.json", "findings.json")
            ],
            "passedTests": by_outcome["passed"],
            "warnedTests": by_outcome["undecided"] + by_outcome["undefined"],
            "failedTests": by_outcome["failed"],
        },
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
