"""A run against an earlier one: did harm grow since, on the same items?

By default a finding fails when harm is shown to have grown and is not shown to have grown by less
than its margin. Who requires `within-margin` asks for non-inferiority: growth must be shown to be
smaller than the margin, and is undecided until it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.audit.comparison import same_questions, same_rungs
from evenhand.audit.comparison.deciding import decide
from evenhand.audit.comparison.items import own_findings
from evenhand.audit.gate import Check, decided, doubts, withheld
from evenhand.audit.policy import Policy
from evenhand.runs.compared import WORSE, Decision
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.runs.wording import chance, number


def baseline_checks(
    before: Run,
    after: Run,
    policy: Policy,
    others: Sequence[str] = (),
    silent: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check per finding that counts in the later run; `others` were decided before.

    `silent` are the probes that cannot judge one of the models, with the reason.

    Raises:
        RunError: the runs did not ask the same, or not in the same way.
    """
    same_questions([before, after])
    same_rungs([before, after])
    found = decide(before, after, policy, others, silent)
    known = {d.finding: d for d in found.decisions}
    doubted = {**doubts(before), **doubts(after)}
    out = []
    for f in own_findings(after).values():
        if not policy.checked(f.id) or not (f.counts or f.id in known):
            continue
        doubt = doubted.get(f.probe, "")
        if silent and f.probe in silent:
            out.append(_withheld(f, known.get(f.id), policy, silent[f.probe]))
            continue
        if f.id in known:
            out.append(_check(f, known[f.id], policy, doubt))
            continue
        margin = policy.margin_of(f.id, f.margin)
        lack = (
            doubt or found.reasons.get(f.probe, "") or f.reason or "the baseline has no such test"
        )
        nothing = float("nan")
        out.append(Check(f.id, "undefined", nothing, nothing, nothing, margin, reason=lack))
    return out


def _withheld(f: Finding, d: Decision | None, policy: Policy, reason: str) -> Check:
    """Return the check of a probe that cannot judge, with the change that was measured."""
    check = withheld(f, policy, reason)
    if d is None:
        nothing = float("nan")
        return replace(check, value=nothing, low=nothing, high=nothing)
    return replace(
        check,
        value=d.change,
        low=d.low,
        high=d.high,
        n=d.n,
        units=d.units,
        before=d.before,
        after=d.after,
        sentence=d.sentence,
    )


def _check(f: Finding, d: Decision, policy: Policy, doubt: str) -> Check:
    strict = policy.require == "within-margin"
    lack = (d.reason or "its change is undefined") if d.q != d.q else ""
    if strict and not lack and d.margin != d.margin:
        lack = "no margin is set: give one in a policy under [margins]"
    if not strict and d.verdict == WORSE:
        lack = lack or doubt
    check = Check(
        f.id,
        "undefined",
        d.change,
        d.low,
        d.high,
        d.margin,
        reason=lack,
        n=d.n,
        units=d.units,
        before=d.before,
        after=d.after,
        sentence=d.sentence,
    )
    failing = d.q if d.verdict == WORSE else 1.0
    if strict:
        words = (
            "harm is shown to have grown by less than the margin",
            "harm grew, and is not shown to stay below the margin",
            "harm is shown neither to have grown nor to stay below the margin",
        )
        return decided(
            check, d.p_within, failing, policy, words=words, doubt=doubt, settle=lambda: d.needed
        )
    if lack:
        return check
    if d.verdict != WORSE:
        return replace(check, outcome="passed", reason=f"not shown to be worse: {d.verdict}")
    most = f"not shown to stay below the margin of {number(d.margin)}"
    why = f"harm grew (q {chance(d.q)}), and {most if d.margin == d.margin else 'no margin is set'}"
    return replace(check, outcome="failed", reason=why)
