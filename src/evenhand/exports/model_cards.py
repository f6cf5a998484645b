"""Hugging Face model cards: `model-index` metadata, and a section for "Bias, Risks, Limitations".

Only findings about the audited model are written: a card speaks about one model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from evenhand.exports.common import file_name, safe, version
from evenhand.models.loading.resolver import task_of
from evenhand.runs.card import MetricCard
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.wording import chance, defined, number, subject

SOURCE = "https://pypi.org/project/evenhand/"
LISTED = 20


def index_files(run: Run) -> dict[str, bytes]:
    """model-index.yaml, to paste into a card's header."""
    return {"model-index.yaml": yaml(index(run)).encode()}


def index(run: Run) -> dict[str, Any]:
    """The metadata as nested dicts, one result per probe."""
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
    """Nested dicts and lists as YAML; every text is quoted as in JSON, which YAML reads.

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
    """model-card-section.md"""
    return {"model-card-section.md": card(run).encode("utf-8", "backslashreplace")}


def card(run: Run) -> str:
    """The section in Markdown, with nothing in it that Markdown or HTML would act on."""
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
    r"""Text as plain text in Markdown.

    >>> md("<b>|x|</b> [a](b)")
    '&lt;b&gt;\\|x\\|&lt;/b&gt; \\[a\\](b)'
    """
    one = " ".join(safe(text, longest).split())
    one = one.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_|\[\]#!~])", r"\\\1", one)
