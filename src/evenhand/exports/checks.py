"""JUnit XML and SARIF: findings where continuous integration shows test results.

A detected difference is a failure, an undefined number an error, anything else passes. Method
checks and numbers that are no test are left out. `evenhand gate` decides with limits of your own.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as xml

from evenhand.exports.common import as_json, details, safe, version
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.runs.wording import chance, defined, is_control, metric_name, metric_reads, number

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _tested(run: Run) -> list[Finding]:
    return [
        f
        for f in run.findings
        if not is_control(f) and (f.detected is not None or not defined(f.value))
    ]


def junit_files(run: Run) -> dict[str, bytes]:
    """junit.xml: one test suite per probe, one test case per finding."""
    root = xml.Element("testsuites", name="evenhand")
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
            _case(suite, finding)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(s.get(name, "0")) for s in root)))
    xml.indent(root)
    return {"junit.xml": xml.tostring(root, encoding="utf-8", xml_declaration=True)}


def _case(suite: xml.Element, finding: Finding) -> None:
    case = xml.SubElement(
        suite, "testcase", name=_text(finding.id), classname=f"evenhand.{_text(finding.probe)}"
    )
    if finding.detected:
        problem = xml.SubElement(case, "failure", message=_text(finding.sentence), type="detected")
        problem.text = _text(_numbers(finding))
    elif not defined(finding.value):
        xml.SubElement(case, "error", message=_text(finding.reason), type="undefined")


def _text(value: object) -> str:
    """Text that XML 1.0 can hold."""
    return "".join(c for c in safe(value, 2_000) if c not in "\ufffe\uffff")


def _numbers(f: Finding) -> str:
    span = f" [{number(f.low)}, {number(f.high)}]" if defined(f.low) else ""
    return f"{metric_name(f.metric)} {number(f.value, sign=True)}{span}, q {chance(f.q)}, n {f.n}"


def sarif_files(run: Run) -> dict[str, bytes]:
    """findings.sarif: one rule per probe and metric, one result per detected difference."""
    return {"findings.sarif": as_json(sarif(run))}


def sarif(run: Run) -> dict[str, Any]:
    tested = _tested(run)
    rules = list(dict.fromkeys((f.probe, f.metric) for f in tested))
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "evenhand",
                        "semanticVersion": version(run),
                        "rules": [_rule(run, *rule) for rule in rules],
                    }
                },
                "results": [_result(f, rules.index((f.probe, f.metric))) for f in tested],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(run: Run, probe: str, metric: str) -> dict[str, Any]:
    title = safe(run.facts["probes"].get(probe, {}).get("title") or probe, 300)
    reads = metric_reads(metric) or "see the documentation of the probe"
    return {
        "id": f"{safe(probe, 100)}/{metric}",
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{metric_name(metric)}: {reads}."},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    kind, level = "pass", "none"
    message = f"No difference detected: {_numbers(finding)}."
    if finding.detected:
        kind, level = "fail", "warning"
        message = f"{finding.sentence} {_numbers(finding)}."
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
