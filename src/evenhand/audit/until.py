"""Ask until it is decided, or the time is spent.

Every look doubles the units of the probes whose checks are undecided, and tests them anew at what
this look may use of the error rate (`stats.sequential`). A check that is decided stays decided. How
many looks there can be follows from the budget and from the time that the run itself took, so that
it depends on no result; a probe without more material ends earlier.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.audit.addresses import name_address, require_named
from evenhand.audit.auditing import asked_again
from evenhand.audit.gate import Check, Gate, checks_of, meant, outcome_of, unjudging
from evenhand.audit.planning import seconds
from evenhand.audit.policy import Policy
from evenhand.audit.suites import Suite, parse_suite
from evenhand.models.protocol import Model
from evenhand.runner.progress import Progress
from evenhand.runs.controls import CANNOT_TELL
from evenhand.runs.record import Run
from evenhand.stats.sequential import DOUBLING, levels, looks_within


@dataclass
class Looking:
    """Looks at a run, or at two on the same items.

    Args:
        run, baseline: what is there; `baseline` may be None.
        policy: the rules.
        budget: seconds for all further looks.
        models: the audited model and that of the baseline, where they are Python objects.
    """

    run: Run
    baseline: Run | None
    policy: Policy
    budget: float
    models: tuple[Model | None, Model | None] = (None, None)
    progress: Progress | None = None
    tell: Callable[[str], None] | None = None
    decided: dict[str, Check] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Probes that cannot judge the model, with the reason."""
    exhausted: set[str] = field(default_factory=set)
    """Probes that asked more items and reached no more units."""

    def __post_init__(self) -> None:
        work = self.run.facts["work"]["suite"]
        self.suite: Suite = parse_suite(work, str(self.run.folder), work["name"])

    def gate(self) -> Gate:
        """The outcome after as many looks as were needed."""
        begun, runs = time.monotonic(), (self.run, self.baseline)
        most = looks_within(self.budget, self._once())
        rates = levels(most, self.policy.error)
        look = 1
        while True:
            rules = self.policy.with_changes(error=rates[look - 1], undecided="undecided")
            open_ = self._look(runs, rules)
            found = outcome_of(list(self.decided.values()), self.policy, self.silent)
            left = self.budget - (time.monotonic() - begun)
            wanted = self._larger(open_ - self.exhausted, look)
            ended = self._ended(
                open_, found.outcome, bool(wanted.entries), look < most and left > 0
            )
            if ended is not None:
                break
            look += 1
            if self.tell is not None:
                self.tell(f"look {look} of at most {most}: {', '.join(sorted(open_))} undecided")
            runs = self._asked(wanted, look)
        checks = [meant(c, self.policy) for c in self.decided.values()]
        final = outcome_of(checks, self.policy, self.silent)
        told = f"{final.reason} ({look} of at most {most} looks share the error rate.){ended}"
        return replace(final, looks=look, run=str(runs[0].folder), reason=told)

    @staticmethod
    def _ended(open_: set[str], outcome: str, more: bool, allowed: bool) -> str | None:
        """Why no further look is taken; None where one is."""
        if not open_ or outcome == "failed":
            return ""
        if not more:
            return " The probes that are undecided have no more material to ask."
        return None if allowed else " The budget allows no more."

    def _look(self, runs: tuple[Run, Run | None], rules: Policy) -> set[str]:
        """Test what is open; gives the probes that still are."""
        kept = [k for k, c in self.decided.items() if c.outcome != "undecided"]
        tests = [k for k in kept if self.decided[k].outcome != CANNOT_TELL]
        others = [k.partition("/")[0] for k in tests]
        grown: dict[str, bool] = {}
        self.silent |= unjudging(*runs)
        for check in checks_of(*runs, rules, others):
            label, known = check.id.partition("/")[0], self.decided.get(check.id)
            grown[label] = grown.get(label, False) or known is None or check.n > known.n
            if check.id not in kept:
                self.decided[check.id] = check
        self.exhausted |= {label for label, more in grown.items() if not more}
        return {k.partition("/")[0] for k, c in self.decided.items() if c.outcome == "undecided"}

    def _once(self) -> float:
        """What it takes to ask everything that can grow once more as it was."""
        able = {e.label for e in self.suite.entries if e.probe.finer(DOUBLING)}
        runs = [run for run in (self.run, self.baseline) if run is not None]
        return float(sum(r.facts["timings"].get(label, 0.0) for r in runs for label in able))

    def _larger(self, labels: set[str], look: int) -> Suite:
        """The probes that are open and have more material, with twice the units of this look."""
        entries = []
        for entry in self.suite.entries:
            probe = entry.probe.finer(DOUBLING**look) if entry.label in labels else None
            if probe is not None:
                entries.append(replace(entry, probe=probe))
        return replace(self.suite, entries=tuple(entries))

    def _asked(self, suite: Suite, look: int) -> tuple[Run, Run | None]:
        made: list[Run | None] = []
        for run, model in zip((self.run, self.baseline), self.models):
            place = run and run.folder.with_name(f"{run.folder.name}-look{look}")
            made.append(
                asked_again(run, suite=suite, out=place, model=model, progress=self.progress)
                if run and place
                else None
            )
        assert made[0] is not None
        return made[0], made[1]


def until_decided(
    run: Run, baseline: Run | None, policy: Policy, budget: str | float, given: Mapping[str, Any]
) -> Gate:
    """The outcome of a run, asking more until there is one.

    Who waits for a decision asks for proof: the policy requires `within-margin`.

    Args:
        budget: seconds, or a time such as 20m.
        given: model, baseline_model (Python objects, or addresses that the user names now),
            progress, tell.

    Raises:
        RunError: a run asks a server that the user has not named.
    """
    limit = seconds(budget) if isinstance(budget, str) else float(budget)
    more = dict(given)
    models = tuple(
        _named(asked, more.pop(option, None), option, run)
        for asked, option in ((run, "model"), (baseline, "baseline_model"))
    )
    rules = policy.with_changes(require="within-margin")
    return Looking(run, baseline, rules, limit, (models[0], models[1]), **more).gate()


def _named(run: Run | None, model: str | Model | None, option: str, judged: Run) -> Model | None:
    """Return a model object that was given; name an address, and refuse what nobody named."""
    if run is None:
        return None if isinstance(model, str) else model
    if isinstance(model, str):
        name_address(run, model)
        model = None
    line = f"evenhand gate {shlex.quote(str(judged.folder))} --until-decided"
    if run is not judged:
        line += f" --baseline {shlex.quote(str(run.folder))}"
    flag = option.replace("_", "-")
    require_named(run, lambda address: f"{line} --{flag} {address}")
    return model
