"""Commands that ask a model: audit, resume, probe, plan."""

from __future__ import annotations

import contextlib
import inspect
import json as jsonlib
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.from_settings import option
from evenhand.cli.options import Chat, Json, Seed, System, Way, place

if TYPE_CHECKING:
    from evenhand.audit.auditing import Audit
    from evenhand.models.protocol import LoadOptions
    from evenhand.runner.job import Executor

Where = Annotated[str, typer.Option("--executor", help="Where shards are scored.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="ray: HOST:PORT of a cluster, or auto; default: RAY_ADDRESS, or a local one."
    ),
]


def _known(kind: Any, help: str, *names: str, **limits: Any) -> Any:
    return Annotated[kind, typer.Option(*names, help=help, **limits)]


OPTIONS: dict[str, tuple[Any, Any]] = {
    "model": (
        Annotated[
            str,
            typer.Argument(
                help="Alias, folder, file, Hub id or http://HOST/v1 (evenhand ls models)."
            ),
        ],
        "smollm2-135m",
    ),
    "suite": (
        _known(str | None, "A suite or TOML file (evenhand ls suites); default: by kind of model."),
        None,
    ),
    "out": (
        Annotated[
            Path | None, place("--out", help="Run folder. One that holds the same work is resumed.")
        ],
        None,
    ),
    "seed": (Seed, 0),
    "language": (
        _known(
            str | None,
            "Ask in this language, e.g. es or ko (evenhand ls languages), or that of a pack.",
        ),
        None,
    ),
    "force": (_known(bool, "Ask in a language that the model does not know."), False),
    "kind": (
        _known(
            str | None,
            "The kind of the model (causal, masked, span, choice, encoder), whatever its "
            "files say.",
            "--as",
        ),
        None,
    ),
    "dtype": (
        _known(str | None, "float32, bfloat16, float16; default: depends on the machine."),
        None,
    ),
    "load": (
        _known(
            str | None, "Weights whole, or packed: 8bit, 4bit (pip install 'evenhand[packed]')."
        ),
        None,
    ),
    "revision": (
        _known(str | None, "Hub id: this commit, branch or tag; default: the newest."),
        None,
    ),
    "device": (_known(str | None, "cpu, cuda, cuda:1; default: a GPU if present."), None),
    "devices": (
        _known(str | None, "Several devices of this machine: all, or cuda:0,cuda:1; default: one."),
        None,
    ),
    "compiled": (
        _known(bool, "Compile the layers first: 3 to 8 % faster on a GPU.", "--compile"),
        False,
    ),
    "chat": (Chat, None),
    "system": (System, None),
    "way": (Way, None),
    "budget": (
        _known(
            str | None,
            "Time for the run, after loading and sizing: 90s, 5m, 1h; items are sampled to fit.",
        ),
        None,
    ),
    "executor": (Where, "local"),
    "address": (Address, None),
    "workers": (
        _known(
            int | None,
            "ray: how many models; default: one per GPU, or per two CPUs, of a node.",
            min=1,
        ),
        None,
    ),
    "store": (
        _known(
            str | None,
            "Keep score shards at this URL, e.g. s3://bucket/prefix; default: in the run.",
        ),
        None,
    ),
    "named": (_known(str | None, "Address: the model's name on that server.", "--model"), None),
    "base_url": (_known(str | None, "openai:NAME: the address of another server."), None),
    "rung": (
        _known(int | None, "Address: ask this way; default: the best that is sound.", min=1, max=5),
        None,
    ),
    "concurrency": (
        _known(int | None, "Address: simultaneous calls; default: adapts to the server.", min=1),
        None,
    ),
    "price_in": (_known(float | None, "Address: price per million input tokens.", min=0), None),
    "price_out": (_known(float | None, "Address: price per million output tokens.", min=0), None),
    "max_cost": (
        _known(float | None, "Address: stop before spending more than this (needs prices).", min=0),
        None,
    ),
    "json": (Json, None),
}
"""Every option of a command that asks a model, with its default."""
POWER, ERROR = 0.8, 0.05
PLACES = ("devices", "executor", "address", "workers")
LIMITS = ("concurrency", "price_in", "price_out", "max_cost")
ASKING = ("chat", "system", "way")
LOADING = (
    "dtype",
    "load",
    "revision",
    "device",
    "compiled",
    *ASKING,
    "named",
    "base_url",
    "rung",
    *LIMITS,
)
FIELDS = {"compiled": "compile", "named": "model"}
"""Options whose fields of `LoadOptions` are called otherwise."""
PROBE: dict[str, tuple[Any, Any]] = {
    "name": (
        Annotated[
            str,
            typer.Argument(help="Which probe to run (evenhand ls probes), or a file: ./mine.py"),
        ],
        ...,
    ),
    "model": OPTIONS["model"],
    "settings": (_known(list[str] | None, "A setting of the probe (repeatable).", "--set"), None),
    "pairs": (
        _known(
            Path | None, "divergence, counterfactual: a file that says the same thing in two ways."
        ),
        None,
    ),
    "word_lists": (
        _known(Path | None, "underspecified: a directory in UnQover's published format."),
        None,
    ),
    "data": (_known(Path | None, "Benchmarks: the published file or folder to read."), None),
    "as_published": (_known(bool, "Follow the paper's released code to the digit."), False),
}


def _command(work: Callable[..., None], known: Mapping[str, tuple[Any, Any]]) -> None:
    """Give a function the options by which typer calls it."""
    made = (
        option(n, kind, *(() if default is ... else (default,)))
        for n, (kind, default) in known.items()
    )
    work.__signature__ = inspect.Signature(list(made))  # type: ignore[attr-defined]
    work.__annotations__ = {name: kind for name, (kind, _) in known.items()}


def audit(model: str, suite: str | None, **given: Any) -> None:
    """Audit a model: run a suite of probes, write findings and a report.

    Without a model it audits smollm2-135m, whose weights come from the package index; without a
    suite it runs the one for the model's kind. Ctrl-C loses nothing: it prints the command that
    resumes the run.
    """
    _ask(model, suite, **given)


def probe(
    name: str,
    model: str,
    settings: list[str] | None,
    *,
    pairs: Path | None,
    word_lists: Path | None,
    data: Path | None,
    as_published: bool,
    **given: Any,
) -> None:
    """Run one probe on a model, with any of its settings.

    Example: evenhand probe underspecified smollm2-135m --set pairs=20 --set templates=1
    A probe of your own needs no installation: evenhand probe ./mine.py smollm2-135m
    """
    from evenhand.audit.suites import parse_suite
    from evenhand.probes.registry import probe_class, probe_from_file

    if name.endswith(".py"):
        name = probe_from_file(name).name
    known = probe_class(name).model_fields
    read, two = "data" if "data" in known else "file", "file" if "file" in known else "pairs"
    files = {two: pairs, "word_lists": word_lists, **({read: data} if data else {})}
    row = {"name": name, **parse_settings(settings or [])}
    row |= {key: str(path) for key, path in files.items() if path is not None}
    row |= {"as_published": True} if as_published else {}
    _ask(model, parse_suite({"name": name, "probe": [row]}, f"probe {name}", name), **given)


def resume(run: Path, *, json: str | None, **where: Any) -> None:
    """Resume a run that was interrupted or killed. Finished work is not repeated."""
    from evenhand.runs.kinds import resume as do_the_rest

    limits = {n: v for n in (*LIMITS, "model") if (v := where.pop(n)) is not None}
    place = make_executor(**where)
    with interruptible(run), output.RichProgress() as progress:
        finished = do_the_rest(run, progress=progress, executor=place, **limits)
    output.give(finished, json)


def _forecast(model: str, suite: str | None, json: str | None, given: dict[str, Any]) -> None:
    """What would be asked, with what it takes and an example of each probe."""
    from evenhand.audit.auditing import plan_audit
    from evenhand.audit.planning import forecast

    job = plan_audit(model, suite, options=_loading(given), **given)
    rows = [r.as_dict() for r in forecast(job)]
    seen = job.audited.introduction()
    if seen and json is None:
        output.print_table(seen[1], seen[0])
    if output.write_json({"probes": rows}, json):
        return
    short = {"cpu_seconds": "cpu s", "seconds": "s", "load_s": "load s", "memory_mib": "MiB"}
    hidden = ("example", "notes", "conversation")
    shown = [{short.get(k, k): v for k, v in row.items() if k not in hidden} for row in rows]
    output.print_table(shown, f"{suite or 'default suite'} on {model}")
    for row in rows:
        output.console().print(f"\n{row['probe']}: {row['example']}", markup=False)
        for note in row["notes"]:
            output.console().print(f"  {note}", markup=False)
        if row["conversation"]:
            output.console().print("  put to the model as:", markup=False)
            for line in row["conversation"].splitlines():
                output.console().print(f"  | {line}", markup=False, highlight=False, soft_wrap=True)


def plan(
    model: str,
    suite: str | None,
    *,
    json: str | None,
    **given: Any,
) -> None:
    """Say what an audit would ask, how long it would take and what it would cost, before it is run.

    Time and memory are estimated from a few questions of each probe, put to the model for some
    seconds; an example of each probe is shown. Nothing is written.

    With --margin, --power, --error, --within or --write: how many names, questions and items a run
    needs to see a difference of that size. That takes a pilot with the model (two minutes, or
    --budget), or a finished run given as MODEL, for the variance of each metric; all tests of the
    run are corrected for. --write FILE saves the suite that asks that much.
    """
    sizing = {name: given.pop(name) for name in PLAN}
    pilot = {name: given.pop(name) for name in ("out", "budget")}
    if (Path(model) / "run.json").is_file() or any([*sizing.values(), *pilot.values()]):
        _size(model, suite, json, sizing, {**given, **pilot})
    else:
        _forecast(model, suite, json, given)


def _size(
    model: str, suite: str | None, json: str | None, sizing: dict[str, Any], given: dict[str, Any]
) -> None:
    """How much must be asked to see a difference of the margin's size, from a pilot."""
    from evenhand.audit.sizing import PILOT, margins_of
    from evenhand.audit.sizing import plan as planned
    from evenhand.audit.toml import suite_toml
    from evenhand.writing import write_text

    options, write = _loading(given), sizing["write"]
    with output.RichProgress(f"pilot of {model}") as progress:
        found = planned(
            model,
            margin=margins_of(sizing["margin"] or ()),
            power=sizing["power"] or POWER,
            error=sizing["error"] or ERROR,
            within=sizing["within"],
            suite=suite,
            budget=given.pop("budget") or PILOT,
            progress=progress,
            options=options,
            **given,
        )
    if write is not None:
        write_text(write, suite_toml(found.suite.as_dict()) + "\n")
    if output.write_json(found.as_dict(), json):
        return
    output.print_plan(found)
    if write is not None:
        again = shlex.join(["evenhand", "audit", model, "--suite", str(write)])
        output.console().print(f"Run it:    {again}", markup=False, soft_wrap=True)


RUN = Annotated[Path, typer.Argument(help="The folder of an audit or a study.")]
PLAN: dict[str, tuple[Any, Any]] = {
    "margin": (
        _known(
            list[str] | None,
            "The size that matters: for all findings, or for an ID with * for any "
            "text (repeatable); default: each metric's own.",
        ),
        None,
    ),
    "power": (
        _known(
            float | None,
            f"How likely such a difference is to be seen; default {POWER}.",
            min=0.5,
            max=0.99,
        ),
        None,
    ),
    "error": (
        _known(
            float | None,
            f"Error rate of the run that is planned; default {ERROR}.",
            min=0.001,
            max=0.4,
        ),
        None,
    ),
    "within": (_known(bool, "Plan to show that an even model lies within the margin."), False),
    "write": (
        Annotated[
            Path | None, place("--write", help="Write the suite that asks that much (TOML).")
        ],
        None,
    ),
}
_command(audit, OPTIONS)
_command(probe, {**PROBE, **{n: known for n, known in OPTIONS.items() if n != "suite"}})
SERVER = _known(
    str | None,
    "The run's server (http://HOST/v1), if you never named it.",
    "--model",
    metavar="URL",
)
_command(
    resume,
    {
        "run": (RUN, ...),
        "model": (SERVER, None),
        **{n: OPTIONS[n] for n in (*PLACES, *LIMITS, "json")},
    },
)
_command(
    plan,
    {
        **{n: OPTIONS[n] for n in ("model", "suite")},
        **PLAN,
        **{n: OPTIONS[n] for n in ("out", "seed", "language", "kind", "budget", *LOADING, "json")},
    },
)


def _ask(model: str, suite: Any, *, budget: str | None, json: str | None, **given: Any) -> None:
    """Audit with the options of the command line, given by name."""
    from evenhand.audit.auditing import plan_audit

    place = {name: given.pop(name) for name in PLACES}
    given["device"] = _first(place["devices"], given["device"])
    executor, options = make_executor(**place), _loading(given)
    _run(plan_audit(model, suite, options=options, executor=executor, **given), budget, json)


def make_executor(
    executor: str, address: str | None, workers: int | None = None, devices: str | None = None
) -> Executor | None:
    """Where shards are scored: None for this process."""
    from evenhand.errors import SpecError, need, unknown

    if executor not in ("local", "ray"):
        raise SpecError(unknown("executor", executor, ("local", "ray"), where="--executor"))
    if executor == "local":
        for option, value in (("--address", address), ("--workers", workers)):
            if value is not None:
                raise SpecError(f"{option} {value!r} is for a cluster. Add: --executor ray")
        if devices is None:
            return None
        from evenhand.runner.devices import DevicesExecutor, parse_devices

        return DevicesExecutor(parse_devices(devices))
    if devices is not None:
        raise SpecError(
            f"--devices {devices!r} is for the local executor; Ray gives one GPU to each worker. "
            f"Say how many with: --workers N"
        )
    need("ray", extra="ray", what="--executor ray")
    from evenhand.runner.cluster import RayExecutor

    made = RayExecutor(address=address, workers=workers)
    made.knock()  # before a model is loaded
    return made


def _first(devices: str | None, device: str | None) -> str | None:
    """The device of the model itself: the one asked for, or the first of several."""
    from evenhand.errors import SpecError

    if devices is None:
        return device
    if device is not None:
        raise SpecError(f"--device {device!r} and --devices {devices!r}: give one of the two.")
    from evenhand.runner.devices import parse_devices

    return parse_devices(devices)[0]


def _loading(given: dict[str, Any]) -> LoadOptions:
    """How to load the model; these options are taken out of those given."""
    from evenhand.models.protocol import with_options

    chosen = {FIELDS.get(name, name): given.pop(name) for name in LOADING}
    return with_options(None, {n: value for n, value in chosen.items() if value is not None})


def _run(job: Audit, budget: str | None, json: str | None) -> None:
    """Run an audit with a banner, progress and the way to resume it; give its result."""
    from evenhand import __version__
    from evenhand.audit.planning import announced, fit_to_budget, seconds

    screen = output.console(stderr=True)
    if budget is not None:
        for note in fit_to_budget(job, seconds(budget)):
            screen.print(f"  budget {budget}: {note}", markup=False)
    for line in announced(job):
        screen.print(line, markup=False, soft_wrap=True)
    banner = f"evenhand {__version__}  {job.model}  suite {job.suite.name}  seed {job.seed}"
    with interruptible(lambda: job.folder), output.RichProgress(banner) as progress:
        job.progress, job.tell = progress, progress.note
        run = job.run()
    output.give(run, json)


@contextlib.contextmanager
def interruptible(place: Path | Callable[[], Path]) -> Iterator[None]:
    """On Ctrl-C or SIGTERM (a time limit of a cluster): say how to resume, exit 130.

    In messages RUN becomes this run's folder.
    """
    from evenhand.errors import EvenhandError
    from evenhand.runner.files import disk_trouble

    def folder() -> Path:
        return place() if callable(place) else place

    def again() -> str:
        begun = (folder() / "run.json").is_file()
        return f"evenhand resume {shlex.quote(str(folder()))}" if begun else "the same command"

    try:
        with disk_trouble(folder()), _terminable():
            yield
    except EvenhandError as error:
        raise type(error)(str(error).replace("evenhand resume RUN", again())) from error
    except KeyboardInterrupt as stop:
        output.console(stderr=True, always=True).print(
            f"\nInterrupted; finished work is kept. Resume with: {again()}",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from stop


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Inside: SIGTERM is treated as Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if usual is None else usual)


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Turn name=value options into settings; values are read as JSON where they can be.

    >>> parse_settings(["pairs=20", "attributes=nurse,doctor"])
    {'pairs': 20, 'attributes': ['nurse', 'doctor']}
    """
    from evenhand.errors import SpecError

    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SpecError(f"--set {pair!r}: expected name=value, for example --set pairs=20")
        try:
            found[name] = jsonlib.loads(value)
        except jsonlib.JSONDecodeError:
            found[name] = value.split(",") if "," in value else value
    return found
