"""Better, worse, same or cannot tell: what became of the harm behind every finding.

A positive distance from the ideal harms one side, a negative one the other, so harm can grow on
either (`stats.equivalence`). With the finding's margin d and paired estimates on the same items:

    worse         harm is shown to have grown, and not shown to have grown by less than d
    better        the same with before and after exchanged
    same          shown to have grown by less than d, and to have fallen by less than d
    cannot tell   otherwise, with how many units would tell

Claims of growth and fall are corrected over the whole run, so that two models without any
difference are called so in all but 5 of 100 comparisons; "same" is wrong in at most 5 of 100.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.audit.comparison.items import matched, shared_labels
from evenhand.audit.comparison.paired import Paired, paired
from evenhand.audit.comparison.standing import Standing, standings
from evenhand.audit.estimates import room
from evenhand.audit.marking import one_way
from evenhand.audit.policy import Policy
from evenhand.errors import RunError, SpecError
from evenhand.probes.base import Probe
from evenhand.probes.registry import make_probe, probe_of
from evenhand.runs.card import MetricCard
from evenhand.runs.compared import BETTER, SAME, UNCLEAR, WORSE, Decision
from evenhand.runs.record import Run
from evenhand.runs.wording import number, subject
from evenhand.stats.equivalence import mirrored, not_worse, units_to_settle, worse
from evenhand.stats.estimate import detectable
from evenhand.stats.selection import over_families


@dataclass(frozen=True)
class Decided:
    """What became of every finding, whether the models still do what they are asked, and why
    probes could not be paired (by label)."""

    decisions: tuple[Decision, ...]
    stands: tuple[Standing, ...]
    reasons: dict[str, str]


def decide(
    before: Run,
    after: Run,
    policy: Policy | None = None,
    others: Sequence[str] = (),
    silent: Mapping[str, str] | None = None,
) -> Decided:
    """Two runs of one suite; margins and error rate are the policy's.

    `others` are the probes of tests that were decided before: they count in the correction.
    `silent` are probes that cannot judge one of the models, with the reason: what they measured is
    listed as "cannot tell" and is left out of the correction.
    """
    rules = policy or Policy()
    tests: list[Paired] = []
    stands: list[Standing] = []
    reasons: dict[str, str] = {}
    for label in shared_labels(before, after):
        entry = before.facts["probes"][label]
        try:
            probe = make_probe(entry["probe"], entry["settings"])
        except SpecError:  # a measure of no probe, or a probe that is not installed
            probe = Probe()
        try:
            tables = matched(before, after, label)
        except RunError as error:
            reasons[label] = str(error)
            continue
        tests += [t for t in paired(before, after, label, probe, tables) if rules.checked(t.new.id)]
        with contextlib.suppress(KeyError):  # items of an older version
            stands += standings(label, probe, tables)
    mute = silent or {}
    heard = [t for t in tests if t.new.probe not in mute]
    made = {d.finding: d for d in decisions(heard, rules, before, others)}
    left_out = [t for t in tests if t.new.probe in mute]
    made |= {d.finding: d for d in decisions(left_out, rules, before, silent=mute)}
    return Decided(tuple(made[t.new.id] for t in tests), tuple(stands), reasons)


def decisions(
    tests: Sequence[Paired],
    policy: Policy,
    run: Run,
    others: Sequence[str] = (),
    silent: Mapping[str, str] | None = None,
) -> Iterator[Decision]:
    """The verdict of every test; `run` knows the cards, `silent` the probes that cannot judge."""
    cards = [probe_of(run.facts, t.new.probe).card(t.new.metric) for t in tests]
    tests = [_bounded(t, c) for t, c in zip(tests, cards)]
    sided = [one_way(c) for c in cards]
    labels, ones = [*(t.new.probe for t in tests), *others], [1.0] * len(others)
    grown = [worse(t.after, t.change, one_sided=s) for t, s in zip(tests, sided)]
    fallen = [worse(t.before, mirrored(t.change), one_sided=s) for t, s in zip(tests, sided)]
    q_grown, q_fallen = (over_families(labels, [*p, *ones], policy.error) for p in (grown, fallen))
    alike = {label: n * len(set(labels)) for label, n in Counter(labels).items()}
    for k, (t, card) in enumerate(zip(tests, cards)):
        margin = policy.margin_of(t.new.id, t.new.margin)
        little = not_worse(t.after, t.change, margin, one_sided=sided[k])
        less = not_worse(t.before, mirrored(t.change), margin, one_sided=sided[k])
        rate = policy.error
        verdict, q = UNCLEAR, min(q_grown[k], q_fallen[k])
        if q_grown[k] <= rate and not little <= rate:
            verdict, q = WORSE, q_grown[k]
        elif q_fallen[k] <= rate and not less <= rate:
            verdict, q = BETTER, q_fallen[k]
        elif little <= rate and less <= rate:
            verdict = SAME
        mute = (silent or {}).get(t.new.probe, "")
        if mute:
            verdict = UNCLEAR
        ask_more = verdict == UNCLEAR and not mute
        needed = _needed(t, margin, policy, len(labels)) if ask_more else None
        sentence = _sentence(t, card, margin, verdict, needed)
        mute = mute and f"{t.new.probe} cannot judge: {mute}"
        yield Decision(
            t.new.id,
            t.new.probe,
            verdict,
            t.before.value,
            t.after.value,
            t.change.value,
            low=t.change.low,
            high=t.change.high,
            margin=margin,
            p=min(grown[k], fallen[k]),
            q=q,
            p_within=little,
            detectable=detectable(t.change.error, t.change.freedom, alike[t.new.probe], rate),
            n=t.change.units,
            units=t.new.units,
            needed=needed,
            whom=_harm(t, verdict).partition(":")[0],
            reason=mute or t.change.reason,
            sentence=f"{sentence} Inconclusive, since {mute}." if mute else sentence,
        )


def _bounded(t: Paired, card: MetricCard) -> Paired:
    """With how far a unit could lie from those asked, were they all alike."""
    before, after = (replace(e, room=room(card, card.ideal + e.value)) for e in (t.before, t.after))
    step = t.change.room if t.change.room == t.change.room else card.high - card.low
    step = step if math.isfinite(step) else math.nan
    return replace(t, before=before, after=after, change=replace(t.change, room=step))


def _needed(t: Paired, margin: float, policy: Policy, tests: int) -> int | None:
    """Units that would tell: growth or fall where it is larger than the margin, else "same"."""
    if not margin > 0 or abs(t.change.value) > margin:
        return units_to_settle(t.change, 0.0, policy.error / 2 / tests, policy.power)
    return units_to_settle(t.change, margin, policy.error, policy.power)


def _harm(t: Paired, verdict: str) -> str:
    """Who is worse off by what grew (in the later run) or fell (in the first)."""
    found = t.old if verdict == BETTER else t.new
    return found.harm if verdict in (WORSE, BETTER) else ""


def _sentence(t: Paired, card: MetricCard, margin: float, verdict: str, needed: int | None) -> str:
    """The verdict, for whom, and how much on the scale that can be pictured and in numbers."""
    harm = _harm(t, verdict)
    shown = t.before if verdict == BETTER else t.after
    way = math.copysign(1.0, shown.value)  # sizes as seen from the side that is worse off
    seen = [card.scale.format(size=card.pictured(way * e.value)) for e in (t.before, t.after)]
    size = f"{card.name} {number(t.before.value, sign=True)} to {number(t.after.value, sign=True)}"
    if math.isfinite(t.change.low):
        ends = f"{number(t.change.low)} to {number(t.change.high)}"
        size += f", change {number(t.change.value, sign=True)}, 95 % interval {ends}"
    size += f"; margin {number(margin)}" if margin == margin else ""
    head = f"{verdict.capitalize()}{f' for {harm}' if harm else ''}"
    told = f"{head}. {subject(t.new, card)}: {seen[0]} before, {seen[1]} after ({size})."
    if needed and needed > t.change.units:
        told += f" About {needed:,} {t.new.units or 'units'} would tell."
    return told
