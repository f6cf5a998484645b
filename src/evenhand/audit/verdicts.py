"""Verdicts over a whole suite: one error rate, intervals that know they were picked, placebos.

A probe gives estimates; what may be called detected is decided here, once, over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from evenhand.probes.base import Placebo
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate, detectable_t, stated
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.selection import Family, hierarchical, picked_level
from evenhand.stats.shrinkage import shrunken

BELIEVED = 0.07
"""A probe whose placebos are "detected" more often than this is not believed."""


@dataclass(frozen=True)
class PlaceboRate:
    """How often comparisons that must find nothing found something."""

    tests: int
    detected: int
    reason: str = ""
    """Why there could be none."""

    @property
    def rate(self) -> float:
        return self.detected / self.tests if self.tests else 0.0

    @property
    def believed(self) -> bool:
        return self.rate <= BELIEVED

    def as_dict(self) -> dict[str, float | int | str]:
        told = {"reason": self.reason} if self.reason else {}
        return {"tests": self.tests, "detected": self.detected, "rate": self.rate, **told}


def placebo_rate(placebos: Iterable[Placebo]) -> PlaceboRate:
    """All placebos of a probe together."""
    rows = list(placebos)
    tests = sum(p.tests for p in rows)
    why = "" if tests else "; ".join(dict.fromkeys(f"{p.what}: {p.reason}" for p in rows))
    return PlaceboRate(tests, sum(p.alarms for p in rows), why)


def decided(
    findings: Sequence[Finding],
    audited: str,
    rate: float,
    placebos: Mapping[str, PlaceboRate] | None = None,
    unlisted: Mapping[str, Sequence[float]] | None = None,
) -> list[Finding]:
    """The findings of a suite with q, verdict, interval and sentence.

    Tests about the audited model that are no control and no placebo form one family per probe,
    together with the p values of tests that it made and did not list. What follows a paper's
    released rules keeps its own q, and a probe that gave a verdict keeps that. Other tests
    (controls, other models) are corrected within their probe and model.
    """
    places = _families(findings, audited)
    own = {k: v for k, v in places.items() if k[1] == "counted"}
    rest = unlisted or {}
    families = hierarchical(
        [[*(findings[i].p for i in at), *rest.get(label, ())] for (label, _), at in own.items()],
        rate,
    )
    kept, whole = sum(f.kept for f in families), sum(f.simes == f.simes for f in families)
    share = kept / max(1, whole)
    out = list(findings)
    for (label, _), family in zip(own, families):
        rows = own[label, "counted"]
        picked = int((family.q <= rate).sum())
        level = picked_level(picked, _tests(family), share, rate)
        for i, q in zip(rows, family.q):
            line = rate * (kept + (not family.kept)) / max(1, whole) / _tests(family)
            found = _limited(findings[i], rate / _tests(family), line)
            out[i] = _out_of_reach(_judged(found, float(q), rate, level), line)
    for key, rows in places.items():
        if key in own:
            continue
        published = key[1] == "as published"
        corrected = benjamini_hochberg([findings[i].p for i in rows])
        for i, q in zip(rows, corrected):
            out[i] = _judged(findings[i], findings[i].q if published else float(q), rate, 1 - rate)
    believed = placebos or {}
    told = [_worded(_withheld(f, believed.get(f.probe))) for f in out]
    for (label, _), rows in own.items():
        _resize(told, rows, rest.get(label, ()))
    return told


def _families(findings: Sequence[Finding], audited: str) -> dict[tuple[str, str], list[int]]:
    """Places of the tests of each family, by probe and by what kind of family it is."""
    found: dict[tuple[str, str], list[int]] = {}
    for i, f in enumerate(findings):
        if (f.p != f.p and f.q != f.q) or f.detected is not None:
            continue
        if f.as_published:
            kind = "as published"
        elif f.model == audited and not f.control and not f.placebo:
            kind = "counted"
        else:
            kind = f"{f.model} control {f.control} placebo {f.placebo}"
        found.setdefault((f.probe, kind), []).append(i)
    return found


def _limited(finding: Finding, alone: float, line: float) -> Finding:
    """What could be seen, at the line that the suite draws instead of that of the probe alone."""
    if not (finding.freedom >= 1 and finding.detectable > 0) or line == alone:
        return finding
    more = _needed(finding.freedom, line) / _needed(finding.freedom, alone)
    return replace(finding, detectable=stated(finding.detectable * more))


_needed = cache(detectable_t)


def _out_of_reach(finding: Finding, line: float) -> Finding:
    """Units that all agree without any spread can show no p below 2 ** (1 - n)."""
    if finding.detected or finding.error != 0 or finding.value == finding.ideal:
        return finding
    least = math.ceil(1 - math.log2(line))
    few = "so few" if finding.n < least else "the few of one part"
    need = f"{least} are needed" if finding.n < least else f"{least} are needed in each part"
    why = (
        f"all {finding.n} {finding.units or 'units'} agree, and {few} cannot reach significance "
        f"(p is at least {finding.p:.2g}): {need}"
    )
    return replace(finding, reason=finding.reason or why)


def _resize(told: list[Finding], rows: Sequence[int], unlisted: Sequence[float]) -> None:
    """Detected findings of one family get the size that knows it was picked, scale by scale."""
    scales: dict[str, list[int]] = {}
    for i in rows:
        scales.setdefault(told[i].metric, []).append(i)
    for at in scales.values():
        if not any(told[i].detected for i in at):
            continue
        # Tests that are not listed are of the scale that has most of those listed.
        more = unlisted if len(at) == max(map(len, scales.values())) else ()
        sizes = shrunken([told[i].value - told[i].ideal for i in at], [told[i].p for i in at], more)
        for i, size in zip(at, sizes):
            if told[i].detected:
                told[i] = _sized(told[i], told[i].ideal + float(size))


def _sized(finding: Finding, size: float) -> Finding:
    """The shrunken size, with a word of caution where only a lucky draw is seen at all."""
    far = abs(finding.value - finding.ideal)
    doubt = ""
    if far < finding.detectable:
        doubt = (
            f"Sizes of findings near the limit of detection tend to be overstated: a true size of "
            f"{stated(far, 2):g} would be seen in fewer than 80 of 100 such runs "
            f"({stated(finding.detectable, 2):g} in 80)."
        )
    return replace(finding, shrunken=stated(size), caution=doubt)


def _tests(family: Family) -> int:
    return int((family.q == family.q).sum())


def _judged(finding: Finding, q: float, rate: float, level: float) -> Finding:
    """A finding with its verdict; the interval of a picked one is at the picked level."""
    verdict = bool(q <= rate) if q == q else None
    changed = replace(finding, q=q, detected=verdict)
    if verdict and finding.error == finding.error and finding.error > 0:
        shown = Estimate(finding.value, finding.error, finding.freedom).at(level)
        changed = replace(changed, low=shown.low, high=shown.high, level=level)
    return changed


def _worded(finding: Finding) -> Finding:
    """The sentence that fits the verdict."""
    if finding.detected is False and not finding.otherwise:
        return replace(finding, harm="", examples=())
    if finding.otherwise and finding.detected is not True:
        told = replace(finding, sentence=finding.otherwise, otherwise="", harm="", examples=())
        return _untested(told)
    return _untested(replace(finding, otherwise=""))


def _untested(finding: Finding) -> Finding:
    """What was not tested says so: that nothing was detected would sound like a result."""
    tried = finding.detected is not None or finding.p == finding.p or finding.low == finding.low
    if tried or not finding.reason or finding.reason in finding.sentence:
        return finding
    said = f"{finding.sentence.rstrip('.')} (not tested: {finding.reason})."
    return replace(finding, sentence=said, harm="", examples=())


def _withheld(finding: Finding, placebo: PlaceboRate | None) -> Finding:
    """No "detected" from a probe that detects placebos too."""
    if placebo is None or placebo.believed or not finding.detected:
        return finding
    why = (
        f"not believed: this probe also found something in {placebo.detected:,} of "
        f"{placebo.tests:,} placebos, where there is nothing to find"
    )
    return replace(finding, detected=False, reason=why)
