"""An audit computed once more from its stored scores, with stand-ins for the models.

The very code that measured goes over the shards again, so findings.json comes out with the same
bytes, or something was changed. What the probes read beside the scores (a benchmark's files, a
lexicon of one's own) is part of the evidence: `inputs.json` in the folder says where each lies.
A run that came in a bundle is computed from its own folder alone (`confined`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.audit.auditing import Audit
from evenhand.audit.fluency import Fluency
from evenhand.audit.suites import parse_suite
from evenhand.confined import is_confined
from evenhand.corpora.tables import DATA_FOLDER
from evenhand.errors import RunError
from evenhand.models.adapters.stored import StoredModel
from evenhand.models.protocol import Model
from evenhand.opening import read_object
from evenhand.probes.registry import probe_class
from evenhand.runs.kinds import Again
from evenhand.runs.record import Run
from evenhand.runs.room import kept_at

INPUTS = "inputs.json"


def again(run: Run, scratch: Path, models: Mapping[str, Model]) -> Again:
    """See `RunKind.again`. Nothing that a bundled run names is loaded or read elsewhere."""
    facts, folder = run.facts, run.folder
    work, where = facts["work"], f"{folder}/run.json"
    bundled = is_confined() or (folder / INPUTS).is_file()
    if is_confined():
        inputs = _bundled(folder)
        _require_bundled(work, facts["models"], inputs)
    else:
        inputs = dict(_named(work["suite"]))
        inputs = _kept(folder, inputs) if bundled else inputs
    suite = parse_suite(_placed(work["suite"], inputs), where, work["suite"]["name"])
    stored = {spec: StoredModel(spec, about) for spec, about in facts["models"].items()}
    asked = [
        s for e in suite.entries for s in (e.model or work["model"], *e.probe.helpers().values())
    ]
    for spec in asked:
        if spec not in stored:
            raise RunError(f"{where}: a probe asks {spec!r:.80}, of which nothing is stored.")
    job = Audit(
        suite,
        work["model"],
        scratch,
        seed=int(work["seed"]),
        kind=work.get("as"),
        loaded={**stored, **models},
        fluency=_fluency(facts),
    )
    place = None if bundled else kept_at(folder, facts)
    made, used = job.again(place or str(folder / "scores"), read_only=not models)
    files: dict[str, bytes | Path] = {}
    asked_of: dict[str, tuple[str, ...]] = {}
    for spec, shards in used.items():
        named = {f"scores/{name}": raw for name, raw in (s.raw(k) for k, s in shards.items())}
        asked_of[spec] = tuple(sorted(named))
        files |= named
        # As they are asked now: nobody checks what lies in the folder.
        paths = (scratch / "requests" / f"{key}.parquet" for key in shards)
        files |= {f"requests/{path.name}": path for path in paths if path.is_file()}
    places = {typed: f"inputs/{k}/{path.name}" for k, (typed, path) in enumerate(inputs.items())}
    for typed, home in places.items():
        files.update({f"{home}{end}": path for end, path in _below(inputs[typed])})
    files[INPUTS] = json.dumps(places, indent=1, sort_keys=True).encode()
    return Again(made, files, asked_of)


def _fluency(facts: Mapping[str, Any]) -> dict[str, Fluency]:
    """Return what was seen of each language: few answers, which are not kept with the scores."""
    seen = [(entry.get("summary") or {}).get("fluency") for entry in facts["probes"].values()]
    return {row["language"]: Fluency.from_dict(row) for row in seen if row}


def _kept(folder: Path, named: Mapping[str, Path]) -> dict[str, Path]:
    """Where a bundled run has the files that its settings name; none may lie elsewhere."""
    held = _bundled(folder)
    strange = [path for typed, path in named.items() if typed not in held]
    if strange:
        raise _strange(str(strange[0]))
    return held


def _bundled(folder: Path) -> dict[str, Path]:
    """Where a bundled run says that it has the files that its settings name.

    Raises:
        RunError: it does not say so, or one would lie elsewhere.
    """
    path = folder / INPUTS
    if not path.is_file():
        raise RunError(f"missing {path}")
    inside = (folder / "inputs").resolve()
    held = {}
    for typed, at in read_object(path).items():
        name = str(at)
        if leads_out(name) or not (folder / name).resolve().is_relative_to(inside):
            raise _strange(name)
        held[str(typed)] = folder / name
    return held


def _require_bundled(
    work: Mapping[str, Any], models: Mapping[str, Any], inputs: Mapping[str, Path]
) -> None:
    """Refuse settings that lead out of a bundle, before anything looks whether they exist.

    Names of models are left to those who look up stored scores: no model is loaded.
    """
    for text in texts_of(work["suite"]["probe"]):
        if text not in inputs and text not in models and leads_out(text):
            raise _strange(text)


def texts_of(value: Any) -> Iterator[str]:
    """Return every text in a value, names of tables included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
        for part in parts:
            yield from texts_of(part)


def leads_out(text: str) -> bool:
    """Whether a text is a place elsewhere: absolute, in a home, above, a share, or an address.

    >>> [leads_out(t) for t in ("/etc/passwd", "~/x", "a/../../b", "C:/x", "s3://b", "//h/share")]
    [True, True, True, True, True, True]
    >>> [leads_out(t) for t in ("inputs/0/bbq", "he/she", "Is it ..? No.", "~", "org/model", "a:")]
    [False, False, False, False, False, False]
    """
    if re.match(r"/|\\|~[\w.-]*[/\\]|[A-Za-z]:[/\\]|[\w+.-]+://", text):
        return True
    return ".." in re.split(r"[/\\]", text)


def _strange(name: str) -> RunError:
    """Word the refusal of a place that is not in the bundle."""
    return RunError(f"{name!r:.120} is not a file of the bundle, and only those are read.")


def _named(suite: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Files and folders that settings of a suite name, by what was typed.

    A word without a dot or slash is a file's name only where the setting is empty by default: a
    folder that happens to be called `gender` is not meant by `social_class = "gender"`.
    """
    homes = [Path(), *([Path(os.environ[DATA_FOLDER])] if os.environ.get(DATA_FOLDER) else [])]
    for row in suite["probe"]:
        fields = probe_class(row["name"]).model_fields
        for key, value in row.items():
            usual = fields[key].get_default() if key in fields else None
            for text in _texts(value) if key in fields else ():
                found = [p for p in (home / Path(text).expanduser() for home in homes) if text]
                there = next((p for p in found if p.exists()), None)
                if there is not None and (usual == "" or "/" in text or "." in text):
                    yield text, there.absolute()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < 4_000 and "\0" not in value:
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _placed(suite: Mapping[str, Any], places: Mapping[str, Path]) -> dict[str, Any]:
    """The suite with the places of files instead of what was typed for them."""

    def placed(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [placed(v) for v in value]
        return str(places[value]) if isinstance(value, str) and value in places else value

    rows = [{k: v if k == "name" else placed(v) for k, v in r.items()} for r in suite["probe"]]
    return {**suite, "probe": rows}


def _below(path: Path) -> Iterator[tuple[str, Path]]:
    """A file, or the files of a folder, each with what its name adds."""
    if path.is_file():
        yield "", path
    for inner in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else ():
        yield f"/{inner.relative_to(path).as_posix()}", inner
