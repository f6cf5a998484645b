"""How many names, questions, items a run needs, from a pilot: units, time and money.

Units are what a finding generalises over (pairs of names, questions, texts). The variance of a
metric's findings is pooled over the pilot; the number of units is that at which a true difference
of the margin's size is detected with the stated power after correction for all tests of the run
(or, `within`, at which a model without a difference is shown to lie within the margin). That the
pilot knows the variance only so well is part of the number (`stats.equivalence.planned_units`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.audit.auditing import Audit, plan_audit
from evenhand.audit.comparison.items import FEWEST
from evenhand.audit.estimates import estimated
from evenhand.audit.gate import finished
from evenhand.audit.planning import fit_to_budget, seconds
from evenhand.audit.policy import Policy
from evenhand.audit.suites import Suite, parse_suite
from evenhand.errors import SpecError
from evenhand.models.loading.resolver import DEFAULT_MODEL
from evenhand.models.protocol import Model, with_options
from evenhand.probes.base import Probe
from evenhand.probes.registry import make_probe
from evenhand.runs.counting import counted
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.record import Run
from evenhand.stats.equivalence import planned_units
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor

PILOT = "2m"
MOST_ROWS = 4_000
"""Items from which the shares of the variance are estimated."""


@dataclass(frozen=True)
class Planned:
    """What one metric of a probe needs.

    Attributes:
        probe, metric: which.
        margin: the size that is to be seen (or not to be exceeded).
        units: what is sampled.
        asked, needed: units of the pilot, and of the run that is planned; None: no pilot variance.
        items: how many items that is.
        seconds, cost: of that many items, as the pilot took them; cost None where none is known.
        levels: how many levels each sampled column has in the pilot and needs.
        varies: share of the items' variance by sampled column, the rest under "rest".
        detectable: what the pilot itself would have seen.
        reason: why there is no number, or what stands in its way.
    """

    probe: str
    metric: str
    margin: float
    units: str
    asked: int
    needed: int | None
    items: int | None = None
    seconds: float | None = None
    cost: float | None = None
    levels: Mapping[str, tuple[int, int]] | None = None
    varies: Mapping[str, float] | None = None
    detectable: float = NAN
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    """What a run needs, metric by metric, and the suite that asks it."""

    rows: tuple[Planned, ...]
    suite: Suite
    pilot: str
    power: float
    error: float

    @property
    def seconds(self) -> float:
        """Of the planned suite: every probe at the size its neediest metric asks for."""
        return sum(max(r.seconds or 0.0 for r in rows) for rows in self._by_probe())

    @property
    def cost(self) -> float | None:
        """Money, where the pilot knows what it paid."""
        known = [
            max((r.cost for r in rows if r.cost is not None), default=None)
            for rows in self._by_probe()
        ]
        paid = [c for c in known if c is not None]
        return sum(paid) if paid else None

    def _by_probe(self) -> list[list[Planned]]:
        labels = dict.fromkeys(r.probe for r in self.rows)
        return [[r for r in self.rows if r.probe == label] for label in labels]

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand plan --json`)."""
        return {
            "pilot": self.pilot,
            "power": self.power,
            "error": self.error,
            "seconds": self.seconds,
            "cost": self.cost,
            "rows": [vars(r) for r in self.rows],
            "suite": self.suite.as_dict(),
        }


def plan(
    model: str | Model | Run = DEFAULT_MODEL,
    *,
    margin: float | Mapping[str, float] | None = None,
    power: float = 0.8,
    error: float = 0.05,
    within: bool = False,
    suite: str | Path | Suite | None = None,
    budget: str = PILOT,
    **given: Any,
) -> Plan:
    """How many units and items a run needs, and what they cost.

    Args:
        model: what to audit, of which a pilot is run; or a finished run, which is the pilot.
        margin: the size that is to be seen: one for all, or by finding or wildcard; by default
            each metric's own.
        power: how likely it is to be seen.
        error: the error rate of the run that is planned.
        within: plan to show that a model without a difference lies within the margin.
        suite, budget, given: the pilot's suite and time, and other arguments of `audit`.

    >>> plan("runs/pilot", margin=0.05).rows[0].needed  # doctest: +SKIP
    """
    run = _pilot(model, suite, budget, given)
    margins = {"*": float(margin)} if isinstance(margin, int | float) else dict(margin or {})
    rules = Policy(error=error, power=power, margins=margins)
    work = run.facts["work"]["suite"]
    asked = parse_suite(work, str(run.folder), work["name"])
    rows = list(_rows(run, rules, within))
    return Plan(tuple(rows), _grown(asked, rows), str(run.folder), power, error)


def margins_of(given: Sequence[str]) -> dict[str, float]:
    """Margins as the command line has them: VALUE for all, or PATTERN=VALUE.

    >>> margins_of(["0.05", "association/*=0.5"])
    {'*': 0.05, 'association/*': 0.5}
    """
    found = {}
    for text in given:
        pattern, _, value = text.rpartition("=")
        try:
            found[pattern or "*"] = float(value)
        except ValueError:
            raise SpecError(
                f"--margin {text!r}: expected a number, or PATTERN=NUMBER such as "
                f"'underspecified/*=0.05'."
            ) from None
    return found


def _pilot(model: Any, suite: Any, budget: str, given: dict[str, Any]) -> Run:
    """The run itself, or a pilot that fits the time."""
    if isinstance(model, Run) or (isinstance(model, str) and (Path(model) / "run.json").is_file()):
        return finished(model)
    named = ("out", "seed", "kind", "language", "progress", "options")
    known = {k: given.pop(k) for k in named if k in given}
    known["options"] = with_options(known.get("options"), given)
    job: Audit = plan_audit(model, suite, **known)
    list(fit_to_budget(job, seconds(budget)))
    return job.run()


def _rows(run: Run, rules: Policy, within: bool) -> list[Planned]:
    own = counted(run.findings)
    families = len({f.probe for f in own})
    out = []
    for label in dict.fromkeys(f.probe for f in own):
        entry = run.facts["probes"][label]
        tests = sum(f.probe == label for f in own)
        tests += int((entry.get("summary") or {}).get("tests_not_listed") or 0)
        alpha = rules.error if within else rules.error / (tests * families)
        metrics: dict[tuple[str, str], list[Finding]] = {}
        for f in own:
            if f.probe == label:
                metrics.setdefault((f.metric, f.units), []).append(f)
        shape = _Shape.of(run, label, make_probe(entry["probe"], entry["settings"]))
        out += [_planned(fs, alpha, rules, within, shape) for fs in metrics.values()]
    return out


@dataclass(frozen=True)
class _Shape:
    """What the items of a probe are made of, and what they took."""

    items: int
    seconds: float
    cost: float | None
    levels: Mapping[str, int]
    varies: Mapping[str, float]
    most: int | None

    @classmethod
    def of(cls, run: Run, label: str, probe: Probe) -> _Shape:
        table = run.table(label, "items")
        names = [
            c
            for c in (probe.item_shape.clusters if probe.item_shape else ())
            if c in table.column_names
        ]
        levels = {c: len(set(table.column(c).to_pylist())) for c in names}
        levels = {c: n for c, n in levels.items() if n >= FEWEST}  # fewer are no sample
        taken = run.facts["timings"]
        about = run.facts["models"].get(run.facts["work"]["model"], {})
        paid = (about.get("usage") or {}).get("cost")
        whole = sum(taken.get(k, 0.0) for k in run.facts["probes"]) or 1.0
        share = taken.get(label, 0.0) / whole
        cost = None if paid is None else float(paid) * share
        varies = _shares(table, probe, names)
        return cls(
            table.num_rows, float(taken.get(label, 0.0)), cost, levels, varies, probe.most_units()
        )


def _shares(table: pa.Table, probe: Probe, names: Sequence[str]) -> dict[str, float]:
    """Shares of the variance of the items' scores by sampled column."""
    shape = probe.item_shape
    if shape is None or not names or not shape.score:
        return {}
    table = table.slice(0, MOST_ROWS)
    columns = [table.column(c) for c in shape.score if c in table.column_names]
    if len(columns) < len(shape.score) or not all(pa.types.is_floating(c.type) for c in columns):
        return {}
    score = np.asarray(columns[0].to_numpy(zero_copy_only=False), float)
    for column in columns[1:]:
        score = score - np.asarray(column.to_numpy(zero_copy_only=False), float)
    known = np.isfinite(score)
    codes = {c: np.unique(table.column(c).to_pylist(), return_inverse=True)[1] for c in names}
    varied = {c: v[known] for c, v in codes.items() if 1 < len(np.unique(v[known])) < known.sum()}
    if not varied:
        return {}
    found = Design([Factor(v) for v in varied.values()]).components(score[known])[:, 0]
    total = float(found.sum())
    parts = zip([*varied, "rest"], found)
    return {n: round(float(v) / total, 3) for n, v in parts} if total > 0 else {}


def pooled(findings: Sequence[Finding]) -> tuple[Estimate, float] | None:
    """One estimate whose error stands for all of them (the mean variance), and the degrees of
    freedom with which they know it together."""
    known = [e for e in map(estimated, findings) if e.error > 0 and e.freedom >= 1 and e.units > 0]
    if not known:
        return None
    units = round(float(np.mean([e.units for e in known])))
    variance = float(np.mean([e.error**2 * e.units for e in known])) / units
    freedoms = [e.freedom for e in known]
    typical = Estimate(0.0, math.sqrt(variance), float(np.mean(freedoms)), units=units)
    return typical, float(np.sum(freedoms))


def _planned(
    findings: Sequence[Finding], alpha: float, rules: Policy, within: bool, shape: _Shape
) -> Planned:
    first = findings[0]
    margin = rules.margin_of(first.id, first.margin)
    row = Planned(
        first.probe,
        first.metric,
        margin,
        first.units or "units",
        first.n,
        None,
        varies=shape.varies,
        detectable=float(np.median([f.detectable for f in findings])),
    )
    found = pooled(findings)
    if found is None:
        return replace(row, reason="the pilot gives no variance: its findings have no error")
    if not margin > 0:
        return replace(row, reason="no margin is set: --margin VALUE, or --margin PATTERN=VALUE")
    pilot, known = found
    row = replace(row, asked=pilot.units)
    needed = planned_units(
        pilot, margin, alpha=alpha, power=rules.power, within=within, known=known
    )
    if needed is None:
        return replace(row, reason="the pilot gives no variance")
    times = needed / pilot.units
    if shape.most is not None and needed > shape.most:
        why = f"there are {shape.most:,} {row.units} to draw: needs more names, or a larger margin"
        row = replace(row, reason=why)
    return replace(
        row,
        needed=needed,
        items=math.ceil(shape.items * times),
        seconds=round(shape.seconds * times, 1),
        cost=None if shape.cost is None else shape.cost * times,
        levels={c: (n, math.ceil(n * times)) for c, n in shape.levels.items()},
    )


def _grown(suite: Suite, rows: Sequence[Planned]) -> Suite:
    """The suite with every probe as large as its neediest metric asks for, where it can grow."""
    entries = []
    for entry in suite.entries:
        times = max(
            (r.needed / r.asked for r in rows if r.probe == entry.label and r.needed), default=1.0
        )
        probe = entry.probe.finer(times) or entry.probe if times > 1 else entry.probe
        entries.append(replace(entry, probe=probe))
    return replace(suite, entries=tuple(entries))
