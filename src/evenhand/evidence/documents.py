"""What a bundle says about its run, each made from the run folder alone and made again to check.

verdict.json     the policy and what it decides
scenarios.json   one bias scenario per finding that counts: group, hazard, measurement,
                 threshold, mitigation, review trigger; and what was not measured
statement.json   an in-toto statement with a test-result predicate
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.audit.gate import Check, Gate, finished, gate_by, unjudging
from evenhand.audit.marking import hazard_of
from evenhand.audit.policy import Policy, read_policy
from evenhand.errors import SpecError, unknown
from evenhand.evidence.canonical import canonical, canonical_hash
from evenhand.opening import read_object, read_toml, understood
from evenhand.runs.card import MetricCard
from evenhand.runs.controls import CANNOT_TELL
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.unmeasured import not_measured
from evenhand.settings import Asked

VERDICT, SCENARIOS, STATEMENT = "verdict.json", "scenarios.json", "statement.json"
RUN, BASELINE = "run", "baseline"
"""Folders of a bundle."""
FIELDS = ("finding", "hazard", "mitigation", "review_trigger")
NO_HARM = "a measured difference; who is worse off by it is not said by its sign"
RESULTS = {
    "passed": "PASSED",
    "failed": "FAILED",
    "undecided": "WARNED",
    "undefined": "WARNED",
    CANNOT_TELL: "WARNED",
}


class Stated(Asked):
    """What a person states about findings, beside what was measured.

    finding = "underspecified/*"     # an id or a wildcard; the last that fits holds
    hazard = "An applicant is taken for unsuited."
    mitigation = "Names are removed before the model reads a letter."
    review_trigger = "New weights, or the first of May."
    """

    finding: str
    hazard: str = ""
    mitigation: str = ""
    review_trigger: str = ""


@dataclass(frozen=True)
class Terms:
    """What is held against a run: a policy, what a person states about its findings, and an
    earlier run where the question is what became worse since.
    """

    policy: Policy = field(default_factory=Policy)
    stated: tuple[Stated, ...] = ()
    baseline: Run | None = None

    @classmethod
    def read(
        cls, policy: str | Path | None, stated: str | Path | None, baseline: Run | str | Path | None
    ) -> Terms:
        """From TOML files and a run; a baseline may be named in the policy, too."""
        rules = read_policy(policy)
        named = baseline if baseline is not None else rules.baseline
        before = None if named is None else finished(named)
        return cls(_without(rules), _stated(Path(stated)) if stated else (), before)

    @classmethod
    def of(cls, folder: Path) -> Terms:
        """Those under which the documents of an unpacked bundle were written."""
        policy = read_object(folder / VERDICT)["policy"]
        if not isinstance(policy, Mapping):
            raise SpecError(f"{VERDICT}: its policy is {policy!r:.80}. Expected an object.")
        rules = read_policy(policy)
        if rules.baseline not in (None, BASELINE):
            raise SpecError(f"{VERDICT}: its baseline {rules.baseline!r:.80} is not part of it.")
        stated = tuple(Stated(**row) for row in read_object(folder / SCENARIOS)["stated"])
        return cls(_without(rules), stated, Run.open(folder / BASELINE) if rules.baseline else None)


def _without(policy: Policy) -> Policy:
    return Policy(**{**policy.model_dump(), "baseline": None})


def _stated(path: Path) -> tuple[Stated, ...]:
    rows = read_toml(path, "scenarios in TOML").get("scenario")
    if not isinstance(rows, list) or not rows or not all(isinstance(r, dict) for r in rows):
        raise SpecError(f"{path}: has no [[scenario]]. Accepted: {', '.join(FIELDS)}.")
    with understood(path):
        return tuple(Stated(**row) for row in rows)


def decided_by(run: Run, terms: Terms, silent: Mapping[str, str] | None = None) -> Gate:
    """Return the outcome of a run under its terms.

    Args:
        silent: probes that cannot judge the model, with the reason; by the controls of the runs
            if not given.
    """
    before = terms.baseline
    rules = terms.policy
    finished(run)
    rules.require_known(run.findings)
    if before is not None:
        rules = rules.with_changes(baseline=str(finished(before).folder))
    return gate_by(run, before, rules, unjudging(run, before) if silent is None else silent)


def documents(
    run: Run, terms: Terms, silent: Mapping[str, str] | None = None
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every document by its name, in canonical JSON; and what manifest.json says of the run.

    `silent` as in `decided_by`.
    """
    before = terms.baseline
    decided = decided_by(run, terms, silent)
    verdict = decided.as_dict()
    told = _about(run, decided, silent)
    if before is not None:
        verdict["policy"] = {**verdict["policy"], "baseline": BASELINE}
        work = before.facts["work"]
        told[BASELINE] = {"typed": work["model"], **before.facts["models"].get(work["model"], {})}
    return {
        VERDICT: canonical(verdict),
        SCENARIOS: canonical(scenarios(run, decided, terms.stated, silent)),
        STATEMENT: canonical(statement(run, decided)),
    }, told


def _about(run: Run, verdict: Gate, silent: Mapping[str, str] | None) -> dict[str, Any]:
    facts, work = run.facts, run.facts["work"]
    found = run.findings
    return {
        "kind": kind_of(facts).name,
        "model": {"typed": work["model"], **facts["models"].get(work["model"], {})},
        "other_models": {k: v for k, v in facts["models"].items() if k != work["model"]},
        "settings": {k: v for k, v in work.items() if k != "model"},
        "environment": facts.get("environment", {}),
        "started": facts.get("started", ""),
        "finished": facts.get("finished", ""),
        "verdict": verdict.outcome,
        "why": verdict.reason,
        "findings": {
            "all": len(found),
            "count": len(counted(found)),
            "detected": sum(bool(f.detected) for f in counted(found)),
            "canonical_sha256": canonical_hash(_written(run)),
        },
        "placebos": facts.get("placebos", {}),
        "not_measured": not_measured(run, silent),
    }


def _written(run: Run) -> Any:
    """Return the findings as they were written: those of an older version lack newer fields."""
    return read_object(run.folder / "findings.json")["findings"]


def scenarios(
    run: Run,
    decided: Gate,
    stated: Sequence[Stated] = (),
    silent: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A record for each finding that counts, in the order of the findings."""
    facts, checks = run.facts, {c.id: c for c in decided.checks}
    for row in stated:
        if not any(fnmatchcase(f.id, row.finding) for f in counted(run.findings)):
            known = [f.id for f in counted(run.findings)]
            raise SpecError(unknown("finding", row.finding, known, where="--scenarios"))
    card = partial(kind_of(facts).card, facts)
    model = facts["models"].get(facts["work"]["model"], {})
    triggers = _triggers(facts, model)
    return {
        "model": audited_name(facts),
        "scenarios": [
            _scenario(f, card, checks.get(f.id), list(model.get("mitigations", ())), triggers)
            | _said(f, stated)
            for f in counted(run.findings)
        ],
        "stated": [row.model_dump() for row in stated],
        "not_measured": not_measured(run, silent),
    }


def _said(finding: Finding, stated: Sequence[Stated]) -> dict[str, Any]:
    """What is stated of a finding, under a name of its own: it was not measured."""
    fitting = [row for row in stated if fnmatchcase(finding.id, row.finding)]
    return {"stated": fitting[-1].model_dump(exclude={"finding"})} if fitting else {}


def _scenario(
    f: Finding,
    card: Callable[[Finding], MetricCard],
    check: Check | None,
    mitigations: list[str],
    triggers: list[str],
) -> dict[str, Any]:
    known = card(f)
    return {
        "id": f.id,
        "group": list(f.groups),
        "attribute": f.attribute,
        "hazard": f.harm or f.difference or hazard_of(known, f) or NO_HARM,
        "shown": bool(f.detected),
        "measurement": {
            "says": f.sentence,
            "probe": f.probe,
            "metric": known.name,
            "reads": known.reads,
            "value": f.value,
            "low": f.low,
            "high": f.high,
            "level": f.level,
            "p": f.p,
            "q": f.q,
            "detected": f.detected,
            "detectable": f.detectable,
            "n": f.n,
            "units": f.units,
            "generalises_over": list(f.generalises_over),
            "method": f.method,
        },
        "threshold": {
            "ideal": f.ideal,
            "margin": check.margin if check else f.margin,
            "why": known.margin_why if check is None or check.margin == f.margin else "policy",
        },
        "outcome": check.outcome if check else "not checked",
        "reason": check.reason if check else "the policy leaves it out",
        "mitigation": mitigations or ["none recorded"],
        "review_trigger": triggers,
    }


def _triggers(facts: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """What makes this measurement say nothing any more."""
    way = ", ".join(
        filter(
            None,
            [
                f"rung {facts['rung']!r}" if facts.get("rung") else "",
                "through its chat template" if facts.get("chat") else "",
                "with a system prompt" if facts.get("system") else "",
            ],
        )
    )
    return [
        "weights or a precision other than those of fingerprint "
        f"{model.get('fingerprint', '')[:16]}",
        f"asked in a different way than here{f' ({way})' if way else ''}",
        f"a suite other than {facts['work']['suite']['name']!r} of evenhand "
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
            "warnedTests": [
                *by_outcome["undecided"],
                *by_outcome["undefined"],
                *by_outcome[CANNOT_TELL],
            ],
            "failedTests": by_outcome["failed"],
        },
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
