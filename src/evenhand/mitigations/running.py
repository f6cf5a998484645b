"""From a model and a method to a mitigated model, and to the run folder that judges it.

The run folder is the same for every family, and for the pages beside them:

run.json         kind "mitigation"; all settings, the command that does it again, the story
findings.json    measured changes
probes/<label>/  the tables behind the charts
report.html      what it buys, what it costs, how sure that is, what next
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel

from evenhand.errors import RunError
from evenhand.mitigations.base import (
    GROUNDS,
    Fitted,
    Judgement,
    Measurements,
    Mitigation,
    Note,
    adopted,
    family,
    kind_if_known,
    option_words,
    quiet,
    settings_for,
    spec_of,
)
from evenhand.mitigations.saved import check_free, start_over, unfinished
from evenhand.models.loading.resolver import resolve
from evenhand.models.objects import as_model, as_typed, no_extras
from evenhand.models.protocol import LoadOptions, Model
from evenhand.runs.facts import NAME as RUN
from evenhand.runs.kinds import Again, kind_of
from evenhand.runs.record import Run, RunWriter, environment, now
from evenhand.runs.room import claimed, default_folder, require_room, require_writable
from evenhand.strict import plain
from evenhand.writing import require_place, write_text

if TYPE_CHECKING:
    from evenhand.runner.progress import Progress

KIND = "mitigation"
RATE = 0.05
PROOF, SIDES = "proof", ("before", "after")
ALWAYS = ("method", "axis", "seed")
"""Settings that a command names even where they are the usual ones."""


@dataclass(frozen=True)
class Page:
    """What a run folder is about: whose charts and tables, the question, how to do it again.

    `command` are the words that do it again, without model and folder.
    """

    family: str
    label: str
    title: str
    paper: str
    command: Sequence[str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    as_published: bool = False
    lexicons: Sequence[str] = ()

    def facts(self, model: Model) -> dict[str, Any]:
        """Return the contents of run.json before the work begins."""
        spec, about = spec_of(model), model.describe()
        suite = {
            "name": self.label,
            "title": self.title,
            "false_discovery_rate": RATE,
            "probe": [],
        }
        line = ["evenhand", self.command[0], spec, *self.command[1:]]
        dtype = model.recipe.options.dtype if model.recipe else about.get("dtype")
        line += ["--dtype", dtype] if dtype else []
        chosen = model.recipe.options.chosen() if model.recipe else {}
        line += [w for n in ("chat", "system") if n in chosen for w in (f"--{n}", chosen[n])]
        return {
            "kind": KIND,
            "status": "running",
            "attempts": 1,
            "models": {spec: {**about, "fingerprint": model.fingerprint}},
            "probes": {
                self.label: {
                    "probe": self.label,
                    "family": self.family,
                    "title": self.title,
                    "paper": self.paper,
                    "model": model.name,
                    "as_published": self.as_published,
                    "settings": dict(self.settings),
                    "counts": {},
                    "summary": {},
                    "lexicons": list(dict.fromkeys(self.lexicons)),
                }
            },
            "work": {
                "model": spec,
                "as": None,
                "dtype": dtype,
                "seed": self.seed,
                "suite": suite,
                "command": [*line, "--out", "DIR"],
            },
            "started": now(),
            "environment": environment(),
            "timings": {},
            "shards": {"total": 0, "scored_by_attempt": {}},
        }


def judge(
    fitted: Fitted,
    before: Model,
    after: Model,
    *,
    out: str | Path | None,
    proof: Path | None,
    progress: Progress | None,
) -> Run:
    """Judge a mitigation into a run folder; see `Fitted.judge`."""
    asked = adopted(fitted.asked)
    page = Page(
        family=asked.name,
        label=asked.label,
        title=asked.title,
        paper=asked.paper,
        command=["mitigate", *as_options(asked)],
        settings=asked.model_dump(mode="json"),
        seed=asked.seed,
        as_published=asked.as_published,
        lexicons=asked.lexicons(before.kind),
    )
    folder = Path(out) if out else claimed(default_folder(before.name, asked.method))
    with written(folder, page, before) as give:
        place = proof or folder / "proof"
        give(fitted.judged(before, after, proof=place, progress=progress))
    return Run.open(folder)


@contextlib.contextmanager
def written(folder: Path, page: Page, model: Model) -> Iterator[Callable[..., None]]:
    """Open a run folder, and yield a function that writes the judgement into it.

    Args of the function: the judgement; more facts for the record; other questions than usual.
    """
    from evenhand.report.build import prepared

    render = prepared(family(page.family))
    require_writable(folder)
    if folder.is_dir() and not (folder / "run.json").is_file():
        require_room(folder)
    writer, begun = RunWriter(folder), time.monotonic()
    facts = page.facts(model)

    def give(
        found: Judgement, more: Mapping[str, Any] | None = None, questions: Sequence[str] = ()
    ) -> None:
        facts["timings"]["total_s"] = round(time.monotonic() - begun, 2)
        _finish(writer, page.label, facts, found, more, questions)

    with writer.held():
        with writer.working(facts):
            yield give
        writer.page(render(Run.open(folder)))


def _finish(
    writer: RunWriter,
    label: str,
    facts: dict[str, Any],
    found: Judgement,
    more: Mapping[str, Any] | None = None,
    questions: Sequence[str] = (),
) -> None:
    _tables(writer, label, found)
    writer.findings(list(found.findings))
    told = {
        "questions": questions,
        "buys": found.buys,
        "costs": found.costs,
        "sure": found.sure,
    }
    facts["probes"][label]["summary"] = {"told": told, **(more or {}), **found.proof}
    writer.facts({**facts, "status": "finished", "finished": now()})


def again(run: Run, scratch: Path, models: Mapping[str, Model]) -> Again:
    """Repeat the audits of both models, then judge them; see `RunKind.again`."""
    facts = run.facts
    ((label, entry),) = facts["probes"].items()
    if GROUNDS not in run.tables(label):
        raise RunError(
            f"{run.folder}: keeps nothing that its findings could be computed from, so it cannot "
            f"be bundled as evidence. Judge it again: {kind_of(facts).command(facts)[0]}"
        )
    files: dict[str, bytes | Path] = {}
    shards: dict[str, tuple[str, ...]] = {}
    audits = []
    for side in SIDES:
        places = (run.folder / PROOF / side, run.folder.parent / PROOF / side)
        own = next((Run.open(p) for p in places if (p / RUN).is_file()), None)
        if own is None:
            continue
        spec, home, first = str(own.facts["work"]["model"]), f"{PROOF}/{side}", side == SIDES[0]
        asked = dict.fromkeys([spec], next(iter(models.values()))) if models and first else {}
        made = kind_of(own.facts).again(own, scratch / home, asked)
        audits.append(made.run)
        files |= {f"{home}/{name}": content for name, content in made.files.items()}
        files[f"{home}/{RUN}"] = own.folder / RUN
        if first:
            names = made.shards.get(spec, ())
            shards[facts["work"]["model"]] = tuple(f"{home}/{name}" for name in names)
    pair = (audits[0], audits[1]) if audits else None
    measurements = Measurements.read(run.table(label, GROUNDS), pair)
    found = replace(family(str(entry["family"])).report(measurements), measurements=measurements)
    writer = RunWriter(scratch / "run")
    _finish(writer, label, {**facts, "probes": {label: dict(entry)}}, found)
    return Again(Run.open(scratch / "run"), files, shards)


def _tables(writer: RunWriter, label: str, given: Judgement) -> None:
    """Write every table that has rows; the first is also the table of items."""
    kept = {name: rows for name, rows in given.tables.items() if rows}
    made = {name: pa.Table.from_pylist([dict(r) for r in rows]) for name, rows in kept.items()}
    for name, table in made.items():
        writer.table(label, name, table)
    if made:
        writer.table(label, "items", next(iter(made.values())))
    if given.measurements is not None:
        writer.table(label, GROUNDS, given.measurements.as_table())


def as_options(settings: BaseModel, without: Sequence[str] = ()) -> list[str]:
    """Return the words of the command line that give these settings.

    What has its usual value is left out, but for the few that people look for.
    """
    words: list[str] = []
    for name, value in settings.model_dump(mode="json", exclude=set(without)).items():
        usual = type(settings).model_fields[name].get_default()
        if value is None or (getattr(settings, name) == usual and name not in ALWAYS):
            continue
        words += option_words(name, value)
    return words


def mitigate(
    model: Any,
    method: str | Mitigation | type[Mitigation] | None = None,
    *,
    tokenizer: Any = None,
    name: str = "",
    axis: str = "gender",
    texts: str | Path | Sequence[str] | None = None,
    options: LoadOptions | None = None,
    note: Note = quiet,
    **settings: Any,
) -> Fitted:
    """Fit a mitigation of a model.

        calmer = eh.mitigate("smollm2-135m", "leace", axis="gender")
        calmer.model                    # answers as any model does
        calmer.save("calmer")           # evenhand audit calmer
        calmer.judge(out="judged")      # a run folder: what it buys, what it costs

    Args:
        model: a model, what to type to get it, or an object as `audit` takes it.
        tokenizer, name: of a transformers model object, and what an object is called.
        method: by default the usual one for the kind of model; or a mitigation of your own, as
            an object with its settings, or a class that takes those given here.
        texts: plain text, where the method takes some: a file, or passages to fit or train on.
        settings: those of the method's family, e.g. `rounds=2`.

    Raises:
        SpecError: no such method or setting.
        ModelError: the method is not for this kind of model.
    """
    if isinstance(model, str | Path):
        no_extras(model, tokenizer, {"name": name})
        model = as_typed(model)
    else:
        model = as_model(model, tokenizer=tokenizer, options=options, name=name)
    kind = kind_if_known(model) if isinstance(model, str) else model.kind
    if isinstance(texts, str | Path):
        settings, texts = {"texts": Path(texts), **settings}, None
    if isinstance(method, Mitigation):
        asked = adopted(method.changed(**settings))
    elif isinstance(method, type):
        asked = adopted(method(axis=axis, **settings))
    else:
        asked = settings_for(method, kind, {"axis": axis, **settings})
    asked.ready()
    loaded = resolve(model, options=options) if isinstance(model, str) else model
    return asked.fit(loaded, texts=texts, note=note)


@dataclass(frozen=True)
class Mitigated:
    """What the command did, as its run and as one JSON object."""

    run: Run
    told: Mapping[str, Any]


def run(
    spec: str,
    settings: Mitigation,
    out: Path,
    *,
    export: Path | None = None,
    options: LoadOptions | None = None,
    note: Note = quiet,
    progress: Progress | None = None,
) -> Mitigated:
    """Fit, save into a folder, judge what was saved, and export where asked.

    out/          the mitigation, which can be given wherever a model can
    out/run/      the judgement: a run folder
    out/proof/    proof.json; audits before and after, where the family makes some
    """
    start_over(out)
    for place, option in ((out, "--out"), *([(export, "--export")] if export else ())):
        check_free(place, option)
        require_place(place, option)
    settings.ready()
    base = resolve(spec, options=options)
    if export is not None:
        settings.check_export(base)
    fitted = settings.fit(base, note=note)
    with unfinished(out, fitted.save):
        note("before and after on the same items")
        after = type(settings).load(out, base)
        judged = fitted.judge(base, after, out=out / "run", proof=out / "proof", progress=progress)
        more = fitted.export(export) if export is not None else {}
        (entry,) = judged.facts["probes"].values()
        told = {
            "folder": str(out),
            "model": spec,
            "method": fitted.settings.method,
            "axis": fitted.settings.axis,
            **fitted.as_dict(),
            **entry["summary"],
            "report": str(judged.report),
            **more,
        }
        text = json.dumps(plain(told), indent=1, ensure_ascii=False)
        write_text(out / "proof" / "proof.json", f"{text}\n")
    return Mitigated(judged, told)
