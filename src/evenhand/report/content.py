"""What a run says, before it is laid out: the report, the viewer and the terminal share it.

Four questions come first: is there a problem, where, how sure is that, what next.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.mitigations import story as content_mitigation
from evenhand.probes.registry import make_probe
from evenhand.runs.finding import Finding, strongest
from evenhand.runs.record import Run
from evenhand.runs.story import Place, Quiet, Step, Story, Verdict, audited_name
from evenhand.runs.wording import chance, count, defined, is_control, metric_name, number, subject
from evenhand.study import story as content_study

NAMED = 6


def tell(run: Run, limit: int = 10) -> Story:
    """Put a finished run into words. Nothing is recomputed: all numbers are the findings'."""
    facts = run.facts
    findings = run.findings
    if content_study.is_study(facts):
        return _study(run, facts, limit)
    if content_mitigation.is_mitigation(facts):
        return _mitigation(run, facts)
    name = audited_name(facts)
    rate = float(facts["work"]["suite"].get("false_discovery_rate", 0.05))
    social = [f for f in findings if not is_control(f)]
    verdicts = tuple(_verdicts(facts, social))
    best = tuple(strongest(social, limit))
    quiet = tuple(_quiet(facts, social))
    return Story(
        title=f"{name}: what the audit found",
        model=name,
        problem=" ".join(_problem(verdicts)),
        clearest=_clearest(best, name),
        where=tuple(_where(facts, social)),
        sure=tuple(_sure(best, quiet, rate)),
        steps=tuple(_steps(run, facts, social, best)),
        verdicts=verdicts,
        strongest=best,
        quiet=quiet,
        controls=tuple(f for f in findings if is_control(f)),
        undefined=tuple(f for f in social if not defined(f.value)),
        skipped={k: str(v["skipped"]) for k, v in facts["probes"].items() if v.get("skipped")},
        rate=rate,
    )


def _study(run: Run, facts: Mapping[str, Any], limit: int) -> Story:
    """The first screen of a study."""
    found, name = run.findings, audited_name(facts)
    rate = float(facts["work"]["suite"].get("false_discovery_rate", 0.05))
    pairs = content_study.correlations(found)
    hits = tuple(f for f in pairs if f.detected)
    tests = sum(f.detected is not None for f in pairs)
    places = [Place(t, name, True, h, n, a) for t, h, n, a in content_study.places(found)]
    best = tuple(content_study.best(found, limit))
    return Story(
        title=f"{name}: what the study found",
        model=name,
        problem=content_study.answer(found),
        clearest=f"Clearest: {best[0].sentence}" if best else "",
        where=tuple(places),
        sure=tuple(content_study.sure(found, rate)),
        steps=tuple(Step(*s) for s in content_study.steps(run)),
        verdicts=(Verdict(name, "study", True, tests, hits),),
        strongest=best,
        quiet=tuple(_quiet(facts, pairs)),
        controls=(),
        undefined=tuple(f for f in found if not defined(f.value)),
        skipped={},
        rate=rate,
        questions=content_study.QUESTIONS,
        noun="relation",
        kind="study",
        intro="For each metric and task the strongest one; all of them are in the charts below.",
        beside="How reliable each number is",
    )


def _mitigation(run: Run, facts: Mapping[str, Any]) -> Story:
    """The first screen of a mitigation that was judged."""
    name = audited_name(facts)
    found = content_mitigation.falls(run)
    hits = tuple(f for f in found if f.detected)
    costs = [Place(line, name, True, 0, 0, "") for line in content_mitigation.costs(run)]
    return Story(
        title=f"{name}: what the mitigation buys and costs",
        model=name,
        problem=content_mitigation.answer(run),
        clearest="",
        where=tuple(costs),
        sure=tuple(content_mitigation.sure(run)),
        steps=tuple(Step(*s) for s in content_mitigation.steps(run)),
        verdicts=(Verdict(name, "mitigation", True, len(found), hits),),
        strongest=hits,
        quiet=tuple(_quiet(facts, found)),
        controls=(),
        undefined=tuple(f for f in found if not defined(f.value)),
        skipped={},
        rate=float(facts["work"]["suite"].get("false_discovery_rate", 0.05)),
        questions=content_mitigation.QUESTIONS,
        noun="change",
        kind="mitigation",
        intro="Measured on held-out contexts, before and after.",
    )


def _not_listed(entry: Mapping[str, Any]) -> int:
    """Tests that a probe made without listing each as a finding; they count all the same."""
    return int((entry.get("summary") or {}).get("tests_not_listed") or 0)


def _verdicts(facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Verdict]:
    audited = audited_name(facts)
    names = list(dict.fromkeys([audited, *(f.model for f in findings)]))
    known = {str(m.get("name", key)): m for key, m in facts.get("models", {}).items()}
    out = []
    for name in names:
        own = [f for f in findings if f.model == name and f.detected is not None]
        what = str(known.get(name, {}).get("kind", ""))
        hits = tuple(f for f in own if f.detected)
        more = sum(
            _not_listed(e) for e in facts["probes"].values() if e.get("model", audited) == name
        )
        out.append(Verdict(name, what, name == audited, len(own) + more, hits))
    return sorted(out, key=lambda v: not v.audited)


def _problem(verdicts: Sequence[Verdict]) -> list[str]:
    """About the audited model first, then about others that the suite brought along."""
    out = []
    for verdict in verdicts:
        if verdict.audited:
            out.append(verdict.sentence)
        elif verdict.tests:
            kind = "word vectors" if verdict.what == "vectors" else "model"
            out.append(
                f"Tested beside it: the {kind} {verdict.model}, with a difference in "
                f"{len(verdict.detected):,} of {count(verdict.tests, 'test')}."
            )
    return out


def _clearest(best: Sequence[Finding], audited: str) -> str:
    """The strongest finding of the audited model, else of another, with its numbers."""
    own = [f for f in best if f.model == audited] or list(best)
    if not own:
        return ""
    f = own[0]
    where = f" ({f.model})" if f.model != audited else ""
    span = ""
    if defined(f.low):
        span = (
            f", 95 % interval {number(f.low, sign=f.low < 0)} to {number(f.high, sign=f.low < 0)}"
        )
    sure = f", q {chance(f.q)}" if defined(f.q) else ""
    value = f"{metric_name(f.metric)} {number(f.value, sign=True)}"
    return f"Clearest{where}: {f.sentence} {value[0].upper()}{value[1:]}{span}{sure}."


def _where(facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Place]:
    """Per probe: how many detections, and about what; the audited model first."""
    out = []
    for label, entry in facts["probes"].items():
        own = [f for f in findings if f.probe == label and f.detected is not None]
        if not own:
            continue
        hits = sorted((f for f in own if f.detected), key=lambda f: f.q)
        times: dict[str, int] = {}
        for finding in hits:
            name = subject(finding)
            times[name] = times.get(name, 0) + 1
        named = [n if k == 1 else f"{n}, {k} times" for n, k in times.items()]
        more = f"; and {len(named) - NAMED} more" if len(named) > NAMED else ""
        title = str(entry.get("title") or label)
        model = str(entry.get("model") or audited_name(facts))
        audited = model == audited_name(facts)
        about = "; ".join(named[:NAMED]) + more
        tests = len(own) + _not_listed(entry)
        out.append(Place(title, model, audited, len(hits), tests, about))
    return sorted(out, key=lambda p: (not p.audited, -p.hits))


def _sure(best: Sequence[Finding], quiet: Sequence[Quiet], rate: float) -> list[str]:
    out = []
    if best:
        out.append(
            f"Of all differences called detected, about {rate:.0%} or fewer should be chance "
            f"(false-discovery rate)."
        )
    missed = [
        f"{metric_name(q.metric)} below {number(q.largest)}" for q in quiet if defined(q.largest)
    ]
    if missed:
        out.append(f"Gaps this run may have missed: {'; '.join(dict.fromkeys(missed))}.")
    if not best:
        out.append("No difference detected does not mean that there is none.")
    return out


def _quiet(facts: Mapping[str, Any], findings: Sequence[Finding]) -> list[Quiet]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.detected is False:
            groups.setdefault((finding.probe, finding.metric), []).append(finding)
    out = []
    for (probe, metric), rows in groups.items():
        seen = [f.detectable for f in rows if defined(f.detectable)]
        low, high = (min(seen), max(seen)) if seen else (float("nan"), float("nan"))
        title = str(facts["probes"].get(probe, {}).get("title") or probe)
        rows.sort(key=lambda f: (f.q if defined(f.q) else 1.0, f.id))
        out.append(Quiet(probe, title, metric, tuple(rows), low, high))
    return out


def _steps(
    run: Run, facts: Mapping[str, Any], findings: Sequence[Finding], best: Sequence[Finding]
) -> list[Step]:
    model, place = shlex.quote(str(facts["work"]["model"])), shlex.quote(str(run.folder))
    steps = [Step("Look at every item behind a number", f"evenhand view {place}")]
    if best:
        steps.append(Step("Decide whether it may ship", f"evenhand gate {place}"))
    settings = facts["probes"].get("underspecified", {}).get("settings", {})
    missed = [f for f in findings if f.detected is False and f.probe == "underspecified"]
    if settings.get("pairs") and missed:
        wanted = {**settings, "pairs": 4 * int(settings["pairs"])}
        command = f"evenhand probe underspecified {model}{_changed('underspecified', wanted)}"
        steps.append(Step("See smaller effects, with four times the names", command))
    steps.append(Step("Set it beside another model or version", f"evenhand compare {place} OTHER"))
    return steps


def _changed(probe: str, settings: Mapping[str, Any]) -> str:
    """The settings that are not the probe's usual ones, as options of the command line."""
    usual = make_probe(probe, {}).model_dump(mode="json")
    given = {k: v for k, v in settings.items() if v != usual.get(k)}
    texts = map(_as_setting, given.values())
    return "".join(f" --set {shlex.quote(f'{name}={text}')}" for name, text in zip(given, texts))


def _as_setting(value: Any) -> str:
    """A value as `--set` reads it; lists of plain words without brackets, which reads better.

    >>> _as_setting(["nurse", "doctor"]), _as_setting(["nurse"]), _as_setting(7)
    ('nurse,doctor', '["nurse"]', '7')
    """
    if isinstance(value, str):
        return value
    words = isinstance(value, list) and len(value) > 1
    if words and all(isinstance(v, str) and v.replace("_", "a").isalpha() for v in value):
        return ",".join(value)
    return json.dumps(value, ensure_ascii=False)
