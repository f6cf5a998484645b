"""A run folder for results that no suite produced, so that report and viewer can show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_page(
    folder: Path,
    model: Any,
    spec: str,
    *,
    probe: str,
    title: str,
    settings: Mapping[str, Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    findings: Sequence[Any] = (),
    summary: Mapping[str, Any] | None = None,
) -> Path:
    """Write a run folder of one probe with its tables and findings, and its page.

    Args:
        folder: the run folder.
        model: a loaded model.
        spec: what the user typed to get it.
        probe, title: whose charts to draw (`report/charts_<probe>.py`), and the heading.
        settings: what was asked for.
        tables: rows by table name; the first table is kept as the items too.
        findings, summary: what was found.

    Returns:
        The path of the page.
    """
    import pyarrow as pa

    from evenhand.report.build import render
    from evenhand.runs.record import Run, RunWriter, environment, now

    suite = {"name": probe, "title": title, "false_discovery_rate": 0.05, "probe": []}
    entry = {
        "probe": probe, "title": title, "paper": "Liang et al. 2021", "model": model.name,
        "as_published": False, "settings": dict(settings), "counts": {},
        "summary": dict(summary or {}),
    }  # fmt: skip
    writer = RunWriter(folder)
    made = {name: pa.Table.from_pylist([dict(r) for r in rows]) for name, rows in tables.items()}
    for name, table in made.items():
        writer.table(probe, name, table)
    writer.table(probe, "items", next(iter(made.values())))
    writer.findings(list(findings))
    about = {**model.describe(), "fingerprint": model.fingerprint}
    writer.facts({
        "kind": "mitigation", "status": "finished", "models": {spec: about},
        "probes": {probe: entry}, "attempts": 1,
        "work": {"model": spec, "as": None, "dtype": None, "seed": 0, "suite": suite},
        "started": now(), "finished": now(), "environment": environment(), "timings": {},
        "shards": {"total": 0, "scored_by_attempt": {}},
    })  # fmt: skip
    writer.page(render(Run.open(folder)))
    return folder / "report.html"
