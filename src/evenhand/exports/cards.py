"""Model cards: Hugging Face metadata and Markdown, and CycloneDX 1.6 with its model card.

In a Hugging Face card (`model-index` metadata, and a section for "Bias, Risks, Limitations") only
findings about the audited model are written: a card speaks about one model.

In CycloneDX the model is a component of a bill of materials. Every finding that counts is a
performance metric with its interval; every detected one that says who is worse off is a fairness
assessment; what was not measured are technical limitations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID

from evenhand.exports.common import as_json, file_name, finished_at, safe, version
from evenhand.models.loading.resolver import task_of
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.unmeasured import not_measured
from evenhand.runs.wording import chance, defined, number, subject

SOURCE = "https://pypi.org/project/evenhand/"
LISTED = 20


def index_files(run: Run) -> dict[str, bytes]:
    """Return model-index.yaml, to paste into a card's header."""
    return {"model-index.yaml": yaml(index(run)).encode()}


def index(run: Run) -> dict[str, Any]:
    """Return the metadata as nested dicts, one result per probe."""
    name, kind = _audited(run)
    card, silent = _cards(run), cannot_judge(run.facts)
    results = []
    for label, entry in run.facts["probes"].items():
        own = [f for f in run.findings if f.probe == label and f.model == name]
        metrics = [_metric(f, card(f), silent.get(label, "")) for f in own if defined(f.value)]
        if not metrics:
            continue
        title = safe(entry.get("title") or label, 200)
        results.append(
            {
                "task": {"type": task_of(kind), "name": "Social bias"},
                "dataset": {"type": f"evenhand/{file_name(label)}", "name": title},
                "metrics": metrics,
                "source": {"name": f"evenhand {version(run)}", "url": SOURCE},
            }
        )
    return {
        "tags": ["evenhand", "bias-audit"],
        "model-index": [{"name": safe(name, 200), "results": results}],
    }


def _metric(finding: Finding, card: MetricCard, silent: str) -> dict[str, Any]:
    extra: dict[str, Any] = {"n": finding.n, "ideal": finding.ideal}
    if defined(finding.low):
        extra["ci95"] = [finding.low, finding.high]
    for key, value in (("q_value", finding.q), ("noise_floor", finding.floor)):
        if defined(value):
            extra[key] = value
    if silent:
        extra["outcome"] = safe(f"cannot tell: {silent}", 500)
    name = f"{card.name}, {subject(finding, card)} (ideal {number(finding.ideal)})"
    return {
        "type": f"evenhand_{finding.metric}",
        "value": float(finding.value),
        "name": safe(name, 300),
        "args": extra,
    }


def _audited(run: Run) -> tuple[str, str]:
    known = run.facts.get("models", {}).get(run.facts["work"]["model"], {})
    return audited_name(run.facts), str(known.get("kind", ""))


def _cards(run: Run) -> Callable[[Finding], MetricCard]:
    return partial(kind_of(run.facts).card, run.facts)


def yaml(value: Any, depth: int = 0) -> str:
    """Return nested dicts and lists as YAML; text is quoted as in JSON, which YAML reads.

    >>> print(yaml({"a": [{"b": 1, "c": "x: y"}]}), end="")
    a:
      - b: 1
        c: "x: y"
    """
    pad = "  " * depth
    if isinstance(value, dict):
        lines = []
        for key, inner in value.items():
            if isinstance(inner, (dict, list)) and inner:
                lines.append(f"{pad}{key}:\n{yaml(inner, depth + 1)}")
            else:
                lines.append(f"{pad}{key}: {_scalar(inner)}\n")
        return "".join(lines)
    lines = []
    for inner in value:
        if isinstance(inner, dict):
            text = yaml(inner, depth + 1)
            lines.append(f"{pad}- {text[len(pad) + 2 :]}")
        else:
            lines.append(f"{pad}- {_scalar(inner)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    text = repr(value)
    if isinstance(value, float) and "e" in text:  # YAML 1.1 reads 1e-05 as text, 1.0e-05 not
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return json.dumps(value, ensure_ascii=True)


def card_files(run: Run) -> dict[str, bytes]:
    """Return model-card-section.md."""
    return {"model-card-section.md": card(run).encode("utf-8", "backslashreplace")}


def card(run: Run) -> str:
    """Return the section in Markdown, with all markup of the run's texts escaped."""
    story = kind_of(run.facts).story(run, LISTED)
    card, own = _cards(run), counted(story.strongest)
    tests = next((v.tests for v in story.verdicts if v.audited), 0)
    lines = [
        "## Bias, Risks, and Limitations",
        "",
        f"Audited with evenhand {version(run)}, suite {md(run.facts['work']['suite']['name'])}, "
        f"seed {run.facts['work'].get('seed')} ({tests} tests). The numbers describe the model's "
        f"scores on these texts, not the groups of people.",
        "",
    ]
    if own:
        lines += ["| Finding | Value | interval | q | n |", "|---|---|---|---|---|"]
        lines += [_line(f, card(f)) for f in own]
    elif story.inconclusive and not story.quiet:
        lines.append(md(story.problem, 2_000))
    else:
        lines.append("No difference between groups was detected.")
    if story.cannot_judge:
        lines += ["", "Inconclusive, because these probes cannot judge this model:", ""]
        lines += [f"- {md(label)}: {md(why)}." for label, why in story.cannot_judge.items()]
    if story.quiet or not story.cannot_judge:
        lines += ["", "Tested, no difference detected:", ""]
    for part in story.quiet:
        names = ", ".join(md(subject(f, card(f)), 80) for f in part.findings[:LISTED])
        lines.append(f"- {md(part.title)} {names}. {part.could}")
    return "\n".join(lines) + "\n"


def _line(f: Finding, card: MetricCard) -> str:
    span = f"{number(f.low)} to {number(f.high)}" if defined(f.low) else "–"
    value = f"{card.name} {number(f.value, sign=True)}"
    return f"| {md(f.sentence)} | {value} | {span} | {md(chance(f.q))} | {f.n:,} |"


def md(text: object, longest: int = 400) -> str:
    r"""Escape text for Markdown.

    >>> md("<b>|x|</b> [a](b)")
    '&lt;b&gt;\\|x\\|&lt;/b&gt; \\[a\\](b)'
    """
    one = " ".join(safe(text, longest).split())
    one = one.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_|\[\]#!~])", r"\\\1", one)


SPEC = "1.6"
IDENTITY = ("fingerprint", "weights_sha256", "dtype", "rung", "parameters", "kind")


def cyclonedx_files(run: Run) -> dict[str, bytes]:
    """Return model.cdx.json."""
    return {"model.cdx.json": as_json(bom(run))}


def bom(run: Run) -> dict[str, Any]:
    """Return the bill of materials; the same run always has the same serial number."""
    facts, stamp = run.facts, datetime.fromtimestamp(finished_at(run), UTC)
    model = facts["models"].get(facts["work"]["model"], {})
    component = {
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": safe(audited_name(facts), 300),
        "modelCard": _bom_card(run, model),
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


def _bom_card(run: Run, model: dict[str, Any]) -> dict[str, Any]:
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
            "performanceMetrics": [_bom_metric(f, card(f)) for f in found if defined(f.value)]
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


def _bom_metric(f: Finding, card: MetricCard) -> dict[str, Any]:
    """Return a performance metric; this format writes numbers as text."""
    told = {
        "type": safe(f"{card.name} (ideal {f.ideal:g})", 300),
        "value": repr(float(f.value)),
        "slice": safe(f"{f.id}: {subject(f, card)}", 500),
    }
    if not (defined(f.low) and defined(f.high)):
        return told
    ends = {"lowerBound": repr(float(f.low)), "upperBound": repr(float(f.high))}
    return {**told, "confidenceInterval": ends}
