"""Several runs of one suite: finding by finding, model by model, and item by item."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.audit.comparison import items
from evenhand.audit.comparison.deciding import decide
from evenhand.audit.policy import Policy
from evenhand.errors import RunError
from evenhand.probes.base import Probe
from evenhand.probes.registry import probe_of
from evenhand.runs.compared import Across, Change, Comparison
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import rate_of


def compare(*runs: Run | str | Path) -> Comparison:
    """Runs or run folders side by side, each later one judged against the first.

    >>> compare("runs/before", "runs/after").verdict  # doctest: +SKIP
    'worse'
    """
    return side_by_side([r if isinstance(r, Run) else Run.open(r) for r in runs])


def side_by_side(runs: Sequence[Run]) -> Comparison:
    """The value and interval of each finding in every run, and each later run against the first.

    Only findings about the audited models are compared, not those of a model that the suite
    brought along.

    Raises:
        RunError: fewer than two runs, runs that did not ask the same, or not audits.
    """
    for run in runs:
        instead = kind_of(run.facts).instead_of_comparing(run)
        if instead:
            raise RunError(f"compare: {instead}")
    same_questions(runs)
    names = model_names(runs)
    known = [items.own_findings(run) for run in runs]
    ids = dict.fromkeys(i for found in known for i in found)
    asked = _asked(runs)
    return Comparison(
        runs=tuple(str(r.folder) for r in runs),
        names=tuple(names),
        findings=tuple(Across(i, tuple(found.get(i) for found in known)) for i in ids),
        changes=tuple(
            _change(runs[0], later, (names[0], name), asked)
            for later, name in zip(runs[1:], names[1:])
        ),
        rate=rate_of(runs[0].facts),
        parts=tuple(p for label, kind in asked.items() for p in kind.compare(runs, names, label)),
    )


def _change(
    first: Run, later: Run, names: tuple[str, str], asked: dict[str, type[Probe]]
) -> Change:
    """One run against the first, paired item by item where both asked the same items."""
    seed = int(first.facts["work"]["seed"])
    silent = {k: f"in {names[0]} {why}" for k, why in cannot_judge(first.facts).items()}
    silent |= {k: f"in {names[1]} {why}" for k, why in cannot_judge(later.facts).items()}
    found = decide(first, later, Policy(error=rate_of(first.facts)), silent=silent)
    change = Change(
        *names,
        tuple(items.finding_changes(first, later)),
        decisions=found.decisions,
        stands=tuple(s.as_row() for s in found.stands),
        cannot_judge={k: why for k, why in silent.items() if k in asked},
    )
    try:
        change = replace(change, items=tuple(items.item_changes(first, later)))
        parts = [p for k, kind in asked.items() for p in kind.changed(first, later, k, seed)]
        return replace(change, parts=tuple(parts))
    except RunError as error:  # models whose vocabularies allow other items
        return replace(change, reason=str(error))


def _asked(runs: Sequence[Run]) -> dict[str, type[Probe]]:
    """The probes that every run has finished on its audited model, by label."""
    return {label: probe_of(runs[0].facts, label) for label in items.shared_labels(*runs)}


def same_questions(runs: Sequence[Run]) -> None:
    """Refuse runs that did not ask the same with the same seed."""
    if len(runs) < 2:
        raise RunError("compare: give two or more run folders.")
    first = runs[0].facts["work"]
    for run in runs[1:]:
        other = run.facts["work"]
        for what in ("suite", "seed"):
            if other[what] != first[what]:
                where = _first_difference(first[what], other[what]) if what == "suite" else ""
                raise RunError(
                    f"compare: {runs[0].folder} and {run.folder} differ in their {what}{where}, so "
                    f"their findings are not about the same items. Run both with the same suite "
                    f"and seed, and without --budget, which fits the sample to each model's speed."
                )


def _first_difference(one: dict[str, Any], two: dict[str, Any]) -> str:
    """Which setting of which probe differs, where the probes are the same."""
    rows = one.get("probe", []), two.get("probe", [])
    for a, b in zip(*rows):
        if a.get("name") != b.get("name"):
            return ""
        for key in {**a, **b}:
            if a.get(key) != b.get(key):
                label = a.get("label", a["name"])
                return f" ({label}: {key} is {a.get(key)!r} and {b.get(key)!r})"
    return ""


def same_rungs(runs: Sequence[Run]) -> None:
    """Refuse runs that were asked in different ways: what changed could be the way alone."""
    first, last = runs[0], runs[-1]
    folders = first.folder, last.folder
    if _rungs_differ(runs):
        raise RunError(
            f"{last.folder} was asked by {_rung(last)}, {first.folder} by {_rung(first)}: a change "
            f"may come from the way of asking. Ask both alike (--rung, --chat, --way), or set them "
            f"side by side with: {shlex.join(['evenhand', 'compare', *map(str, folders)])}"
        )


def _rungs_differ(runs: Sequence[Run]) -> bool:
    return len({_rung(run) for run in runs} - {""}) > 1


def _rung(run: Run) -> str:
    return str(run.facts.get("rung") or "")


def model_names(runs: Sequence[Run]) -> list[str]:
    """Model names with their rungs where those differ: a table says how each column was asked."""
    names = _plain_names(runs)
    if not _rungs_differ(runs):
        return names
    return [f"{name}, {_rung(run)}" if _rung(run) else name for name, run in zip(names, runs)]


def _plain_names(runs: Sequence[Run]) -> list[str]:
    """Model names without their folders; where equal, told apart by run, by folder, by number."""
    models = [str(r.facts["work"]["model"]).rstrip("/").rsplit("/", 1)[-1] for r in runs]
    for better in ([r.name for r in runs], [str(r.folder) for r in runs]):
        models = [m if models.count(m) == 1 else b for m, b in zip(models, better)]
    return [
        m if models.count(m) == 1 else f"{m} ({models[: k + 1].count(m)})"
        for k, m in enumerate(models)
    ]
