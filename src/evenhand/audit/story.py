"""What an audit says: may it ship, who is worse off, how far to trust this, what next?"""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from evenhand.audit.gate import Gate, gate
from evenhand.errors import SpecError
from evenhand.probes.base import Probe
from evenhand.probes.registry import make_probe
from evenhand.runs import counting
from evenhand.runs.card import MetricCard
from evenhand.runs.controls import CANNOT_TELL, headline, with_left_out
from evenhand.runs.finding import Finding, strongest
from evenhand.runs.harms import DOUBTED, folded
from evenhand.runs.kinds import RunKind, cannot_judge
from evenhand.runs.record import Run
from evenhand.runs.story import (
    Place,
    Quiet,
    Step,
    Story,
    Verdict,
    audited_name,
    quiet_parts,
    rate_of,
)
from evenhand.runs.wording import chance, count, defined, interval_name, listed, number, subject

NAMED = 6


def tell(run: Run, kind: RunKind, limit: int = 10) -> Story:
    """Put a finished audit into words. Nothing is recomputed: all numbers are the findings'."""
    facts, findings = run.facts, run.findings
    name, rate = audited_name(facts), rate_of(facts)
    silent = cannot_judge(facts)
    counted = counting.counted(findings)
    own = [f for f in counted if f.probe not in silent]
    inconclusive = tuple(f for f in counted if f.probe in silent)
    verdicts = tuple(_verdicts(facts, findings, silent))
    best = tuple(strongest(own, limit))
    quiet = quiet_parts(facts, own, kind.card)
    judged = gate(run) if run.status == "finished" else None
    failed = {c.id for c in judged.checks if c.outcome == "failed"} if judged else set()
    lines = folded(own, partial(kind.card, facts), failed)
    return Story(
        title=f"{name}: what the audit found",
        model=name,
        problem=" ".join([_ship(judged, own), *_beside(verdicts)]),
        clearest=_clearest(best[0], kind.card(facts, best[0])) if best else "",
        where=tuple(_where(facts, own, kind)),
        sure=(*_silence(facts, silent, inconclusive), *_trust(facts), *_sure(own)),
        exact=tuple(_exact(verdicts, best, quiet, rate)),
        harmed=tuple(line for line in lines if line.who),
        differing=tuple(line for line in lines if not line.who),
        undirected=_undirected(own, partial(kind.card, facts)),
        outcome=judged.outcome if judged else "",
        steps=tuple(_steps(run, facts, own, best)),
        verdicts=verdicts,
        strongest=best,
        quiet=quiet,
        undefined=tuple(counting.undefined(findings, name)),
        rate=rate,
        asked=tuple(_asked(facts)),
        controls=tuple(f for f in findings if f.control),
        skipped={k: str(v["skipped"]) for k, v in facts["probes"].items() if v.get("skipped")},
        cannot_judge=silent,
        inconclusive=inconclusive,
    )


def _not_listed(entry: Mapping[str, Any]) -> int:
    """Tests that a probe made without listing each as a finding; they count nonetheless."""
    return int((entry.get("summary") or {}).get("tests_not_listed") or 0)


def _silence(
    facts: Mapping[str, Any], silent: Mapping[str, str], inconclusive: Sequence[Finding]
) -> Iterator[str]:
    """Which probes cannot judge the model, why, and how many findings that leaves open."""
    for label, reason in silent.items():
        own = [f for f in inconclusive if f.probe == label]
        hits = sum(bool(f.detected) for f in own)
        seen = f" ({hits:,} of them detected)" if hits else ""
        kept = "is" if len(own) == 1 else "are"
        told = f"; its {count(len(own), 'finding')}{seen} {kept} inconclusive" if own else ""
        yield f"{label} cannot judge this model: {reason}{told}."


def _verdicts(
    facts: Mapping[str, Any], findings: Sequence[Finding], silent: Mapping[str, str]
) -> list[Verdict]:
    audited = audited_name(facts)
    tests = [f for f in findings if counting.counts(f, f.model)]
    names = list(dict.fromkeys([audited, *(f.model for f in tests)]))
    known = {str(m.get("name", key)): m for key, m in facts.get("models", {}).items()}
    out = []
    for name in names:
        own = [f for f in tests if f.model == name and f.probe not in silent]
        left = sum(f.model == name and f.probe in silent for f in tests)
        what = str(known.get(name, {}).get("kind", ""))
        hits = tuple(f for f in own if f.detected)
        more, mute = (
            sum(
                _not_listed(e)
                for label, e in facts["probes"].items()
                if e.get("model", audited) == name and (label in silent) == left_out
            )
            for left_out in (False, True)
        )
        out.append(Verdict(name, what, name == audited, len(own) + more, hits, left + mute))
    return sorted(out, key=lambda v: not v.audited)


def _ship(judged: Gate | None, own: Sequence[Finding]) -> str:
    """Whether it may ship by the default policy, and what that rests on."""
    if judged is None:
        return "Not known: the run is not finished."
    if judged.outcome == CANNOT_TELL:
        return headline(judged.cannot_judge)
    if judged.outcome == "undefined":
        lack = "That cannot be said: nothing that counts could be tested."
        return with_left_out(lack, judged.cannot_judge)
    failed, unknown = (
        {c.id for c in judged.checks if c.outcome == outcome} for outcome in ("failed", "undefined")
    )
    rest = [f for f in own if f.id not in failed | unknown]
    within = sum(_farthest(f) <= f.margin for f in rest)
    whole = count(len(own), "finding")
    counts = [f"none of {whole} reaches its margin"]
    if failed:
        reach = f"of {whole} reaches its margin", f"of {whole} reach their margin"
        counts = [_plural(len(failed), *reach)]
    if within:
        counts.append(_plural(within, "is shown to be within it", "are shown to be within it"))
    if len(rest) > within:
        more = "needs more items to tell", "need more items to tell"
        counts.append(_plural(len(rest) - within, *more))
    if unknown:
        counts.append(f"{len(unknown):,} cannot be judged")
    may = "Not by the default policy" if failed else "Yes, by the default policy"
    return with_left_out(f"{may}: {'; '.join(counts)}.", judged.cannot_judge)


def _plural(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _farthest(finding: Finding) -> float:
    """The farthest distance from the ideal that the interval allows."""
    return max(abs(end - finding.ideal) for end in (finding.low, finding.high))


def _beside(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """About other models that the suite brought along; they count for nothing."""
    for verdict in verdicts:
        if verdict.tests and not verdict.audited:
            kind = "word vectors" if verdict.what == "vectors" else "model"
            yield (
                f"Also tested: the {kind} {verdict.model}, with a difference in "
                f"{len(verdict.detected):,} of {count(verdict.tests, 'test')}."
            )


def _undirected(own: Sequence[Finding], card: Callable[[Finding], MetricCard]) -> str:
    """Name the detected differences that have no line in words."""
    names = [subject(f, card(f)) for f in own if f.detected and not (f.harm or f.difference)]
    return f"Other differences, which name nobody as worse off: {listed(names)}." if names else ""


def _clearest(f: Finding, card: MetricCard) -> str:
    """The strongest finding with its numbers."""
    span = ""
    if defined(f.low):
        ends = f"{number(f.low, sign=f.low < 0)} to {number(f.high, sign=f.low < 0)}"
        span = f", {interval_name(f)} {ends}"
    if defined(f.shrunken):
        span += f", corrected for selection {number(f.shrunken, sign=True)}"
    sure = f", q {chance(f.q)}" if defined(f.q) else ""
    value = f"{card.name} {number(f.value, sign=True)}"
    return f"Clearest: {f.sentence} {value[0].upper()}{value[1:]}{span}{sure}."


def _where(facts: Mapping[str, Any], findings: Sequence[Finding], kind: RunKind) -> list[Place]:
    """Per probe: how many detections, and about what."""
    out = []
    for label, entry in facts["probes"].items():
        own = [f for f in findings if f.probe == label]
        if not own:
            continue
        hits = sorted((f for f in own if f.detected), key=lambda f: f.q)
        times: dict[str, int] = {}
        for finding in hits:
            name = subject(finding, kind.card(facts, finding))
            times[name] = times.get(name, 0) + 1
        named = [n if k == 1 else f"{n}, {k} times" for n, k in times.items()]
        more = f"; and {len(named) - NAMED} more" if len(named) > NAMED else ""
        title = str(entry.get("title") or label)
        about = "; ".join(named[:NAMED]) + more
        out.append(Place(title, len(hits), len(own) + _not_listed(entry), about))
    return sorted(out, key=lambda p: -p.hits)


def _trust(facts: Mapping[str, Any]) -> Iterator[str]:
    """How often placebos fired, and what probes say about how the model answers at all."""
    placebos = facts.get("placebos") or {}
    tests = sum(int(p["tests"]) for p in placebos.values())
    if tests:
        fired = sum(int(p["detected"]) for p in placebos.values())
        yield (
            f"Placebos, where there is nothing to find, fired in {fired:,} of {tests:,} "
            f"({100 * (fired / tests):.1f} %; by chance 5 %)."
        )
    if facts.get("placebos") == {}:
        yield "No placebo was asked, so how often something is found where nothing is was not seen."
    for label, found in placebos.items():
        if found.get("reason"):
            yield f"No placebo could be made in {label} ({found['reason']})."
    for entry in facts["probes"].values():
        yield from (entry.get("summary") or {}).get("trust") or ()
    for label, entry in facts["probes"].items():
        yield from (f"Small design in {label}: {n.rstrip('.')}." for n in entry.get("limits") or ())


def _asked(facts: Mapping[str, Any]) -> Iterator[str]:
    """How the model was asked, before what was found: template, system prompt, rung, mass."""
    about = facts.get("models", {}).get(str(facts["work"]["model"]), {})
    if "chat" in about or about.get("system"):
        system = about.get("system")
        said = f"with the system prompt {_shortened(system)}" if system else "no system prompt set"
        chat = about.get("chat") or {}
        thinking = f", thinking {chat['thinking']}" if chat.get("thinking") else ""
        dated = f", dated {chat['date']}" if chat.get("date") else ""
        yield f"Asked as chat, through the model's own template ({said}{thinking}{dated})."
    elif about.get("kind") == "causal":
        yield "Asked as plain text, without a chat template."
    for entry in facts["probes"].values():
        told = entry.get("summary") or {}
        if not told.get("rung"):
            continue
        parts = [f"{entry.get('title')} Answered by {told['rung']}"]
        if told.get("mass") is not None:
            mass = told["mass"]
            share = f"{100 * mass:.0f} %" if mass >= 0.01 else "less than 1 %"
            parts.append(f"{share} of the probability is on the options")
        if told.get("refused") is not None:
            parts.append(f"{100 * told['refused']:.1f} % of the answers decline")
        if told.get("unread"):
            parts.append(f"{100 * told['unread']:.1f} % cannot be read")
        yield "; ".join(parts) + "."


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _sure(own: Sequence[Finding]) -> Iterator[str]:
    withheld = dict.fromkeys(f.probe for f in own if f.reason.startswith("not believed"))
    if withheld:
        yield f"Withheld, because placebos fired too often: {listed(list(withheld))}."
    if any(f.caution and (f.harm or f.difference) for f in own):
        yield f"Sizes with {DOUBTED} are near the limit of detection and tend to be overstated."


def _exact(
    verdicts: Sequence[Verdict], best: Sequence[Finding], quiet: Sequence[Quiet], rate: float
) -> Iterator[str]:
    """For the statistician: what detected means, and what may have been missed."""
    yield from (v.sentence for v in verdicts if v.audited)
    if best:
        yield (
            f"Of all differences called detected, about {100 * rate:.0f} % or fewer should be due "
            "to chance (false-discovery rate). Their intervals are wider because they were "
            "selected, and their shrunken sizes smaller."
        )
    missed = [f"{q.card.name} below {number(q.largest)}" for q in quiet if defined(q.largest)]
    if missed:
        yield f"Gaps this run may have missed: {'; '.join(dict.fromkeys(missed))}."
    if not best:
        yield "No difference detected does not mean that there is none."


def _steps(
    run: Run, facts: Mapping[str, Any], findings: Sequence[Finding], best: Sequence[Finding]
) -> list[Step]:
    model, place = shlex.join(model_words(facts["work"])), shlex.quote(str(run.folder))
    steps = [Step("Look at every item behind a number", f"evenhand view {place}")]
    steps.append(Step("See every number of every finding", f"evenhand show {place} --all"))
    steps.append(
        Step("Compare it with another model or version", f"evenhand compare {place} OTHER")
    )
    return steps + _finer(facts, findings, model)


def _finer(facts: Mapping[str, Any], findings: Sequence[Finding], model: str) -> list[Step]:
    """The first probe that missed something and has more material to ask."""
    missed = {f.probe for f in findings if f.detected is False}
    for entry in (entry for label, entry in facts["probes"].items() if label in missed):
        with contextlib.suppress(SpecError):  # a probe of another package, or of an older version
            finer = make_probe(entry["probe"], entry["settings"]).finer()
            if finer is not None:
                command = f"evenhand probe {entry['probe']} {model}{changed_settings(finer)}"
                return [Step("See smaller effects, with more material", command)]
    return []


def model_words(work: Mapping[str, Any]) -> list[str]:
    """The audited model on a command line, with how it was asked.

    >>> model_words({"model": "http://h/v1", "options": {"model": "m", "rung": 2}})
    ['http://h/v1', '--model', 'm', '--rung', '2']
    """
    known = ("model", "base_url", "rung", "chat", "system", "way")
    given = {k: v for k, v in work.get("options", {}).items() if k in known}
    flags = ((f"--{k.replace('_', '-')}", str(v)) for k, v in given.items())
    return [str(work["model"]), *(word for pair in flags for word in pair)]


def changed_settings(probe: Probe) -> str:
    """The settings that are not the probe's usual ones, as options of the command line."""
    given = probe.model_dump(mode="json", exclude_defaults=True)
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
