"""Commands that ask a model: audit, resume, probe, check."""

from __future__ import annotations

import contextlib
import json as jsonlib
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, Seed

if TYPE_CHECKING:
    from evenhand.audit.auditing import Audit
    from evenhand.models.protocol import LoadOptions
    from evenhand.runner.job import Executor

Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. One that holds the same work is resumed."),
]
Kind = Annotated[
    str | None,
    typer.Option("--as", help="Treat the model as causal, masked, span, choice, ..."),
]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16, float16; default by machine.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; default: a GPU if present.")]
Compile = Annotated[
    bool,
    typer.Option("--compile", help="Compile the layers first: 3 to 8 % faster on a GPU."),
]
Devices = Annotated[
    str | None,
    typer.Option(help="Several of this machine: all, or cuda:0,cuda:1; default: one."),
]
Model = Annotated[
    str,
    typer.Argument(help="Alias, folder, .gguf or vector file, or Hub id (evenhand ls models)."),
]
SuiteName = Annotated[
    str | None,
    typer.Option(help="A suite or TOML file (evenhand ls suites); default: by kind of model."),
]
Budget = Annotated[
    str | None,
    typer.Option(help="Time for the run, after loading and sizing: 90s, 5m, 1h; samples to fit."),
]
Where = Annotated[str, typer.Option("--executor", help="local | ray: where shards are scored.")]
Address = Annotated[
    str | None,
    typer.Option(help="ray: HOST:PORT of a cluster, or auto; default: RAY_ADDRESS, or one here."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="ray: how many models; default: one per GPU or two CPUs of a node."),
]
Store = Annotated[
    str | None,
    typer.Option(help="Keep score shards at this URL, e.g. s3://bucket/prefix; default: the run."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the probe as name=value (repeatable)."),
]


def audit(
    *,
    model: Model = "smollm2-135m",
    suite: SuiteName = None,
    out: Out = None,
    seed: Seed = 0,
    kind: Kind = None,
    dtype: Dtype = None,
    device: Device = None,
    devices: Devices = None,
    compiled: Compile = False,
    budget: Budget = None,
    executor: Where = "local",
    address: Address = None,
    workers: Workers = None,
    store: Store = None,
    json: Json = None,
) -> None:
    """Audit a model: run a suite of probes, write findings and a report.

    Without a model it takes smollm2-135m, whose weights come from the package index; without a
    suite the one of the model's kind. Ctrl-C loses nothing: it prints the command that resumes.
    """
    from evenhand.audit.auditing import plan_audit

    place = make_executor(executor, address, workers, devices)
    options = _loading(dtype, _first(devices, device), compiled)
    job = plan_audit(
        model, suite, out=out, seed=seed, kind=kind, options=options, executor=place, store=store
    )
    _run(job, budget, json)


def probe(
    *,
    name: Annotated[str, typer.Argument(help="Which probe (evenhand ls probes).")],
    model: Model = "smollm2-135m",
    settings: Settings = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="divergence: a file with the columns context_a, context_b."),
    ] = None,
    word_lists: Annotated[
        Path | None,
        typer.Option(help="underspecified: a directory in UnQover's published format."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Benchmarks: the published file or folder to read.")
    ] = None,
    as_published: Annotated[
        bool, typer.Option(help="Follow the paper's released code to the digit.")
    ] = False,
    out: Out = None,
    seed: Seed = 0,
    kind: Kind = None,
    dtype: Dtype = None,
    device: Device = None,
    devices: Devices = None,
    compiled: Compile = False,
    budget: Budget = None,
    executor: Where = "local",
    address: Address = None,
    workers: Workers = None,
    store: Store = None,
    json: Json = None,
) -> None:
    """Run one probe on a model, with any of its settings.

    Example: evenhand probe underspecified smollm2-135m --set pairs=20 --set templates=1
    """
    from evenhand.audit.auditing import plan_audit
    from evenhand.audit.suites import parse_suite
    from evenhand.probes.registry import probe_class

    read = "data" if "data" in probe_class(name).model_fields else "file"
    files = {"file": pairs, "word_lists": word_lists, **({read: data} if data else {})}
    row = {"name": name, **parse_settings(settings or [])}
    row |= {key: str(path) for key, path in files.items() if path is not None}
    row |= {"as_published": True} if as_published else {}
    suite = parse_suite({"name": name, "probe": [row]}, f"probe {name}", name)
    place = make_executor(executor, address, workers, devices)
    options = _loading(dtype, _first(devices, device), compiled)
    job = plan_audit(
        model, suite, out=out, seed=seed, kind=kind, options=options, executor=place, store=store
    )
    _run(job, budget, json)


def resume(
    *,
    run: Annotated[Path, typer.Argument(help="The folder of an audit or a study.")],
    devices: Devices = None,
    executor: Where = "local",
    address: Address = None,
    workers: Workers = None,
    json: Json = None,
) -> None:
    """Resume a run that was interrupted or killed. Finished work is not repeated."""
    from evenhand.runs.kinds import resume as do_the_rest

    place = make_executor(executor, address, workers, devices)
    with interruptible(run), output.RichProgress() as progress:
        finished = do_the_rest(run, progress=progress, executor=place)
    output.give(finished, json)


def check(
    *,
    model: Model = "smollm2-135m",
    suite: SuiteName = None,
    seed: Seed = 0,
    kind: Kind = None,
    dtype: Dtype = None,
    device: Device = None,
    compiled: Compile = False,
    json: Json = None,
) -> None:
    """Say what a suite would ask, how much it costs, and show an example. Writes no run.

    Time and memory come from a few questions of each probe, asked of the model for some seconds.
    """
    from evenhand.audit.planning import check as look_ahead

    options = _loading(dtype, device, compiled)
    rows = [r.as_dict() for r in look_ahead(model, suite, seed=seed, kind=kind, options=options)]
    if output.write_json({"probes": rows}, json):
        return
    short = {"cpu_seconds": "cpu s", "seconds": "s", "load_s": "load s", "memory_mib": "MiB"}
    hidden = ("example", "notes")
    shown = [{short.get(k, k): v for k, v in row.items() if k not in hidden} for row in rows]
    output.print_table(shown, f"{suite or 'default suite'} on {model}")
    for row in rows:
        output.console().print(f"\n{row['probe']}: {row['example']}", markup=False)
        for note in row["notes"]:
            output.console().print(f"  {note}", markup=False)


def make_executor(
    name: str, address: str | None, workers: int | None = None, devices: str | None = None
) -> Executor | None:
    """Where shards are scored: None for this process."""
    from evenhand.errors import SpecError, need, unknown

    if name not in ("local", "ray"):
        raise SpecError(unknown("executor", name, ("local", "ray"), where="--executor"))
    if name == "local":
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


def _loading(dtype: str | None, device: str | None, compiled: bool) -> LoadOptions:
    from evenhand.models.protocol import LoadOptions

    return LoadOptions(dtype=dtype, device=device, compile=compiled)


def _run(job: Audit, budget: str | None, json: str | None) -> None:
    """Run an audit with a banner, progress and the way to resume it; give its result."""
    from evenhand import __version__
    from evenhand.audit.planning import fit_to_budget, seconds

    screen = output.console(stderr=True)
    if budget is not None:
        for note in fit_to_budget(job, seconds(budget)):
            screen.print(f"  budget {budget}: {note}", markup=False)
    banner = f"evenhand {__version__}  {job.model}  suite {job.suite.name}  seed {job.seed}"
    with interruptible(lambda: job.folder), output.RichProgress(banner) as progress:
        job.progress = progress
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
        output.console(stderr=True).print(
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
