"""A measured result as a run folder: verdicts, sentences, tables, report."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.audit.again import leads_out, texts_of
from evenhand.audit.marking import marked
from evenhand.audit.verdicts import PlaceboRate, decided, placebo_rate
from evenhand.confined import is_confined
from evenhand.errors import RunError, SpecError
from evenhand.probes.reading import Claims, Result, reader_of
from evenhand.probes.registry import probe_of
from evenhand.runner.files import replacing
from evenhand.runs.controls import CONTROLS, Control, control_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import Again
from evenhand.runs.record import Run, RunWriter, environment, now
from evenhand.settings import filled
from evenhand.writing import write_bytes

KIND = "measure"
INPUTS = "inputs"
RATE = 0.05


def judged(claims: Claims) -> list[Finding]:
    """The findings with q and verdict, as the suite of an audit would give them."""
    rate = float(claims.settings.get("rate", RATE))
    told = [replace(f, model=claims.source) for f in claims.findings]
    rest = {claims.name: claims.unlisted}
    made = decided(told, claims.source, rate, {claims.name: _placebos(claims)}, rest)
    kind = probe_of({"probes": {}}, claims.name)
    return [marked(f, kind, claims.source) for f in made]


def control(claims: Claims) -> Control:
    """Return whether whoever made the scores can be judged by them."""
    known = probe_of({"probes": {}}, claims.name).answering(claims.summary)
    return control_of(known.updated(claims.answering))


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

    if not isinstance(result, Result):
        raise SpecError(
            f"result {result!r:.60} ({type(result).__name__}): expected what a function of "
            f"evenhand.measure gives."
        )
    claims = result.claims()
    if claims is None:
        raise SpecError(
            f"measure {result.called}: gives numbers, but no findings that a report could be made "
            f"of. Write them with: --json FILE"
        )
    begun = time.monotonic()
    writer = RunWriter(Path(out))
    facts = _facts(claims, result.called or claims.name)
    with writer.held():
        with writer.working(facts):
            for name, table in claims.tables.items():
                writer.table(claims.name, name, table)
            facts["work"]["inputs"] = _kept(result, Path(out))
            writer.findings(judged(claims))
            facts["timings"] = {claims.name: round(time.monotonic() - begun, 2)}
            writer.facts({**facts, "status": "finished", "finished": now()})
        run = Run.open(out)
        page = render(run)
        writer.page(page)
    if html is not None:
        write_bytes(Path(html), page.encode("utf-8", "backslashreplace"), "--html")
    return run


def _kept(result: Result, folder: Path) -> dict[str, str]:
    """Copies of the files that were read, so that findings can be computed again from them."""
    reader = result.reader
    if reader is None or not reader.whole():
        return {}
    held = {}
    for setting, path in reader.files().items():
        place = folder / INPUTS / setting / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.resolve() != path.resolve():
            with open(path, "rb") as given, replacing(place) as file:
                shutil.copyfileobj(given, file)
        held[setting] = place.relative_to(folder).as_posix()
    for setting, raw in reader.kept().items():
        place = folder / INPUTS / setting / f"{setting}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            file.write(raw)
        held[setting] = place.relative_to(folder).as_posix()
    return held


def again(run: Run, scratch: Path) -> Again:
    """See `RunKind.again`: the kept files are read once more."""
    work = run.facts["work"]
    reader = reader_of(str(work["measure"]))
    inputs = {
        k: run.folder / INPUTS / Path(k).name / Path(v).name
        for k, v in work.get("inputs", {}).items()
    }
    if reader is None or not inputs or not all(path.is_file() for path in inputs.values()):
        raise RunError(
            f"{run.folder}: the run keeps no copy of what was measured (a folder, or a table in "
            f"memory), so it cannot be bundled as evidence. Measure a file."
        )
    options = {k: v for k, v in work["given"].items() if k in reader.model_fields}
    if is_confined():  # a place elsewhere is not even looked for
        options = {k: v for k, v in options.items() if not any(map(leads_out, texts_of(v)))}
    chosen = filled(reader, {**options, **inputs}, f"measure {work['measure']}")
    files: dict[str, bytes | Path] = {
        path.relative_to(run.folder).as_posix(): path for path in inputs.values()
    }
    return Again(as_run(chosen.work(lambda _: None), scratch), files)


def _facts(claims: Claims, measure: str) -> dict[str, Any]:
    rate = float(claims.settings.get("rate", RATE))
    suite = {
        "name": claims.name,
        "title": claims.title,
        "false_discovery_rate": rate,
        "probe": [{"name": claims.name}],
    }
    return {
        "kind": KIND,
        "status": "running",
        "work": {
            "model": claims.source,
            "seed": claims.settings.get("seed", 0),
            "suite": suite,
            "measure": measure,
            "given": dict(claims.settings),
        },
        "models": {claims.source: {"name": claims.source, "kind": "scores from elsewhere"}},
        "probes": {
            claims.name: {
                "probe": claims.name,
                "title": claims.title,
                "paper": "",
                "model": claims.source,
                "as_published": False,
                "settings": dict(claims.probe),
                "counts": {"rows": max((t.num_rows for t in claims.tables.values()), default=0)},
                "summary": dict(claims.summary),
            }
        },
        CONTROLS: {claims.name: control(claims).as_dict()},
        "placebos": {claims.name: _placebos(claims).as_dict()},
        "attempts": 1,
        "started": now(),
        "environment": environment(),
        "timings": {},
    }
