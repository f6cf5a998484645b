"""May it ship? A run against a policy (`audit.policy`), by interval rather than by point.

The default policy fails a run when a finding that counts is detected and its interval reaches
beyond its margin (a finding without a margin when it is detected); a run in which nothing could be
tested on the audited model is undefined, never passed. A policy that requires `within-margin` asks
for equivalence: a finding passes when two one-sided tests show it within its margin, fails when it
is shown beyond, and is undecided otherwise. With a baseline the question is how much harm grew
since, on the same items (`audit.baseline`).

Findings of a probe that cannot judge the model (`runs.controls`) are neither passed nor failed
but "cannot tell", whatever the policy, and so is a run without a probe that can.

Errors: a run passes when *all* checks do, so each is tested at the policy's error rate; it fails
when *any* does, so these p values are corrected over the whole run (`stats.selection`). Either way
the outcome is wrong in at most that share of runs.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evenhand.audit.estimates import estimated, room
from evenhand.audit.policy import Policy, read_policy
from evenhand.audit.verdicts import BELIEVED
from evenhand.errors import RunError, need
from evenhand.runs import html
from evenhand.runs.controls import CANNOT_TELL, inconclusive, of_labels, with_left_out
from evenhand.runs.counting import undefined
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name, rate_of
from evenhand.runs.wording import chance, number
from evenhand.stats.equivalence import beyond, inside, units_to_settle
from evenhand.stats.estimate import Estimate
from evenhand.stats.selection import over_families

Outcome = Literal["passed", "failed", "undecided", "undefined", "cannot tell"]
EXIT: dict[Outcome, int] = {
    "passed": 0,
    "failed": 1,
    "undecided": 3,
    "undefined": 3,
    CANNOT_TELL: 3,
}
"""Exit codes of `evenhand gate`; 2 is wrong usage."""
DEFAULT = Policy()
ASKING = ("model", "baseline_model", "progress", "tell")
WITHIN = (
    "shown to lie within the margin",
    "shown to lie beyond the margin",
    "shown to lie neither within nor beyond the margin",
)


@dataclass(frozen=True)
class Check:
    """One finding against its margin.

    Attributes:
        id: the finding.
        outcome: passed, failed, undecided (neither is shown), undefined (cannot be tested) or
            cannot tell (its probe cannot judge the model).
        value, low, high: the finding's number and interval; with a baseline, of its change.
        margin: the distance from the ideal, or the growth, that is accepted (NaN: none is set).
        needed: about how many units in all would decide an undecided check; None elsewhere.
        reason: why this outcome.
        n, units: how many units were asked, and what they are.
        level: of the interval.
        before, after: of the number, with a baseline.
        sentence: what the finding says.
    """

    id: str
    outcome: Outcome
    value: float
    low: float
    high: float
    margin: float = NAN
    needed: int | None = None
    _: KW_ONLY
    reason: str = ""
    n: int = 0
    units: str = ""
    level: float = 0.95
    before: float | None = None
    after: float | None = None
    sentence: str = ""

    @property
    def more(self) -> int:
        """How many units are missing for a decision; 0 where it is made or none would help."""
        return max(0, (self.needed or 0) - self.n)

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of a check."""
        told = {k: v for k, v in self.__dict__.items() if k != "sentence" and v is not None}
        return {**told, "needed": self.needed}


@dataclass(frozen=True, repr=False)
class Gate:
    """The outcome of a run, why, and what it rests on.

    Attributes:
        outcome: passed, failed, undecided, undefined or cannot tell.
        checks: one per finding.
        reason: the outcome in a sentence.
        policy: the rules.
        looks: how often more was asked for it (`audit.deciding`); 1 for a run as it is.
        run: the folder of the last look, where more than one was taken.
        cannot_judge: probes that cannot judge the model, with the reason.
    """

    outcome: Outcome
    checks: tuple[Check, ...]
    reason: str = ""
    policy: Policy = DEFAULT
    looks: int = 1
    run: str = ""
    cannot_judge: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def exit_code(self) -> int:
        return EXIT[self.outcome]

    @property
    def failing(self) -> list[Check]:
        """The checks that stand in the way of passing, those of probes that cannot judge last."""
        rest = [c for c in self.checks if c.outcome not in ("passed", CANNOT_TELL)]
        return [*rest, *self.of(CANNOT_TELL)]

    def of(self, outcome: Outcome) -> list[Check]:
        """The checks with this outcome."""
        return [c for c in self.checks if c.outcome == outcome]

    def to_pandas(self) -> Any:
        """One row per check (extra `pandas`)."""
        pandas = need("pandas", extra="pandas", what="a data frame of checks")
        return pandas.DataFrame([{**c.as_dict(), "sentence": c.sentence} for c in self.checks])

    def __repr__(self) -> str:
        return f"Gate {self.outcome}: {self.reason}"

    def _repr_html_(self) -> str:
        head = ("finding", "outcome", "value", "interval", "margin", "why")
        order = ("failed", "undecided", "undefined", CANNOT_TELL, "passed")
        rows = [
            (
                c.id,
                c.outcome,
                number(c.value),
                html.interval(c.low, c.high),
                number(c.margin),
                c.reason,
            )
            for c in sorted(self.checks, key=lambda c: order.index(c.outcome))
        ]
        return html.box(
            f"Gate: {self.outcome}", html.paragraph(self.reason), html.table(head, rows)
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand gate --json`)."""
        more: dict[str, Any] = {"looks": self.looks, "run": self.run} if self.looks > 1 else {}
        if self.cannot_judge:
            more["cannot_judge"] = dict(self.cannot_judge)
        return {
            "outcome": self.outcome,
            "passed": self.passed,
            "reason": self.reason,
            "checks": [c.as_dict() for c in self.checks],
            "policy": self.policy.model_dump(mode="json"),
            **more,
        }


def gate(
    run: Run | str | Path,
    limits: Sequence[str] = (),
    *,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    baseline: Run | str | Path | None = None,
    until_decided: str | float | None = None,
    **changes: Any,
) -> Gate:
    """Decide whether a run passes.

    Args:
        run: a finished run, or its folder.
        limits: ID=VALUE: check these findings alone, each to be shown no further from its ideal.
        policy: a policy, a mapping or a TOML file (`audit.policy`); the default one if not given.
        baseline: an earlier run of the same suite: judge what has become worse since.
        until_decided: ask more until all is decided, for this many seconds or a time such as 20m
            (`audit.until`); `model` and `baseline_model` give models that are Python objects, or
            name the servers of the runs where this user has not named them before.
        changes: single settings of the policy (require, error, undecided, allow, margins ...).

    Raises:
        RunError: the run is not finished, or the baseline did not ask the same items.
        SpecError: a limit or margin names no finding, or is not a number.

    >>> gate("runs/mine", require="within-margin", baseline="runs/last")  # doctest: +SKIP
    """
    asking = {k: changes.pop(k) for k in ASKING if k in changes}
    rules = read_policy(policy).with_limits(limits).with_changes(**changes)
    opened = finished(run)
    rules.require_known(opened.findings)
    first = None
    if baseline is not None or rules.baseline is not None:
        first = finished(baseline if baseline is not None else str(rules.baseline))
        rules = rules.with_changes(baseline=str(first.folder))
    if until_decided is not None:
        from evenhand.audit.until import until_decided as look_on

        return look_on(opened, first, rules, until_decided, asking)
    return gate_by(opened, first, rules, unjudging(opened, first))


def gate_by(run: Run, baseline: Run | None, policy: Policy, silent: Mapping[str, str]) -> Gate:
    """Return the outcome of a finished run in which these probes cannot judge the model."""
    checks = checks_of(run, baseline, policy, silent=silent)
    return outcome_of([meant(c, policy) for c in checks], policy, silent)


def unjudging(run: Run, baseline: Run | None = None) -> dict[str, str]:
    """Return the probes that cannot judge the model of a run, or that of its baseline."""
    own = cannot_judge(run.facts)
    if baseline is None:
        return own
    before = cannot_judge(baseline.facts)
    return {**{k: f"in the baseline {v}" for k, v in before.items()}, **own}


def checks_of(
    run: Run,
    baseline: Run | None,
    policy: Policy,
    others: Sequence[str] = (),
    silent: Mapping[str, str] | None = None,
) -> list[Check]:
    """Every check of a run, alone or against a baseline.

    Args:
        others: the probes of tests that were decided before: they count in the correction.
        silent: probes that cannot judge the model, with the reason; by the run's controls if
            not given. Their findings are left out of the correction.
    """
    if silent is None:
        silent = unjudging(run, baseline)
    if baseline is not None:
        from evenhand.audit.baseline import baseline_checks

        return baseline_checks(baseline, run, policy, others, silent)
    known = run.findings
    lost = {f.id for f in undefined(known, audited_name(run.facts))}
    named = set(policy.only)  # what is named is checked, be it a test or not
    chosen = [
        f for f in known if policy.checked(f.id) and (f.counts or f.id in lost or f.id in named)
    ]
    judged = [f for f in chosen if f.probe not in silent]
    within = policy.require == "within-margin"
    made = (
        _within_margin(run, judged, policy, others) if within else _undetected(run, judged, policy)
    )
    by_id = {check.id: check for check in made}
    return [by_id.get(f.id) or withheld(f, policy, silent[f.probe]) for f in chosen]


def withheld(f: Finding, policy: Policy, reason: str) -> Check:
    """Return the check of a finding whose probe cannot judge the model."""
    margin = policy.margin_of(f.id, f.margin)
    return _made(f, CANNOT_TELL, margin, f"{f.probe} cannot judge this model: {reason}")


def finished(run: Run | str | Path) -> Run:
    """A run that can be judged."""
    opened = run if isinstance(run, Run) else Run.open(run)
    if opened.status != "finished":
        raise RunError(
            f"{opened.folder}: the run is {opened.status!r}, and only finished runs are judged. "
            f"Resume it with: evenhand resume {shlex.quote(str(opened.folder))}"
        )
    return opened


def outcome_of(
    checks: Sequence[Check], policy: Policy, silent: Mapping[str, str] | None = None
) -> Gate:
    """The outcome of all checks together.

    Under `undetected` a finding that could not be tested is left out, unless none could be; who
    requires proof gets none from it. Checks of probes that cannot judge (`silent`, with the
    reason) are left out unless there are no others.
    """
    of: dict[str, list[Check]] = {name: [c for c in checks if c.outcome == name] for name in EXIT}
    judged = len(checks) - len(of[CANNOT_TELL])
    tested = judged - len(of["undefined"])
    told = of_labels(silent or {}, (c.id.partition("/")[0] for c in of[CANNOT_TELL]))
    if not checks:
        told = dict(silent or {})
    found: Outcome = "passed"
    if len(of["failed"]) > policy.allow:
        found = "failed"
    elif told and not judged:
        return Gate(CANNOT_TELL, tuple(checks), inconclusive(told), policy, cannot_judge=told)
    elif not tested or (of["undefined"] and policy.require == "within-margin"):
        found = "undefined"
    elif of["undecided"]:
        found = "undecided"
    why = with_left_out(_why(found, of, judged, policy), told)
    return Gate(found, tuple(checks), why, policy, cannot_judge=told)


def _why(found: Outcome, of: Mapping[str, Sequence[Check]], whole: int, policy: Policy) -> str:
    counts = {name: len(rows) for name, rows in of.items()}
    strict, since = policy.require == "within-margin", policy.baseline is not None
    if not whole:
        return "Nothing that counts could be tested on the audited model."
    if found == "failed":
        how = "became worse" if since else "lie beyond" if strict else "reach beyond"
        what = f"{counts['failed']} of {whole} findings {how}"
        return f"{what}{'' if since else ' their margin'}."
    if found == "undefined":
        return f"{counts['undefined']} of {whole} findings could not be tested."
    if found == "undecided":
        need = max((c.more for c in of["undecided"]), default=0)
        ask = f"; about {need:,} more units would settle the one that needs most" if need else ""
        return (
            f"{counts['undecided']} of {whole} findings are shown neither to pass nor to fail{ask}."
        )
    if strict:
        how = "grew by less than" if since else "lie within"
        return (
            f"All {whole} findings are shown to {how.replace('grew', 'have grown')} their margin."
        )
    return (
        f"None of {whole} findings is shown to have become worse by more than matters."
        if since
        else f"None of {whole} findings is detected and reaches beyond its margin."
    )


def doubts(run: Run) -> dict[str, str]:
    """Probes that detect placebos too, and why nothing is believed of them."""
    return {
        label: f"not believed: this probe also found something in {row['detected']:,} of "
        f"{row['tests']:,} placebos, where there is nothing to find"
        for label, row in (run.facts.get("placebos") or {}).items()
        if row["rate"] > BELIEVED
    }


def _undetected(run: Run, findings: Sequence[Finding], policy: Policy) -> list[Check]:
    """Under the default policy."""
    doubted, rate = doubts(run), rate_of(run.facts)
    return [_plain(f, policy, rate, doubted.get(f.probe, "")) for f in findings]


def _plain(f: Finding, policy: Policy, rate: float, doubt: str) -> Check:
    margin = policy.margin_of(f.id, f.margin)
    far = farthest(f)
    found = bool(f.detected) and (policy.error >= rate or not f.q > policy.error)
    if found and not far <= margin:
        why = "detected, and no margin is set"
        if margin == margin:
            why = f"detected, and its interval reaches beyond the margin of {number(margin)}"
        return _made(f, "failed", margin, why)
    withheld = doubt if f.q <= rate else ""  # it would be detected, were the probe believed
    if withheld or not math.isfinite(f.value) or f.detected is None:
        return _made(f, "undefined", margin, withheld or f.reason or "it is not a test")
    why = "not detected"
    if found:
        why = f"detected, but its interval stays within the margin of {number(margin)}"
    return _made(f, "passed", margin, why)


def farthest(f: Finding) -> float:
    """The farthest distance from the ideal that the interval allows.

    >>> farthest(Finding("a/x", "a", "m", 0.2, "", low=-0.1, high=0.5))
    0.5
    """
    ends = (f.value,) if math.isnan(f.low) or math.isnan(f.high) else (f.low, f.high)
    return max(abs(end - f.ideal) for end in ends)


def _made(f: Finding, outcome: Outcome, margin: float, reason: str) -> Check:
    return Check(
        f.id,
        outcome,
        f.value,
        f.low,
        f.high,
        margin,
        reason=reason,
        n=f.n,
        units=f.units,
        level=f.level,
        sentence=f.sentence,
    )


def _within_margin(
    run: Run, findings: Sequence[Finding], policy: Policy, others: Sequence[str]
) -> list[Check]:
    """Two one-sided tests of every finding against its margin."""
    doubted = doubts(run)
    margins = [policy.margin_of(f.id, f.margin) for f in findings]
    cards = [kind_of(run.facts).card(run.facts, f) for f in findings]
    found = [replace(estimated(f), room=room(c, f.value)) for f, c in zip(findings, cards)]
    far = [beyond(e, m) if m == m else NAN for e, m in zip(found, margins)]
    near = [inside(e, m) for e, m in zip(found, margins)]
    labels, tests = [*(f.probe for f in findings), *others], len(findings) + len(others)
    q = over_families(labels, [*far, *(1.0 for _ in others)], policy.error)
    out = []
    for f, e, m, p, shown in zip(findings, found, margins, near, q):
        lack = _lacking(e, m, f.reason)
        check = decided(
            _made(f, "undefined", m, lack),
            p,
            shown,
            policy,
            words=WITHIN,
            doubt=doubted.get(f.probe, ""),
            settle=partial(_settled_by, e, m, policy, tests),
        )
        level = 1 - 2 * policy.error
        ends = e.at(level) if e.error > 0 and e.freedom >= 1 else None
        out.append(replace(check, low=ends.low, high=ends.high, level=level) if ends else check)
    return out


def _settled_by(found: Estimate, margin: float, policy: Policy, tests: int) -> int | None:
    """Units that would decide; to fail, a finding must hold among all that are tested."""
    outside = abs(found.value - found.ideal) > margin
    rate = policy.error / tests if outside else policy.error
    return units_to_settle(found, margin, rate, policy.power)


def _lacking(found: Estimate, margin: float, reason: str) -> str:
    """Why a finding cannot be held against its margin; empty where it can."""
    if margin != margin:
        return "no margin is set: give one in a policy under [margins], or with --limit ID=VALUE"
    if not math.isfinite(found.value):
        return reason or "its value is undefined"
    if found.error == 0 and found.room != found.room:
        return reason or (
            f"all {found.units} units are alike, and nothing says how far off others could be"
        )
    return "" if found.error == found.error else reason or "it has no interval"


def decided(
    check: Check,
    passing: float,
    failing: float,
    policy: Policy,
    *,
    words: tuple[str, str, str],
    doubt: str,
    settle: Callable[[], int | None],
) -> Check:
    """A check from the p of passing and the q of failing; what undefined is, stays.

    `check` comes as undefined, with what it lacks as its reason (nothing: it can be decided).
    Where there is a `doubt`, nothing is decided. `settle` gives the units that would decide.
    """
    if check.reason:
        return check
    if doubt:
        return replace(check, outcome="undecided", reason=doubt)
    margin = number(check.margin)
    if failing <= policy.error:
        return replace(
            check, outcome="failed", reason=f"{words[1]} of {margin} (q {chance(failing)})"
        )
    if passing <= policy.error:
        return replace(
            check, outcome="passed", reason=f"{words[0]} of {margin} (p {chance(passing)})"
        )
    needed = settle()
    what = check.units or "units"
    why = f"{words[2]} of {margin}"
    if needed:
        why += (
            f"; about {needed:,} {what} ({max(1, needed - check.n):,} more) would settle it with "
            f"{100 * policy.power:.0f} % power"
        )
    else:
        why += "; the value lies exactly on the margin, so no number of items would settle it"
    return replace(check, outcome="undecided", needed=needed, reason=why)


def meant(check: Check, policy: Policy) -> Check:
    """What an undecided check counts as by the policy."""
    if check.outcome != "undecided" or policy.undecided == "undecided":
        return check
    why = f"{check.reason}, and undecided counts as {policy.undecided}"
    return replace(check, outcome="failed" if policy.undecided == "fail" else "passed", reason=why)
