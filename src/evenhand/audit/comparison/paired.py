"""Every test of two runs, before and after on the same items.

Where the probe's estimates are linear in its items, the change is estimated on the difference of
the items, pair by pair (`Probe.estimates`); elsewhere from the two findings, with the largest error
that their difference can have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.audit.comparison.items import own_findings
from evenhand.audit.estimates import estimated
from evenhand.probes.base import Probe
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run
from evenhand.stats.estimate import Estimate, estimate


@dataclass(frozen=True)
class Paired:
    """One test in both runs: the findings, and estimates as distances from the ideal."""

    old: Finding
    new: Finding
    about: str
    before: Estimate
    after: Estimate
    change: Estimate


def difference(tables: Sequence[pa.Table]) -> pa.Table:
    """The second table's numbers less the first's, item by item."""
    one, two = tables
    for k, name in enumerate(one.column_names):
        if pa.types.is_floating(one.schema.field(name).type):
            one = one.set_column(k, name, pc.subtract(two.column(name), one.column(name)))
    return one


def step(tables: Sequence[pa.Table]) -> float:
    """The smallest change that single items of two runs could have shown; NaN where none varies.

    Answers that are counted change by whole answers, scores with many digits by next to nothing:
    that none of twenty answers changed leaves more open than that no digit of a score did. Of
    several columns of numbers the coarsest counts.

    >>> step([pa.table({"yes": [0.0, 1.0, 1.0]}), pa.table({"yes": [0.0, 0.5, 1.0]})])
    0.5
    """
    coarse: list[float] = []
    for name in tables[0].column_names:
        if pa.types.is_floating(tables[0].schema.field(name).type):
            both = np.concatenate([np.asarray(t.column(name), np.float64) for t in tables])
            gaps = np.diff(np.unique(np.round(both[np.isfinite(both)], 9)))
            coarse += [float(gaps.min())] if len(gaps) else []
    return max(coarse, default=math.nan)


def paired(
    before: Run, after: Run, label: str, probe: Probe, tables: tuple[pa.Table, pa.Table]
) -> Iterator[Paired]:
    """One per finding that is a test of people, on both models."""
    found = [own_findings(run) for run in (before, after)]
    named = Counter(f.attribute for f in found[0].values() if f.probe == label and f.p == f.p)
    try:
        known = [probe.estimates(t) for t in (*tables, difference(tables))]
    except KeyError:  # items of an older version, or of terms that are no longer listed
        known = [{}, {}, {}]
    for place, old in found[0].items():
        new = found[1].get(place)
        if old.probe != label or new is None or old.placebo or old.control:
            continue
        end = place.removeprefix(f"{label}/")
        both = all(end in some for some in known)
        # A run whose answers never vary has no p of its own; the change may have one all the same.
        if not (_is_test(old) or (both and _is_test(new))):
            continue
        if both:
            one, two, change = (some[end] for some in known)
            if change.error == 0:
                change = replace(change, room=step(tables))
        else:
            one, two = (_distance(f) for f in (old, new))
            change = apart(one, two)
        about = f"{old.attribute if named[old.attribute] == 1 else end} ({label})"
        yield Paired(old, new, about, one, two, change)


def _is_test(f: Finding) -> bool:
    return f.detected is not None and f.p == f.p


def _distance(f: Finding) -> Estimate:
    e = estimated(f)
    shift = f.ideal
    return replace(e, value=e.value - shift, low=e.low - shift, high=e.high - shift, ideal=0.0)


def apart(one: Estimate, two: Estimate) -> Estimate:
    """The difference of two estimates, whatever their correlation: errors add up at most.

    >>> found = apart(estimate(0.5, 0.03, 20, units=21), estimate(0.1, 0.04, 30, units=31))
    >>> round(found.value, 2), round(found.error, 2), found.freedom
    (-0.4, 0.07, 20)
    """
    freedom, units = min(one.freedom, two.freedom), min(one.units, two.units)
    return estimate(two.value - one.value, one.error + two.error, freedom, units=units)
