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
import fcntl
import hashlib
import io
import json
import platform
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand import __version__
from evenhand.errors import RunError, name_problem
from evenhand.runner.files import disk_errors, replace, replacing
from evenhand.runner.store import write_batches
from evenhand.runs.facts import FILES, FORMAT, NAME, SEAL, read_facts, sealed
from evenhand.runs.finding import Finding, from_json, to_json, to_table
from evenhand.runs.kinds import kind_of
from evenhand.strict import plain

STATUSES = ("running", "interrupted", "failed", "finished")


@dataclass(frozen=True)
class Run:
    """A run folder, read lazily.

    >>> run = Run(Path("runs/example"))
    >>> run.name
    'example'
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open an existing run folder.

        Raises:
            RunError: there is no run in that folder, its run.json is damaged, or its format is
                newer than this version.
        """
        run = cls(Path(folder))
        if not (run.folder / NAME).is_file():
            raise RunError(
                f"{folder}: no run.json there, so it is not a run folder. List runs with: "
                f"evenhand ls runs"
            )
        read_facts(run.folder)
        return run

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
    def findings(self) -> list[Finding]:
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
        return found if "kind" in facts else kind_of(facts).mark(facts, found)

    @property
    def strongest(self) -> list[Finding]:
        """What a reader should see first, as on the first screen: findings that count."""
        return list(kind_of(self.facts).story(self).strongest)

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

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
            raise RunError(f"{self.folder}: probe {probe!r} has no table {name!r}.")
        try:
            return pq.read_table(self.checked(path))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._spoiled(path, error) from error

    def checked(self, path: Path) -> Path:
        """A file of the folder, refused when it is not what the finished run wrote."""
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise self._spoiled(path, ValueError("it is a link that leads out of the run"))
        known = self.facts.get(FILES)
        name = path.relative_to(self.folder).as_posix()
        if known is not None and known.get(name) != digest(path, path.stat().st_mtime_ns):
            raise self._spoiled(path, ValueError("it is not what the run wrote"))
        return path

    def _spoiled(self, path: Path, error: Exception) -> RunError:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        again = f"evenhand resume {shlex.quote(str(self.folder))}"
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
        with disk_errors(self.folder):
            lock = open(self.folder / ".lock", "w")  # noqa: SIM115 - closed below
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunError(
                    f"{self.folder}: another process is working in this run folder. Wait for it, "
                    f"or choose another folder with: --out DIR"
                ) from error
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
            body[FILES] = {
                path.relative_to(self.folder).as_posix(): digest(path, path.stat().st_mtime_ns)
                for path in sorted(self.folder.glob("findings.*"))
                + sorted(self.folder.glob("probes/*/*.parquet"))
            }
        body = plain(body)
        body[SEAL] = sealed(body)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        replace(self.folder / NAME, (text + "\n").encode())

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
        replace(self.folder / "report.html", html.encode("utf-8", "backslashreplace"))


@lru_cache(1024)
def digest(path: Path, changed: int) -> str:
    """SHA-256 of a file that last changed at this time."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def environment() -> dict[str, str]:
    """Versions that a number may depend on."""
    from importlib import metadata

    versions = {"evenhand": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "transformers"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    versions["machine"] = f"{platform.system()} {platform.machine()}"
    return versions


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def runs_below(folder: Path) -> list[Run]:
    """Run folders directly below a folder, newest first."""
    if not folder.is_dir():
        return []
    found = [Run(p.parent) for p in folder.glob(f"*/{NAME}")]
    return sorted(found, key=_started, reverse=True)


def _started(run: Run) -> str:
    """When the run began; a damaged one goes last."""
    try:
        return str(run.facts.get("started", ""))
    except RunError:
        return ""
