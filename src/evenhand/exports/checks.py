"""JUnit XML and SARIF: findings where continuous integration shows test results.

A detected finding that counts is a failure, an undefined one of the audited model an error,
any other that counts passes. `evenhand gate` decides with limits of your own.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from xml.etree import ElementTree as xml

from evenhand.exports.common import as_json, details, safe, version
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import undefined
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.wording import chance, defined, number

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _tested(run: Run) -> list[Finding]:
    lost = {f.id for f in undefined(run.findings, audited_name(run.facts))}
    return [f for f in run.findings if f.counts or f.id in lost]


def junit_files(run: Run) -> dict[str, bytes]:
    """junit.xml: one test suite per probe, one test case per finding."""
    root = xml.Element("testsuites", name="evenhand")
    card = partial(kind_of(run.facts).card, run.facts)
    probes: dict[str, list[Finding]] = {}
    for finding in _tested(run):
        probes.setdefault(finding.probe, []).append(finding)
    for probe, findings in probes.items():
        suite = xml.SubElement(
            root, "testsuite", name=_text(probe), tests=str(len(findings)),
            failures=str(sum(bool(f.detected) for f in findings)),
            errors=str(sum(not defined(f.value) for f in findings)), skipped="0",
        )  # fmt: skip
        for finding in findings:
            _case(suite, finding, card(finding))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(s.get(name, "0")) for s in root)))
    xml.indent(root)
    return {"junit.xml": xml.tostring(root, encoding="utf-8", xml_declaration=True)}


def _case(suite: xml.Element, finding: Finding, card: MetricCard) -> None:
    case = xml.SubElement(
        suite, "testcase", name=_text(finding.id), classname=f"evenhand.{_text(finding.probe)}"
    )
    if finding.detected:
        problem = xml.SubElement(case, "failure", message=_text(finding.sentence), type="detected")
        problem.text = _text(_numbers(finding, card))
    elif not defined(finding.value):
        xml.SubElement(case, "error", message=_text(finding.reason), type="undefined")


def _text(value: object) -> str:
    """Text that XML 1.0 can hold."""
    return "".join(c for c in safe(value, 2_000) if c not in "\ufffe\uffff")


def _numbers(f: Finding, card: MetricCard) -> str:
    span = f" [{number(f.low)}, {number(f.high)}]" if defined(f.low) else ""
    return f"{card.name} {number(f.value, sign=True)}{span}, q {chance(f.q)}, n {f.n}"


def sarif_files(run: Run) -> dict[str, bytes]:
    """findings.sarif: one rule per probe and metric, one result per detected difference."""
    return {"findings.sarif": as_json(sarif(run))}


def sarif(run: Run) -> dict[str, Any]:
    tested = _tested(run)
    card = partial(kind_of(run.facts).card, run.facts)
    rules = {(f.probe, f.metric): card(f) for f in tested}
    places = {rule: k for k, rule in enumerate(rules)}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "evenhand",
                        "semanticVersion": version(run),
                        "rules": [_rule(run, probe, c) for (probe, _), c in rules.items()],
                    }
                },
                "results": [_result(f, card(f), places[f.probe, f.metric]) for f in tested],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(run: Run, probe: str, card: MetricCard) -> dict[str, Any]:
    title = safe(run.facts["probes"].get(probe, {}).get("title") or probe, 300)
    reads = card.reads or "see the documentation of the probe"
    return {
        "id": f"{safe(probe, 100)}/{card.metric}",
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{card.name}: {reads}."},
    }


def _result(finding: Finding, card: MetricCard, rule: int) -> dict[str, Any]:
    kind, level = "pass", "none"
    message = f"No difference detected: {_numbers(finding, card)}."
    if finding.detected:
        kind, level = "fail", "warning"
        message = f"{finding.sentence} {_numbers(finding, card)}."
    elif not defined(finding.value):
        kind, message = "notApplicable", finding.reason or "undefined"
    return {
        "ruleId": f"{safe(finding.probe, 100)}/{finding.metric}",
        "ruleIndex": rule,
        "kind": kind,
        "level": level,
        "message": {"text": safe(message, 2_000)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "findings.json"},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": safe(finding.id, 300)}],
            }
        ],
        "partialFingerprints": {"findingId/v1": safe(finding.id, 300)},
        "properties": details(finding),
    }
