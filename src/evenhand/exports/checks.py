"""JUnit XML, SARIF and a job summary: what a gate decided, where continuous integration shows it.

A check that fails is a failure, one that is undecided is skipped with its reason, one that could
not be tested, or whose probe cannot judge the model, is an error where the gate does not pass and
skipped where it does: the files say what `evenhand gate` says. Exported from a run alone they hold
its default policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from xml.etree import ElementTree as xml

from evenhand.audit.gate import Check, Gate, gate
from evenhand.exports.common import as_json, details, safe, version
from evenhand.runs.card import MetricCard
from evenhand.runs.controls import CANNOT_TELL
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.wording import chance, defined, number

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
Checked = tuple[Finding, Check]


def _tested(run: Run, judged: Gate) -> list[Checked]:
    known = {f.id: f for f in run.findings}
    return [(known[c.id], c) for c in judged.checks if c.id in known]


def junit_files(run: Run, judged: Gate | None = None) -> dict[str, bytes]:
    """Return junit.xml: one test suite per probe, one test case per check."""
    judged = judged or gate(run)
    root = xml.Element("testsuites", name="evenhand")
    card = partial(kind_of(run.facts).card, run.facts)
    probes: dict[str, list[Checked]] = {}
    for finding, check in _tested(run, judged):
        probes.setdefault(finding.probe, []).append((finding, check))
    for probe, reason in judged.cannot_judge.items():
        if probe not in probes:  # nothing of it could be tested, which must not look like a pass
            suite = xml.SubElement(root, "testsuite", name=_text(probe), tests="1")
            case = xml.SubElement(suite, "testcase", name=_text(probe), classname="evenhand")
            xml.SubElement(case, "error", message=_text(reason), type=CANNOT_TELL)
            suite.set("failures", "0")
            suite.set("errors", "1")
            suite.set("skipped", "0")
    for probe, rows in probes.items():
        suite = xml.SubElement(root, "testsuite", name=_text(probe), tests=str(len(rows)))
        for finding, check in rows:
            _case(suite, finding, check, card(finding), judged.passed)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(list(suite.iter(tag)))))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(s.get(name, "0")) for s in root)))
    xml.indent(root)
    return {"junit.xml": xml.tostring(root, encoding="utf-8", xml_declaration=True)}


def _case(
    suite: xml.Element, finding: Finding, check: Check, card: MetricCard, passed: bool
) -> None:
    case = xml.SubElement(
        suite, "testcase", name=_text(finding.id), classname=f"evenhand.{_text(finding.probe)}"
    )
    if check.outcome == "failed":
        problem = xml.SubElement(case, "failure", message=_text(check.sentence), type="failed")
        problem.text = _text(_numbers(finding, card))
    elif check.outcome in ("undefined", CANNOT_TELL) and not passed:
        xml.SubElement(case, "error", message=_text(check.reason), type=check.outcome)
    elif check.outcome != "passed":
        xml.SubElement(case, "skipped", message=_text(check.reason))


def _text(value: object) -> str:
    """Return text without characters that XML 1.0 forbids."""
    return "".join(c for c in safe(value, 2_000) if c not in "\ufffe\uffff")


def _numbers(f: Finding, card: MetricCard) -> str:
    span = f" [{number(f.low)}, {number(f.high)}]" if defined(f.low) else ""
    return f"{card.name} {number(f.value, sign=True)}{span}, q {chance(f.q)}, n {f.n}"


def sarif_files(run: Run, judged: Gate | None = None) -> dict[str, bytes]:
    """Return findings.sarif: one rule per probe and metric, one result per check."""
    return {"findings.sarif": as_json(sarif(run, judged or gate(run)))}


def sarif(run: Run, judged: Gate) -> dict[str, Any]:
    tested = _tested(run, judged)
    card = partial(kind_of(run.facts).card, run.facts)
    rules = {(f.probe, f.metric): card(f) for f, _ in tested}
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
                "results": [_result(f, c, card(f), places[f.probe, f.metric]) for f, c in tested],
                "columnKind": "unicodeCodePoints",
                **_outcome(judged),
            }
        ],
    }


def _outcome(judged: Gate) -> dict[str, Any]:
    """Return the outcome as a property where probes cannot judge: results alone look quiet."""
    if not judged.cannot_judge:
        return {}
    told = {"outcome": judged.outcome, "reason": safe(judged.reason, 2_000)}
    return {"properties": {"evenhand": told}}


def _rule(run: Run, probe: str, card: MetricCard) -> dict[str, Any]:
    title = safe(run.facts["probes"].get(probe, {}).get("title") or probe, 300)
    reads = card.reads or "see the documentation of the probe"
    return {
        "id": f"{safe(probe, 100)}/{card.metric}",
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{card.name}: {reads}."},
    }


KINDS = {
    "passed": "pass",
    "failed": "fail",
    "undecided": "open",
    "undefined": "notApplicable",
    CANNOT_TELL: "open",
}
"""SARIF's names of the outcomes."""


def _result(finding: Finding, check: Check, card: MetricCard, rule: int) -> dict[str, Any]:
    kind, level = KINDS[check.outcome], "warning" if check.outcome == "failed" else "none"
    message = f"{check.sentence} {_numbers(finding, card)}: {check.reason}."
    if check.outcome == "undefined":
        message = check.reason or "undefined"
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


def summary_files(run: Run, judged: Gate | None = None) -> dict[str, bytes]:
    """Return summary.md: the outcome and its checks, for the page of a CI job."""
    text = "\n".join(_summary(run, judged or gate(run))) + "\n"
    return {"summary.md": text.encode("utf-8", "backslashreplace")}


MOST = 50
"""Maximum number of checks in a job summary."""


def _summary(run: Run, judged: Gate) -> Iterator[str]:
    yield f"## evenhand: {judged.outcome}"
    yield ""
    yield f"{_cell(run.facts['work']['model'])}: {judged.reason}"
    yield ""
    shown = judged.failing[:MOST]
    if shown:
        yield "| outcome | finding | value | interval | margin | why |"
        yield "|---|---|---|---|---|---|"
    for c in shown:
        ends = f"{number(c.low)} to {number(c.high)}"
        numbers = f"{number(c.value, sign=True)} | {ends} | {number(c.margin)}"
        yield f"| {c.outcome} | {_cell(c.sentence or c.id)} | {numbers} | {_cell(c.reason)} |"
    if len(judged.failing) > MOST:
        yield ""
        yield f"... and {len(judged.failing) - MOST:,} more."


def _cell(text: object) -> str:
    """Escape text for a cell of a Markdown table."""
    marks = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "`": "'"})
    return " ".join(safe(text, 500).split()).translate(marks)
