"""Running a suite on a model into a run folder, and resuming it where it stopped."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.audit.addresses import name_address, require_named
from evenhand.audit.choosing import choose_suite, require_fit
from evenhand.audit.fluency import Fluency, known_languages
from evenhand.audit.marking import marked
from evenhand.audit.suites import Asked, Entry, Suite, parse_suite
from evenhand.audit.verdicts import PlaceboRate, decided, placebo_rate
from evenhand.errors import RunError, SpecError
from evenhand.models.choosing import TOLD
from evenhand.models.endpoints.address import Address, is_address, safe
from evenhand.models.endpoints.known import remember
from evenhand.models.loading.held import lent
from evenhand.models.loading.resolver import DEFAULT_MODEL, resolve
from evenhand.models.objects import as_model, as_typed, no_extras, separated
from evenhand.models.protocol import LoadOptions, Model, with_options
from evenhand.runner.ask import Ask
from evenhand.runner.job import Executor
from evenhand.runner.places import is_remote, local_path, settled
from evenhand.runner.progress import Progress, Silent, usual
from evenhand.runner.store import ShardStore, scored_by_attempt
from evenhand.runs.controls import CONTROLS, NOT_ASKED, Control, control_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import AUDIT
from evenhand.runs.record import Run, RunWriter, environment, now
from evenhand.runs.room import (
    claimed,
    default_folder,
    elsewhere,
    nothing_lost,
    place_of,
    require_room,
    require_writable,
)
from evenhand.words.lexicons import article


@dataclass
class Audit:
    """A suite on a model in a folder; each call of `run` is one attempt.

    Finished shards are kept in the folder, so an attempt only does what is left. The numbers are
    computed from the stored scores alone, so a run that was killed and resumed ends with the
    same bytes in findings.json as one that was not.
    """

    suite: Suite
    model: str
    folder: Path
    _: KW_ONLY
    seed: int = 0
    kind: str | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    progress: Progress = field(default_factory=Silent)
    loaded: dict[str, Model] = field(default_factory=dict)
    executor: Executor | None = None
    store: str | None = None
    """Where score shards go instead of the folder: a URL such as s3://bucket/prefix."""
    tell: Callable[[str], None] | None = None
    """Told before the first question what this design cannot show."""
    force: bool = False
    """Ask in a language that the model does not know anyway."""
    fluency: dict[str, Fluency] = field(default_factory=dict)
    """What is known of the model in each language; looked at before the first question."""
    named: bool = True
    """Whether somebody chose the folder; else the next free name is taken."""
    _place: str | None = None
    _read_only: bool = False
    """Whether nothing may be added to the store."""
    _object: bool = False
    """Whether the model is a Python object, which only its maker can give again."""
    _asked_of: list[tuple[str, ShardStore]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = None if self.store is None else settled(self.store)
        self._object = self.model in self.loaded
        if not isinstance(self.seed, int) or self.seed < 0:
            raise SpecError(f"seed {self.seed!r}: expected a whole number, 0 or more.")

    def run(self) -> Run:
        """Do what is left, write findings and report, and give the finished run."""
        from evenhand.report.build import prepared

        # Before the folder is made: a mistyped name leaves nothing behind.
        require_writable(self.folder)
        self._check_store()
        self._check_models()
        self.languages()
        if not self.named:
            self.folder, self.named = claimed(self.folder), True
        render = prepared(type(self), *(type(entry.probe) for entry in self.suite.entries))
        writer = RunWriter(self.folder)
        with writer.held():
            facts = self._begin()
            with writer.working(facts):
                if self.tell is not None:
                    for note in self.limits():
                        self.tell(note)
                self._probes(writer, facts)
            self._finish(writer, facts)
            run = Run.open(self.folder)
            writer.page(render(run))
        return run

    def again(
        self, scores: str, *, read_only: bool = True
    ) -> tuple[Run, dict[str, dict[str, ShardStore]]]:
        """The same from scores that are stored elsewhere, as evidence: no report, no lock.

        Gives the run, and for each model the shards that were used with the store of each. The
        store is only read, unless a model is asked for scores that are missing.
        """
        writer = RunWriter(self.folder)
        facts, self._place, self._read_only = self._fresh(), scores, read_only
        self._probes(writer, facts)
        self._finish(writer, facts)
        used: dict[str, dict[str, ShardStore]] = {}
        for spec, store in self._asked_of:
            used.setdefault(spec, {}).update(dict.fromkeys(store.used, store))
        return Run.open(self.folder), used

    def _finish(self, writer: RunWriter, facts: dict[str, Any]) -> None:
        facts["status"], facts["finished"] = "finished", now()
        by_attempt = scored_by_attempt(store for _, store in self._asked_of)  # none twice
        facts["shards"] = {"total": sum(by_attempt.values()), "scored_by_attempt": by_attempt}
        writer.facts(facts)

    def _check_store(self) -> None:
        """Make sure that the store is there, lets itself be read, and that workers see it."""
        if self.store is None:
            return
        place = place_of(self.store, self.folder)
        shared = getattr(self.executor, "require_shared", None)
        if shared is not None:
            shared(place)
        if is_remote(place):  # a folder is made when the run is known to belong there
            ShardStore(place)
        else:
            require_writable(local_path(place))

    def _check_models(self) -> None:
        """Load the audited model, make sure that the suite asks it something, load the others."""
        require_fit(self.suite, self.audited)
        for entry in self.suite.entries:
            self.model_for(entry)

    def languages(self) -> dict[str, Fluency]:
        """How well the audited model knows the languages that it is to be asked in.

        Raises:
            ModelError: not at all, and nobody insists.
        """
        left = [name for name in self.suite.languages if name not in self.fluency]
        self.fluency |= known_languages(self.audited, left, self.force)
        return self.fluency

    def _begin(self) -> dict[str, Any]:
        """The facts of this attempt; refuses a folder that holds other work."""
        if not (self.folder / "run.json").is_file():
            require_room(self.folder)
            facts = self._fresh()
        else:
            facts = Run.open(self.folder).facts
            refusal = self._refusal(facts)
            if refusal and not nothing_lost(self.folder, facts):
                raise RunError(refusal)
            facts = self._fresh() if refusal else self._again(facts)
        self._place, self._asked_of = facts.get("scores"), []
        return facts

    def _fresh(self) -> dict[str, Any]:
        return {
            "kind": AUDIT,
            "status": "running",
            "work": self.identity(),
            "models": {},
            "probes": {},
            "attempts": 1,
            "started": now(),
            "environment": environment(),
            "timings": {},
            **({"scores": place_of(self.store, self.folder)} if self.store else {}),
            **({"object": True} if self._object else {}),
            **({"forced": True} if self.force else {}),
            **({"call_limits": self.options.limits()} if self.options.limits() else {}),
        }

    def _again(self, facts: dict[str, Any]) -> dict[str, Any]:
        kept = place_of(self.store, self.folder) if self.store else None
        return {
            "kind": AUDIT,
            "timings": {},
            **({"scores": kept} if kept else {}),
            **facts,
            "status": "running",
            "attempts": facts["attempts"] + 1,
        }

    def _refusal(self, facts: dict[str, Any]) -> str:
        """Why the run in the folder is not this work; empty when it is."""
        theirs, mine = facts["work"], self.identity()
        for name in {**mine, **theirs}:
            if name != "store" and theirs.get(name) != mine.get(name):
                return (
                    f"{self.folder}: holds a run with another {name} "
                    f"({_short(theirs.get(name))} there, {_short(mine.get(name))} now). Choose "
                    "another folder with: --out DIR (out=DIR)"
                )
        models = {e.model or self.model: self.model_for(e) for e in self.suite.entries}
        changed = (self._changed(spec, model, facts) for spec, model in models.items())
        return next(filter(None, changed), "") or elsewhere(self.folder, facts, self.store)

    def _changed(self, spec: str, model: Model, facts: Mapping[str, Any]) -> str:
        """Why this is not the model of earlier attempts; empty when it is, or when it is new."""
        known = facts["models"].get(spec, {}).get("fingerprint")
        if not known or known == model.fingerprint:
            return ""
        return (
            f"{self.folder}: model {spec!r} has changed since this run began (fingerprint "
            f"{known[:12]} then, {model.fingerprint[:12]} now). Start a new run in another folder "
            f"with: --out DIR (out=DIR)"
        )

    def identity(self) -> dict[str, Any]:
        """What must be equal for two attempts to be the same work; no store is the folder."""
        chosen = self.options.chosen()
        return {
            "model": self.model,
            "as": self.kind,
            "dtype": chosen.pop("dtype", None),
            "seed": self.seed,
            "suite": self.suite.as_dict(),
            **({"compile": True} if chosen.pop("compile", False) else {}),
            **({"options": chosen} if chosen else {}),
            **({"store": self.store} if self.store else {}),
        }

    def _probes(self, writer: RunWriter, facts: dict[str, Any]) -> None:
        claims: list[Finding] = []
        placebos: dict[str, PlaceboRate] = {}
        unlisted: dict[str, Sequence[float]] = {}
        controls: dict[str, Any] = {}
        for entry in self.suite.entries:
            begun = time.monotonic()
            model = self._model_of(entry, facts)
            if why := entry.probe.lacks(model.answers):
                facts["probes"][entry.label] = {
                    "probe": entry.probe.name,
                    "model": model.name,
                    "skipped": f"{article(model.kind)} {model.kind} model {why}",
                }
                controls[entry.label] = Control(NOT_ASKED, why).as_dict()
                continue
            ask = self._ask(model, entry, facts)
            writer.facts(facts)  # with the models, so that who watches knows how much is to come
            probe = entry.probe.at_rate(self.suite.false_discovery_rate).asked_of(model.rung)
            measured = probe.run(ask, self.seed)
            claims += [_labelled(f, entry, model.name) for f in measured.findings]
            unlisted[entry.label] = measured.unlisted
            if measured.placebos:
                placebos[entry.label] = placebo_rate(measured.placebos)
            writer.table(entry.label, "items", measured.items)
            for name, table in measured.tables.items():
                writer.table(entry.label, name, table)
            summary = self._trusted(entry, measured.summary)
            answering = entry.probe.answering(summary).updated(measured.answering)
            controls[entry.label] = control_of(answering).as_dict()
            facts["probes"][entry.label] = {
                "probe": entry.probe.name,
                "title": entry.probe.title,
                "paper": entry.probe.paper,
                "model": model.name,
                "as_published": entry.probe.as_published,
                "settings": entry.probe.model_dump(mode="json"),
                "counts": dict(ask.counts.__dict__),
                "summary": summary,
                **({"limits": list(limits)} if (limits := self._limits(entry)) else {}),
            }
            if "usage" in facts["models"][entry.model or self.model]:
                self._model_of(entry, facts)  # with what its calls have used by now
            spent = facts["timings"].get(entry.label, 0.0) + time.monotonic() - begun
            facts["timings"][entry.label] = round(spent, 2)
            writer.facts(facts)
        facts |= self._asked(facts)
        facts[CONTROLS] = controls
        facts["placebos"] = {label: found.as_dict() for label, found in placebos.items()}
        writer.findings(self._decided(claims, placebos, unlisted))

    def _trusted(self, entry: Entry, summary: Mapping[str, Any]) -> dict[str, Any]:
        """A summary whose trust begins with how well the model knows the language."""
        seen = self.fluency.get(entry.probe.spoken)
        if seen is None or entry.model:
            return dict(summary)
        told = [*seen.notes(), *summary.get("trust", ())]
        return {**summary, "trust": told, "fluency": seen.as_dict()}

    def _asked(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """How the audited model was asked, and what became of the questions."""
        about = facts["models"].get(self.model, {})
        own = [e for e in facts["probes"].values() if e.get("model") == about.get("name")]
        told = [e.get("summary", {}) for e in own]
        known = {n: [t[n] for t in told if t.get(n) is not None] for n in TOLD}
        return {
            "rung": about.get("rung", ""),
            "chat": bool(about.get("chat")),
            "system": about.get("system", ""),
            **{n: sum(values) / len(values) if values else None for n, values in known.items()},
        }

    def _decided(
        self,
        claims: list[Finding],
        placebos: Mapping[str, PlaceboRate],
        unlisted: Mapping[str, Sequence[float]],
    ) -> list[Finding]:
        """The findings with the verdicts of the whole suite, and whether they count."""
        audited = self._load_as(self.model, self.kind).name
        kinds = {entry.label: type(entry.probe) for entry in self.suite.entries}
        found = decided(claims, audited, self.suite.false_discovery_rate, placebos, unlisted)
        return [marked(f, kinds[f.probe], audited) for f in found]

    def _limits(self, entry: Entry) -> tuple[str, ...]:
        return entry.probe.at_rate(self.suite.false_discovery_rate).limits(self.seed)

    def limits(self) -> list[str]:
        """What cannot become significant in this suite, told before it runs."""
        able = [e for e in self.suite.entries if not e.probe.lacks(self.model_for(e).answers)]
        return [f"{entry.label}: {note}" for entry in able for note in self._limits(entry)]

    def _ask(self, model: Model, entry: Entry, facts: dict[str, Any]) -> Ask:
        """The door to the entry's model, with doors to the helpers that its probe names."""
        options: dict[str, Any] = {
            "attempt": int(facts["attempts"]),
            "progress": self.progress,
            "executor": self.executor,
            "store": self._place,
            "read_only": self._read_only,
        }
        named = entry.probe.helpers()
        helpers = {
            name: Ask(self._same(spec, self._load_as(spec, None), facts), self.folder, **options)
            for name, spec in named.items()
        }
        ask = Ask(model, self.folder, **options, helpers=helpers)
        doors = zip((entry.model or self.model, *named.values()), (ask, *helpers.values()))
        self._asked_of += [(spec, a.store) for spec, a in doors if a.store is not None]
        return ask

    def _model_of(self, entry: Entry, facts: dict[str, Any]) -> Model:
        """The entry's model, the same as in earlier attempts."""
        return self._same(entry.model or self.model, self.model_for(entry), facts)

    def _same(self, spec: str, model: Model, facts: dict[str, Any]) -> Model:
        """The model, refused when it is not the one of earlier attempts."""
        changed = self._changed(spec, model, facts)
        if changed:
            raise RunError(changed)
        answers = sorted(model.answers)
        facts["models"][spec] = {
            **model.describe(),
            "answers": answers,
            "fingerprint": model.fingerprint,
        }
        return model

    @property
    def audited(self) -> Model:
        """The audited model, loaded once."""
        return self._load_as(self.model, self.kind)

    def model_for(self, entry: Entry) -> Model:
        """The entry's own model, or the audited one; loaded once."""
        return self._load_as(entry.model, entry.kind) if entry.model else self.audited

    def _load_as(self, spec: str, kind: str | None) -> Model:
        if spec not in self.loaded:
            options = self.options if spec == self.model else self.options.for_others()
            if not is_address(spec):
                self.loaded[spec] = resolve(spec, kind=kind, options=options)
                return self.loaded[spec]
            if self.named:  # what was paid for here is not paid again
                options = replace(options, calls=self.folder)
            self.loaded[spec] = resolve(spec, kind=kind, options=options, typed=False)
        return self.loaded[spec]


def _labelled(finding: Finding, entry: Entry, model: str) -> Finding:
    """The finding under the entry's label, with its model and whether it checks the method."""
    place = finding.id.split("/", 1)[-1]
    control = entry.probe.is_control(finding)
    return replace(
        finding, id=f"{entry.label}/{place}", probe=entry.label, model=model, control=control
    )


def _short(value: Any) -> str:
    text = value.get("name", "?") if isinstance(value, Mapping) else value
    return repr(text)


def audit(
    model: Any = DEFAULT_MODEL,
    suite: Asked | None = None,
    *,
    tokenizer: Any = None,
    out: str | Path | None = None,
    seed: int = 0,
    kind: str | None = None,
    options: LoadOptions | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    store: str | None = None,
    language: str | None = None,
    force: bool = False,
    **how: Any,
) -> Run:
    """Audit a model with a suite and give the finished run.

    Args:
        model: an alias, a folder, a file or a Hub id; or an object (`models.objects`): a
            transformers model with its tokenizer, a pipeline, a SentenceTransformer, gensim, spaCy
            or model2vec vectors, a function from texts to scores or labels.
        suite: the name of a suite, a TOML file, a Suite, or a list of probes (their names, or
            probe objects); by default the suite of the model's kind.
        tokenizer: of a transformers model object.
        out: the run folder; by default one below `runs/`. An unfinished run of the same work in
            it is resumed.
        seed: of every draw; same seed, same bytes.
        kind: overrides the model kind read from its configuration.
        options: dtype, device and so on.
        progress: is told how far the work has got; in a notebook a bar by default.
        executor: where shards are scored, e.g. `RayExecutor`; this process by default.
        store: keep score shards below this URL (s3://bucket/prefix) instead of in the folder.
        language: ask in this language (docs/languages.md), e.g. "es", or the folder of a pack.
        force: ask in a language that the model was found not to know.
        how: single options of `LoadOptions`, e.g. chat="off", system="Be brief."; of an object
            also `name`, and of a function `labels` and `version`.

    Raises:
        ModelError: nothing of the suite can be asked of the model, or no suite is for its kind.
    """
    told, how = separated(how)
    with lent(model):
        job = plan_audit(
            model,
            suite,
            tokenizer=tokenizer,
            told=told,
            out=out,
            seed=seed,
            kind=kind,
            options=with_options(options, how),
            progress=progress or usual(),
            executor=executor,
            store=store,
            language=language,
            force=force,
        )
        return job.run()


def plan_audit(
    model: Any,
    suite: Asked | None = None,
    *,
    tokenizer: Any = None,
    told: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    store: str | None = None,
    language: str | None = None,
    typed: bool = True,
    **options: Any,
) -> Audit:
    """An audit before it is run: the suite chosen, the folder named, nothing loaded.

    `told` is what is said about an object: its name, labels and version. `typed` is whether the
    user named the model, or a run folder did: only the address of the first is remembered.
    """
    place = None if store is None else settled(store)
    kind = options.get("kind")
    if isinstance(model, str | Path):
        no_extras(model, tokenizer, told or {})
        model = safe(as_typed(model))
    else:
        asked = options.get("options")
        model = as_model(model, tokenizer=tokenizer, kind=kind, options=asked, **(told or {}))
    chosen = choose_suite(model, suite, kind, language)
    name = model if isinstance(model, str) else model.name
    loaded = {} if isinstance(model, str) else {name: model}
    called = name
    if is_address(name):
        address = Address.of(name, options["options"].model, options["options"].base_url)
        called = address.called
        if options.get("executor") is not None:
            raise SpecError(
                f"{name!r}: calls to an address are made from this process. Leave --executor and "
                f"--devices out; say how many calls at once with: --concurrency N"
            )
        if typed:
            remember(address)
    folder = Path(out) if out else default_folder(called, chosen.name)
    return Audit(chosen, name, folder, named=bool(out), loaded=loaded, store=place, **options)


def resume(
    folder: Path,
    *,
    progress: Progress | None = None,
    executor: Executor | None = None,
    model: str | Model | None = None,
    **how: Any,
) -> Run:
    """Resume an audit; what it was asked is in its run.json.

    Args:
        model: the address of the run's server, where this user has not named it before; or the
            model of the run, where it was a Python object.
        how: other limits of speed and spending than at first (`LoadOptions.limits`).

    Raises:
        RunError: the run asks a server that the user has not named.
    """
    run = Run.open(folder)
    if isinstance(model, str):
        name_address(run, model)
        model = None
    require_named(run, lambda address: f"evenhand resume {_quoted(folder)} --model {address}")
    return asked_again(run, out=folder, model=model, progress=progress, executor=executor, **how)


def asked_again(
    run: Run,
    *,
    out: Path,
    suite: Suite | None = None,
    model: Model | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    **how: Any,
) -> Run:
    """The model of a run asked again as it was, with its own suite or another, into a folder.

    `model` is needed where it was a Python object. Servers that the run names are asked if the
    user has named them, too (`models.endpoints.known`).
    """
    work, folder = run.facts["work"], run.folder
    if run.facts.get("object") and model is None:
        raise RunError(
            f"{folder}: the model {work['model']!r} of this run was a Python object. Resume it "
            f"from Python with the same call: evenhand.audit(model, suite, out={str(folder)!r})"
        )
    suite = suite or parse_suite(work["suite"], f"{folder}/run.json", work["suite"]["name"])
    asked = model or work["model"]
    with lent(asked):
        job = plan_audit(
            asked,
            suite,
            out=out,
            seed=int(work["seed"]),
            kind=work.get("as"),
            options=options_of(run.facts, **how),
            progress=progress or usual(),
            executor=executor,
            store=work.get("store"),
            force=bool(run.facts.get("forced")),
            typed=False,
        )
        return job.run()


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


def options_of(facts: Mapping[str, Any], **how: Any) -> LoadOptions:
    """How the audited model of a run was loaded and asked."""
    work = facts["work"]
    places = {m["device"] for m in facts["models"].values() if m.get("device")}
    return LoadOptions(
        dtype=work.get("dtype"),
        device="cpu" if places == {"cpu"} else None,
        compile=bool(work.get("compile")),
        **{**work.get("options", {}), **facts.get("call_limits", {}), **how},
    )
