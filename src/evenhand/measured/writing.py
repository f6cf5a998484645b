"""A measured result as a run folder: verdicts, sentences, tables, report."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.audit.marking import marked
from evenhand.audit.verdicts import PlaceboRate, decided, placebo_rate
from evenhand.errors import SpecError
from evenhand.probes.reading import Claims, Result
from evenhand.probes.registry import probe_of
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run, RunWriter, environment, now

KIND = "measure"
RATE = 0.05


def judged(claims: Claims) -> list[Finding]:
    """The findings with q and verdict, as the suite of an audit would give them."""
    rate = float(claims.settings.get("rate", RATE))
    told = [replace(f, model=claims.source) for f in claims.findings]
    rest = {claims.name: claims.unlisted}
    made = decided(told, claims.source, rate, {claims.name: _placebos(claims)}, rest)
    kind = probe_of({"probes": {}}, claims.name)
    return [marked(f, kind, claims.source) for f in made]


def _placebos(claims: Claims) -> PlaceboRate:
    return placebo_rate(claims.placebos)


def as_run(result: Result, out: str | Path, html: str | Path | None = None) -> Run:
    """Write a result of `eh.measure` as a run folder with a report.

    Args:
        result: what a measure gave.
        out: the folder.
        html: a second place for the report.

    >>> as_run(evenhand.measure.table("decisions.csv"), "runs/mine")  # doctest: +SKIP
    """
    from evenhand.report.build import render

    claims = result.claims()
    if claims is None:
        raise SpecError(
            f"measure {result.called}: gives numbers, but no findings that a report could be made "
            f"of. Write them with: --json FILE"
        )
    begun = time.monotonic()
    writer = RunWriter(Path(out))
    facts = _facts(claims, result.called or claims.name)
    with writer.held(), writer.working(facts):
        for name, table in claims.tables.items():
            writer.table(claims.name, name, table)
        writer.findings(judged(claims))
        facts["timings"] = {claims.name: round(time.monotonic() - begun, 2)}
        writer.facts({**facts, "status": "finished", "finished": now()})
    run = Run.open(out)
    page = render(run)
    writer.page(page)
    if html is not None:
        Path(html).write_text(page, encoding="utf-8", errors="backslashreplace")
    return run


def _facts(claims: Claims, measure: str) -> dict[str, Any]:
    rate = float(claims.settings.get("rate", RATE))
    suite = {"name": claims.name, "title": claims.title, "false_discovery_rate": rate,
             "probe": [{"name": claims.name}]}  # fmt: skip
    return {
        "kind": KIND,
        "status": "running",
        "work": {"model": claims.source, "seed": claims.settings.get("seed", 0), "suite": suite,
                 "measure": measure, "given": dict(claims.settings)},
        "models": {claims.source: {"name": claims.source, "kind": "scores from elsewhere"}},
        "probes": {
            claims.name: {
                "probe": claims.name, "title": claims.title, "paper": "", "model": claims.source,
                "as_published": False, "settings": dict(claims.probe),
                "counts": {"rows": max((t.num_rows for t in claims.tables.values()), default=0)},
                "summary": dict(claims.summary),
            }
        },
        "placebos": {claims.name: _placebos(claims).as_dict()},
        "attempts": 1,
        "started": now(),
        "environment": environment(),
        "timings": {},
    }  # fmt: skip
