"""What a study says: does a metric of word vectors go with behaviour, and how sure is that?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from evenhand.runs.finding import Finding
from evenhand.runs.kinds import RunKind
from evenhand.runs.record import Run
from evenhand.runs.story import Place, Step, Story, Verdict, audited_name, quiet_parts, rate_of
from evenhand.runs.wording import count, defined, number
from evenhand.study.correlation import LOW_CEILING

QUESTIONS = (
    "Does a metric of the vectors predict behaviour?",
    "Which ones?",
    "How sure is that?",
    "What next?",
)
NAMED = 4


def tell(run: Run, kind: RunKind, limit: int = 10) -> Story:
    """The first screen of a study."""
    facts, found = run.facts, run.findings
    name, rate, pairs = audited_name(facts), rate_of(facts), correlations(found)
    hits = tuple(f for f in pairs if f.detected)
    tests = sum(f.detected is not None for f in pairs)
    strongest = tuple(best(found, limit))
    return Story(
        title=f"{name}: what the study found",
        model=name,
        problem=answer(found),
        clearest=f"Clearest: {strongest[0].sentence}" if strongest else "",
        where=tuple(places(found)),
        sure=tuple(sure(found, rate)),
        steps=tuple(steps(run)),
        verdicts=(Verdict(name, "study", True, tests, hits),),
        strongest=strongest,
        quiet=quiet_parts(facts, pairs, kind.card),
        undefined=tuple(f for f in found if not defined(f.value)),
        rate=rate,
        questions=QUESTIONS,
        noun="relation",
        kind="study",
        intro="For each metric and task the strongest one; all of them are in the charts below.",
        beside="How reliable each number is",
    )


def correlations(findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if f.metric == "spearman"]


def answer(findings: Sequence[Finding]) -> str:
    """The headline."""
    tested = [f for f in correlations(findings) if f.detected is not None]
    hits = [f for f in tested if f.detected]
    if not tested:
        known = [f for f in correlations(findings) if defined(f.value)]
        if known:
            return f"No verdict ({known[0].reason})."
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


def behaviour(finding: Finding) -> str:
    """The task whose gap a pair is about.

    >>> behaviour(Finding("", "study", "spearman", 0.5, "", details={"y": "hate_speech:f1 gap"}))
    'hate speech'
    """
    return str(finding.details.get("y", "")).partition(":")[0].replace("_", " ")


def places(findings: Sequence[Finding]) -> list[Place]:
    """Per task: pairs detected, pairs tested, the strongest metrics."""
    tested = [f for f in correlations(findings) if f.detected is not None]
    out = []
    for task in dict.fromkeys(map(behaviour, tested)):
        own = [f for f in tested if behaviour(f) == task]
        hits = best(own, len(own))
        names = [f"{f.attribute.partition(' ~ ')[0]} {number(f.value, sign=True)}" for f in hits]
        more = f"; and {len(names) - NAMED} more metrics" if len(names) > NAMED else ""
        about = f"Strongest of each metric: {'; '.join(names[:NAMED])}{more}" if names else ""
        out.append(Place(task, sum(bool(f.detected) for f in own), len(own), about))
    return sorted(out, key=lambda p: -p.hits)


def best(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """The strongest detected pair of each metric and task, strongest first."""
    hits = sorted((f for f in correlations(findings) if f.detected), key=lambda f: -abs(f.value))
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in hits:
        kept.setdefault((finding.model, str(finding.details.get("x")), behaviour(finding)), finding)
    return list(kept.values())[:limit]


def sure(findings: Sequence[Finding], rate: float) -> list[str]:
    """Reliability first: without it a missing relation says nothing."""
    pairs = correlations(findings)
    known = [f for f in pairs if defined(f.details.get("ceiling"))]
    out = []
    weak = [f for f in known if f.details["ceiling"] < LOW_CEILING]
    if weak:
        out.append(
            f"{len(weak):,} of {count(len(known), 'pair')} could not show a relation even if there "
            f"were one: replicates of the same vectors differ as much as changed vectors do "
            f"(ceiling below {LOW_CEILING})."
        )
    elif known:
        lowest = min(f.details["ceiling"] for f in known)
        out.append(
            f"Replicates agree well enough for every pair to show a relation: noise of training "
            f"leaves room for correlations up to {number(lowest)} or more."
        )
    if any(f.detected for f in pairs):
        out.append(
            f"Of all relations called detected, about {100 * rate:.0f} % or fewer should be due to "
            "chance."
        )
    missed = [f.detectable for f in pairs if f.detected is False and defined(f.detectable)]
    if missed:
        out.append(f"True correlations below {number(max(missed))} may have been missed.")
    sizes = {int(f.details.get("embeddings", f.n)) for f in pairs}
    if sizes:
        out.append(
            f"Each correlation rests on {max(sizes):,} embeddings of one corpus. A relation that "
            f"turns round inside a family of changes may come from the families alone."
        )
    return out


def steps(run: Run) -> list[Step]:
    place = shlex.quote(str(run.folder))
    table = f"{place}/probes/study/points.parquet"
    return [
        Step("Look at every trained system", f"evenhand view {place}"),
        Step(
            "Correlate other columns of the table",
            f"evenhand measure correlation {table} --x COLUMN --y COLUMN --strata family",
        ),
    ]
