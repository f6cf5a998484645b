"""What became of each difference: gone, smaller, same, larger, reversed; or the model is broken.

Both models were asked the same items, none of which the mitigation was fitted or chosen on
(`audit.comparison.paired`). One error rate holds over all tests (`stats.selection`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.audit.comparison.items import matched, shared_labels
from evenhand.audit.comparison.paired import paired
from evenhand.audit.comparison.standing import BROKEN, PAIRED, UNCLEAR, Standing, standings
from evenhand.audit.verdicts import BELIEVED
from evenhand.errors import RunError
from evenhand.probes.base import Probe
from evenhand.probes.registry import make_probe
from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.runs.story import rate_of
from evenhand.runs.wording import count, number
from evenhand.stats.estimate import Estimate, detectable
from evenhand.stats.selection import over_families

GONE, SMALLER, SAME, LARGER, REVERSED = "gone", "smaller", "same", "larger", "reversed"
WORSE = (LARGER, REVERSED)
SAID = {
    GONE: "no longer detected",
    SMALLER: "smaller",
    SAME: "no change detected",
    LARGER: "larger",
    REVERSED: "turned round",
    BROKEN: "says nothing: the asked behaviour is broken",
}

NOW = {
    GONE: ("is no longer detected", "are no longer detected"),
    SMALLER: ("is smaller", "are smaller"),
    LARGER: ("is larger", "are larger"),
    REVERSED: ("is turned round", "are turned round"),
    BROKEN: ("cannot be judged", "cannot be judged"),
    SAME: ("shows no change", "show no change"),
}
"""The same for one and for several, in the order of a sentence."""


@dataclass(frozen=True)
class PairedChange:
    """One difference before and after, and the change between them.

    Attributes:
        place, probe, about: which finding, of which part of the suite, about what.
        before, after, change: estimates on the same items.
        q: of the change, over all tests.
        was, still, moved: whether the difference is detected before and after, and its change.
        verdict: gone, smaller, same, larger, reversed or broken.
    """

    place: str
    probe: str
    about: str
    before: Estimate
    after: Estimate
    change: Estimate
    units: str = ""
    over: tuple[str, ...] = ()
    q: float = float("nan")
    was: bool = False
    still: bool = False
    moved: bool = False
    verdict: str = SAME

    @property
    def sentence(self) -> str:
        b, a, d = self.before, self.after, self.change
        return (
            f"{self.about}: {number(b.value)} before, {number(a.value)} after (change "
            f"{number(d.value)}, 95 % interval {number(d.low)} to {number(d.high)}): "
            f"{SAID[self.verdict]}."
        )

    def as_row(self) -> dict[str, Any]:
        """Return plain values, for tables and JSON."""
        return {
            "finding": self.place,
            "probe": self.probe,
            "about": self.about,
            "before": self.before.value,
            "after": self.after.value,
            "change": self.change.value,
            "low": self.change.low,
            "high": self.change.high,
            "p": self.change.p,
            "q": self.q,
            "n": self.change.units,
            "units": self.units,
            "detected_before": self.was,
            "detected_after": self.still,
            "detected_change": self.moved,
            "verdict": self.verdict,
            "reason": self.change.reason,
        }

    def finding(self, label: str, model: str) -> Finding:
        return claim(
            f"{label}/{self.place}",
            "change",
            self.change,
            sentence=self.sentence,
            otherwise="",
            units=self.units,
            over=self.over,
            q=self.q,
            attribute=self.about,
            model=model,
            detected=self.moved if self.q == self.q else None,
            details={"verdict": self.verdict},
            method=PAIRED,
        )


@dataclass(frozen=True)
class ChangeReport:
    """Every test, what the model was asked to do, and why something was not judged."""

    tests: tuple[PairedChange, ...] = ()
    stands: tuple[Standing, ...] = ()
    reason: str = ""
    left_out: tuple[str, ...] = field(default=())

    @property
    def standing(self) -> str:
        """The worst verdict on the asked behaviours of the model."""
        found = [s.verdict for s in self.stands]
        if not found:
            return "not measured"
        return next((v for v in (BROKEN, UNCLEAR) if v in found), found[0])

    @property
    def verdict(self) -> str:
        """The verdict on all tests, which is that of the worst."""
        if self.standing == BROKEN:
            return BROKEN
        tally = self.tally()
        worst = next((v for v in (BROKEN, REVERSED, LARGER) if tally[v]), None)
        if worst or not (tally[GONE] or tally[SMALLER]):
            return worst or SAME
        return GONE if tally[GONE] == sum(t.was for t in self.tests) else SMALLER

    def tally(self) -> Counter[str]:
        return Counter(t.verdict for t in self.tests)

    def with_tasks(self, tasks: Sequence[Standing]) -> ChangeReport:
        return replace(self, stands=(*tasks, *self.stands))

    @property
    def headline(self) -> str:
        """The answer to "does it lower the measured gap?", which a broken model does not."""
        broken = [s.sentence for s in self.stands if s.verdict == BROKEN]
        if broken:
            worst = sorted(self.tests, key=lambda t: t.change.p)
            lost = [t.sentence for t in worst if t.verdict in WORSE]
            return (
                "Broken: the model no longer does what it is asked to do, so a gap that it no "
                f"longer shows is not a success. {' '.join([*broken, *lost[:1]])}"
            )
        if not self.tests:
            return f"Not judged: {self.reason or 'there was no difference to test'}."
        tally, was = self.tally(), sum(t.was for t in self.tests)
        better, worse = tally[GONE] + tally[SMALLER], sum(tally[v] for v in WORSE)
        if not was and not better and not worse:
            return "Not shown: no difference was detected before or after, and none changed."
        if better and self.standing != "stands":
            why = "was not measured" if self.standing == "not measured" else "is not shown"
            head = f"Not shown, since whether the model still does what it is asked to do {why}"
        elif better and worse:
            head = "Mixed"
        else:
            head = "No" if not better else "In part" if was > better else "Yes"
        parts = [f"{tally[v]} {NOW[v][tally[v] != 1]}" for v in NOW if tally[v]]
        some = was if was else "none"
        return (
            f"{head}: of {count(len(self.tests), 'comparison')} {some} showed a difference before. "
            f"Now {', '.join(parts)}."
        )


def judge_runs(before: Run, after: Run, seen: Collection[str] = ()) -> ChangeReport:
    """Compare two runs of one suite, test by test.

    Args:
        before, after: audits with the same items.
        seen: terms that the mitigation was fitted on; items with one of them are left out.
    """
    tests: list[PairedChange] = []
    stands: list[Standing] = []
    reasons: list[str] = []
    left: set[str] = set()
    for label in shared_labels(before, after):
        entry = before.facts["probes"][label]
        probe = make_probe(entry["probe"], entry["settings"])
        try:
            tables = matched(before, after, label)
        except RunError as error:
            reasons.append(str(error))
            continue
        tables, out = unseen(tables, probe, seen)
        left |= out
        tests += _tests(before, after, label, probe, tables)
        stands += standings(label, probe, tables)
    rates = [run.facts.get("placebos", {}) for run in (before, after)]
    doubted = {k for known in rates for k, row in known.items() if row["rate"] > BELIEVED}
    broken = {s.probe for s in stands if s.verdict == BROKEN}
    made = decided(tests, rate_of(before.facts), doubted, broken)
    return ChangeReport(tuple(made), tuple(stands), " ".join(reasons), tuple(sorted(left)))


def unseen(
    tables: tuple[pa.Table, pa.Table], probe: Probe, seen: Collection[str]
) -> tuple[tuple[pa.Table, pa.Table], set[str]]:
    """Remove items with terms that the mitigation was fitted on; return tables and terms."""
    out: set[str] = set()
    keep = np.ones(tables[0].num_rows, bool)
    for name in probe.item_shape.clusters if probe.item_shape and seen else ():
        values = tables[0].column(name).to_pylist() if name in tables[0].column_names else ()
        hits = np.asarray([v in seen for v in values], bool)
        out |= {str(v) for v, hit in zip(values, hits) if hit}
        keep &= ~hits if len(hits) else True
    if not out:
        return tables, out
    mask = pa.array(keep)
    return (tables[0].filter(mask), tables[1].filter(mask)), out


def _tests(
    before: Run, after: Run, label: str, probe: Probe, tables: tuple[pa.Table, pa.Table]
) -> Iterator[PairedChange]:
    for t in paired(before, after, label, probe, tables):
        numbers = t.before, t.after, t.change
        yield PairedChange(t.old.id, label, t.about, *numbers, t.old.units, t.old.generalises_over)


def decided(
    tests: Sequence[PairedChange], rate: float, doubted: Collection[str], broken: Collection[str]
) -> list[PairedChange]:
    """Return the tests with q and verdict; each probe is a family of tests, as in an audit.

    `doubted` are probes that detect placebos too, `broken` those whose asked behaviour is.
    """
    labels = [t.probe for t in tests]
    q = {
        name: over_families(labels, [getattr(t, name).p for t in tests], rate)
        for name in ("before", "after", "change")
    }
    out = []
    for i, test in enumerate(tests):
        believed = test.probe not in doubted
        was, still, moved = (believed and q[n][i] <= rate for n in ("before", "after", "change"))
        verdict = _verdict(test, was, still, moved)
        if test.probe in broken and verdict not in WORSE:  # whatever else it says, this it does
            verdict = BROKEN
        alike = labels.count(test.probe) * len(set(labels))
        seen = detectable(test.change.error, test.change.freedom, alike, rate)
        out.append(
            replace(
                test,
                q=q["change"][i],
                was=was,
                still=still,
                moved=moved,
                verdict=verdict,
                change=replace(test.change, detectable=seen),
            )
        )
    return out


def _verdict(test: PairedChange, was: bool, still: bool, moved: bool) -> str:
    """Return the verdict on one difference.

    A change that is not detected is none. One that was there is gone when nothing is detected any
    more, reversed when it is detected on the other side; one that was not is larger or smaller.
    """
    before, after = test.before.value, test.after.value
    if not moved:
        return SAME
    if not was:
        return LARGER if abs(after) > abs(before) else SMALLER
    if test.change.value * before > 0:
        return LARGER
    return GONE if not still else REVERSED if after * before < 0 else SMALLER
