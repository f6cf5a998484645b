"""What a study says: does a metric of word vectors go with behaviour, and how sure is that?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from evenhand.findings import Finding
from evenhand.record import Run
from evenhand.report.words import count, defined, number

QUESTIONS = (
    "Does a metric of the vectors predict behaviour?",
    "Which ones?",
    "How sure is that?",
    "What next?",
)
LOW_CEILING = 0.3
NAMED = 6


def is_study(facts: dict[str, Any]) -> bool:
    return facts.get("work", {}).get("kind") == "study"


def correlations(findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if f.metric == "spearman"]


def answer(findings: Sequence[Finding]) -> str:
    """The headline."""
    tested = [f for f in correlations(findings) if f.detected is not None]
    hits = [f for f in tested if f.detected]
    if not tested:
        return "Nothing could be correlated yet: the study has no finished pair of metrics."
    if not hits:
        return f"None did here: no relation was detected in {count(len(tested), 'pair')} tested."
    held = [f for f in hits if same_way(f)]
    return (
        f"In {len(hits):,} of {count(len(tested), 'pair')} a relation was detected; in "
        f"{len(held):,} of these it points the same way inside every family of changes."
    )


def same_way(finding: Finding) -> bool:
    """Whether every family's own correlation has the sign of the pooled one."""
    inside = [s.get("spearman") for s in finding.details.get("families", [])]
    known = [v for v in inside if v is not None]
    return bool(known) and all(v * finding.value > 0 for v in known)


def named(findings: Sequence[Finding]) -> str:
    """The detected pairs, strongest first."""
    hits = [f for f in correlations(findings) if f.detected]
    hits.sort(key=lambda f: -abs(f.value))
    rows = [f"{f.attribute} ({number(f.value, sign=True)})" for f in hits]
    more = f"; and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return "; ".join(rows[:NAMED]) + more


def sure(findings: Sequence[Finding], rate: float) -> list[str]:
    """Reliability first: without it a missing relation says nothing."""
    pairs = correlations(findings)
    known = [f for f in pairs if defined(f.details.get("ceiling"))]
    out = []
    weak = [f for f in known if f.details["ceiling"] < LOW_CEILING]
    if known:
        out.append(
            f"{len(weak):,} of {count(len(known), 'pair')} could not show a relation even if there "
            f"were one: replicates of the same vectors differ as much as changed vectors do "
            f"(ceiling below {LOW_CEILING})."
        )
    if any(f.detected for f in pairs):
        out.append(f"Of all relations called detected, about {rate:.0%} or fewer should be chance.")
    sizes = {f.n for f in pairs}
    if sizes:
        out.append(f"Each correlation rests on {max(sizes):,} embeddings of one corpus.")
    return out


def steps(run: Run) -> list[tuple[str, str]]:
    place = shlex.quote(str(run.folder))
    table = f"{place}/probes/study/points.parquet"
    return [
        ("Look at every trained system", f"evenhand view {place}"),
        (
            "Correlate other columns of the table",
            f"evenhand measure correlation {table} --x COLUMN --y COLUMN --strata family",
        ),
    ]
