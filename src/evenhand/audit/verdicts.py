"""Verdicts over a whole suite: one error rate, intervals that know they were picked, placebos.

A probe gives estimates; what may be called detected is decided here, once, over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.probes.base import Placebo
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.selection import Family, hierarchical, picked_level

BELIEVED = 0.07
"""A probe whose placebos are "detected" more often than this is not believed."""


@dataclass(frozen=True)
class PlaceboRate:
    """How often comparisons that must find nothing found something."""

    tests: int
    detected: int

    @property
    def rate(self) -> float:
        return self.detected / self.tests if self.tests else 0.0

    @property
    def believed(self) -> bool:
        return self.rate <= BELIEVED

    def as_dict(self) -> dict[str, float | int]:
        return {"tests": self.tests, "detected": self.detected, "rate": self.rate}


def placebo_rate(placebos: Iterable[Placebo]) -> PlaceboRate:
    """All placebos of a probe together."""
    rows = list(placebos)
    return PlaceboRate(sum(p.tests for p in rows), sum(p.alarms for p in rows))


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
    share = sum(f.kept for f in families) / max(1, sum(f.simes == f.simes for f in families))
    out = list(findings)
    for (label, _), family in zip(own, families):
        rows = own[label, "counted"]
        picked = int((family.q <= rate).sum())
        level = picked_level(picked, _tests(family), share, rate)
        for i, q in zip(rows, family.q):
            out[i] = _judged(findings[i], float(q), rate, level)
    for key, rows in places.items():
        if key in own:
            continue
        published = key[1] == "as published"
        corrected = benjamini_hochberg([findings[i].p for i in rows])
        for i, q in zip(rows, corrected):
            out[i] = _judged(findings[i], findings[i].q if published else float(q), rate, 1 - rate)
    believed = placebos or {}
    return [_withheld(f, believed.get(f.probe)) for f in out]


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


def _tests(family: Family) -> int:
    return int((family.q == family.q).sum())


def _judged(finding: Finding, q: float, rate: float, level: float) -> Finding:
    """A finding with its verdict; the interval of a picked one is at the picked level."""
    verdict = bool(q <= rate) if q == q else None
    changed = replace(finding, q=q, detected=verdict)
    if verdict and finding.error == finding.error and finding.error > 0:
        shown = Estimate(finding.value, finding.error, finding.freedom).at(level)
        changed = replace(changed, low=shown.low, high=shown.high, level=level)
    return _worded(changed)


def _worded(finding: Finding) -> Finding:
    """The sentence that fits the verdict."""
    if finding.otherwise and finding.detected is not True:
        return replace(finding, sentence=finding.otherwise, otherwise="", harm="")
    return replace(finding, otherwise="")


def _withheld(finding: Finding, placebo: PlaceboRate | None) -> Finding:
    """No "detected" from a probe that detects placebos too."""
    if placebo is None or placebo.believed or not finding.detected:
        return finding
    why = (
        f"not believed: this probe also found something in {placebo.detected:,} of "
        f"{placebo.tests:,} placebos, where there is nothing to find"
    )
    return replace(finding, detected=False, reason=why, harm="")
