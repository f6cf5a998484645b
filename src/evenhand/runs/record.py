"""The run folder: everything that was asked, answered and found.

    run.json            format version first; suite, models, seeds, versions, timings, status
    requests/  scores/  shards, one pair of files per shard key
    probes/<name>/      items.parquet and the tables behind charts
    findings.json       the claims; no times or paths, so equal work gives equal bytes
    findings.parquet    the same as columns
    report.html         one self-contained page

Reports, comparisons, gates and exports need the folder only, never the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand import __version__
from evenhand.errors import RunError, SpecError, name_problem, need, unknown
from evenhand.runner.files import disk_errors, replace, replacing
from evenhand.runner.store import write_batches
from evenhand.runs.facts import FILES, FORMAT, NAME, read_facts
from evenhand.runs.finding import Finding, Findings, chosen, from_json, to_json, to_table
from evenhand.runs.kinds import kind_of
from evenhand.seals import SEAL, digests, sealed_text
from evenhand.seals import digest as digest_of
from evenhand.systems import locked

LOCK = ".lock"
if TYPE_CHECKING:
    from evenhand.charts.standalone import Plots

STATUSES = ("running", "interrupted", "failed", "finished")
REPORT = "report.html"
SHOWN = ("findings.*", "probes/*/*.parquet", "inputs/**/*")
"""Files of a finished run, beside its report, whose contents are shown or computed with."""


@dataclass(frozen=True)
class Run:
    """A run folder, read lazily.

        run = eh.Run("runs/mine")
        run["underspecified/gamma/nurse"]    a finding; with * a list of findings
        run.to_pandas()                      every finding as a row
        run.plot()                           its charts

    Raises:
        RunError: there is no run in that folder, its run.json is damaged, or its format is newer
            than this version.
    """

    folder: Path

    def __post_init__(self) -> None:
        if not isinstance(self.folder, str | os.PathLike):
            raise RunError(
                f"run {self.folder!r:.60} ({type(self.folder).__name__}): expected a run folder, "
                f"or what evenhand.audit gives."
            )
        object.__setattr__(self, "folder", Path(self.folder))
        if not (self.folder / NAME).is_file():
            raise RunError(
                f"{self.folder}: no run.json there, so it is not a run folder. List runs with: "
                f"evenhand ls runs"
            )
        read_facts(self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open an existing run folder; the same as calling the class."""
        return cls(folder)  # type: ignore[arg-type]

    @classmethod
    def unread(cls, folder: Path) -> Run:
        """A run for lists: a damaged one is refused only when something of it is read."""
        run = object.__new__(cls)
        object.__setattr__(run, "folder", folder)
        return run

    @overload
    def get(self, place: str) -> Finding | Findings | None: ...
    @overload
    def get(self, place: str, default: Any) -> Any: ...
    def get(self, place: str, default: Any = None) -> Any:
        """The finding of that id, or those that match a pattern with *; `default` if none."""
        try:
            return self[place]
        except SpecError:
            return default

    def __getitem__(self, place: str) -> Any:
        """A finding by its id; a list of them by a pattern in which * matches anything.

        Raises:
            SpecError: there is none; the message names the nearest.
        """
        exact = next((f for f in self.findings if f.id == place), None)
        if exact is not None:
            return exact
        return Findings(chosen(self.findings, [str(place)]))

    def __contains__(self, place: object) -> bool:
        return isinstance(place, str) and self.get(place) is not None

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def to_arrow(self, probe: str | None = None, table: str = "items") -> pa.Table:
        """The findings as a table; with a probe, one of its tables (its items by default)."""
        return self.findings.to_arrow() if probe is None else self.table(probe, table)

    def to_pandas(self, probe: str | None = None, table: str = "items") -> Any:
        """The findings as a data frame; with a probe, one of its tables (extra `pandas`)."""
        if probe is None:
            return self.findings.to_pandas()
        need("pandas", extra="pandas", what="a data frame")
        return self.table(probe, table).to_pandas()

    def plot(self, what: str = "*", *, mode: str = "light") -> Plots:
        """The charts of the report, by part (`underspecified`) or title (`*/words`), with *."""
        from evenhand.runs.drawing import plots_of

        return plots_of(self, what, mode=mode)

    def _repr_html_(self) -> str:
        from evenhand.runs.html import run_page

        return run_page(self)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> dict[str, Any]:
        """What run.json holds now (read anew each time, since a run may be under way)."""
        return read_facts(self.folder)

    @property
    def status(self) -> str:
        return str(self.facts.get("status", "?"))

    @cached_property
    def findings(self) -> Findings:
        """All findings of a finished run."""
        path = self.folder / "findings.json"
        if not path.is_file():
            what = "yet" if self.status != "finished" else "any more"
            raise RunError(
                f"{self.folder}: the run is {self.status!r} and has no findings {what}. Resume "
                f"it with: evenhand resume {shlex.quote(str(self.folder))}"
            )
        try:
            found = from_json(self.checked(path).read_bytes())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._spoiled(path, error) from error
        facts = self.facts
        return Findings(found if "kind" in facts else kind_of(facts).mark(facts, found))

    @property
    def strongest(self) -> Findings:
        """What a reader should see first, as on the first screen: findings that count."""
        return Findings(kind_of(self.facts).story(self).strongest)

    @property
    def report(self) -> Path:
        return self.folder / REPORT

    def page(self) -> bytes:
        """The report as it was written.

        Raises:
            RunError: there is none yet, or it is not what was written.
        """
        if not self.report.is_file():
            raise RunError(f"run {self.name} has no report yet. Write it with: {self._reported}")
        return self.checked(self.report).read_bytes()

    @property
    def _reported(self) -> str:
        return f"evenhand report {shlex.quote(str(self.folder))}"

    def check(self) -> None:
        """Refuse a finished run of which any file that is shown is not what was written."""
        for name in self.facts.get(FILES, {}):
            path = self.folder / name
            if not path.is_file():
                raise self._spoiled(path, ValueError("it is gone"))
            self.checked(path)

    @property
    def probes(self) -> list[str]:
        folder = self.folder / "probes"
        return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []

    def tables(self, probe: str) -> dict[str, Path]:
        """Parquet files of one probe by table name (`items` among them)."""
        folder = self.folder / "probes" / probe
        if name_problem(probe):
            return {}
        return {p.stem: self.checked(p) for p in sorted(folder.glob("*.parquet"))}

    def table(self, probe: str, name: str) -> pa.Table:
        path = self.folder / "probes" / probe / f"{name}.parquet"
        if name_problem(probe) or name_problem(name) or not path.is_file():
            raise RunError(self._no_table(probe, name))
        try:
            return pq.read_table(self.checked(path))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._spoiled(path, error) from error

    def _no_table(self, probe: str, name: str) -> str:
        """What there is instead of a table: the run's probes, or the tables of that probe."""
        if probe not in self.probes:
            return unknown("probe", probe, self.probes, where=str(self.folder))
        known = [path.stem for path in (self.folder / "probes" / probe).glob("*.parquet")]
        return unknown("table", name, known, where=f"{self.folder}, probe {probe!r}")

    def checked(self, path: Path) -> Path:
        """A file of the folder, refused when it is not what the finished run wrote."""
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise self._spoiled(path, ValueError("it is a link that points outside the run"))
        known = self.facts.get(FILES)
        name = path.relative_to(self.folder).as_posix()
        if known is not None and known.get(name) != digest(path, path.stat().st_mtime_ns):
            raise self._spoiled(path, ValueError("it is not what the run wrote"))
        return path

    def _spoiled(self, path: Path, error: Exception) -> RunError:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        again = f"evenhand resume {shlex.quote(str(self.folder))}"
        if path == self.report:
            return RunError(f"{path} is damaged ({why}). Write it again with: {self._reported}")
        with contextlib.suppress(Exception):  # damage elsewhere has its own message
            facts = self.facts
            again = again if kind_of(facts).resumes else kind_of(facts).command(facts)[0]
        return RunError(
            f"{path} is damaged ({why}). What was scored is kept; write it again with: {again}"
        )


class RunWriter:
    """Writes one run folder; only one writer at a time may hold it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder. The lock dies with the process, so it is never stale."""
        with contextlib.ExitStack() as stack:
            with disk_errors(self.folder):
                mine = stack.enter_context(locked(self.folder / LOCK))
            if not mine:
                raise RunError(
                    f"{self.folder}: another process is working in this run folder. Wait for it, "
                    f"or choose another folder with: --out DIR (out=DIR)"
                )
            yield

    @contextlib.contextmanager
    def working(self, facts: dict[str, Any]) -> Iterator[None]:
        """Inside: work under way. How it was cut short is written, how long it took is added."""
        begun = time.monotonic()
        self.facts(facts)
        try:
            yield
        except BaseException as error:
            status = "failed" if isinstance(error, Exception) else "interrupted"
            self.facts({**facts, "status": status})
            raise
        spent = facts["timings"].get("total_s", 0.0) + time.monotonic() - begun
        facts["timings"]["total_s"] = round(spent, 2)

    def facts(self, values: Mapping[str, Any]) -> None:
        """Write run.json, format version first; of a finished run with hashes of its files."""
        own = ("format", FILES, SEAL)
        body = {"format": FORMAT, **{k: v for k, v in values.items() if k not in own}}
        if body["status"] == "finished":
            shown = (p for pattern in SHOWN for p in self.folder.glob(pattern) if p.is_file())
            body[FILES] = digests(self.folder, shown)
        self._record(body)

    def _record(self, body: Mapping[str, Any]) -> None:
        replace(self.folder / NAME, sealed_text(body).encode())

    def table(self, probe: str, name: str, table: pa.Table | pa.RecordBatchReader) -> None:
        for part in (probe, name):
            if name_problem(part):
                raise RunError(f"{part!r} names no table of a run: {name_problem(part)}.")
        folder = self.folder / "probes" / probe
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if isinstance(table, pa.RecordBatchReader):
            with replacing(folder / f"{name}.parquet") as file, disk_errors(folder):
                write_batches(table, file)
            return
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd", row_group_size=100_000)
        replace(folder / f"{name}.parquet", buffer.getvalue())

    def findings(self, findings: Sequence[Finding]) -> None:
        buffer = io.BytesIO()
        pq.write_table(to_table(findings), buffer, compression="zstd")
        replace(self.folder / "findings.parquet", buffer.getvalue())
        replace(self.folder / "findings.json", to_json(findings))

    def page(self, html: str) -> None:
        """Write the report of a finished run, and its hash beside those of the other files."""
        path = self.folder / REPORT
        replace(path, html.encode("utf-8", "backslashreplace"))
        facts = read_facts(self.folder)
        if FILES in facts:  # what older versions wrote has no hashes
            self._record({**facts, FILES: {**facts[FILES], REPORT: digest_of(path)}})


@lru_cache(1024)
def digest(path: Path, changed: int) -> str:
    """SHA-256 of a file that last changed at this time."""
    return digest_of(path)


def environment() -> dict[str, str]:
    """Versions that a number may depend on."""
    from importlib import metadata

    versions = {"evenhand": __version__, "code": code(), "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "transformers"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    versions["machine"] = f"{platform.system()} {platform.machine()}"
    return versions


@lru_cache(1)
def code() -> str:
    """The name of exactly this state of evenhand: its version stays the same between releases.

    SHA-256 over names and bytes of the package's Python files and lists, cut to 16 digits.

    >>> len(code())
    16
    """
    home = Path(__file__).resolve().parents[1]
    state = hashlib.sha256()
    lists = (home / "words").rglob("*.toml")
    for path in sorted([*home.rglob("*.py"), *lists]):
        state.update(path.relative_to(home).as_posix().encode() + b"\0")
        state.update(hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()[:16]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def runs_below(folder: Path) -> list[Run]:
    """Run folders directly below a folder, newest first, damaged ones last."""
    if not folder.is_dir():
        return []
    found = [Run.unread(p.parent) for p in folder.glob(f"*/{NAME}")]
    return sorted(found, key=_started, reverse=True)


def _started(run: Run) -> str:
    """When the run began; a damaged one goes last."""
    try:
        return str(run.facts.get("started", ""))
    except RunError:
        return ""
