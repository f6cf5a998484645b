"""Findings in other tools' formats. Each format gives file names and their bytes."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import DataError, RunError, SpecError, unknown
from evenhand.exports.common import for_others
from evenhand.runs.record import Run
from evenhand.writing import write_bytes

Files = dict[str, bytes]


@dataclass(frozen=True)
class Format:
    """Export format: its description, and the place of the function that makes its files."""

    what: str
    maker: str

    def make(self, run: Run) -> Files:
        module, name = self.maker.split(":")
        function: Callable[[Run], Files] = getattr(
            importlib.import_module(f"evenhand.exports.{module}"), name
        )
        return for_others(function(run))


FORMATS = {
    "csv": Format("findings for spreadsheets", "common:csv_files"),
    "parquet": Format("findings as columns", "common:parquet_files"),
    "lm-eval": Format("results JSON of lm-evaluation-harness", "records:lm_eval_files"),
    "eee": Format("Every Eval Ever 0.3.0: a record per model, and its items", "records:eee_files"),
    "model-index": Format("YAML for a Hugging Face model card's header", "cards:index_files"),
    "model-card": Format("a model card's section on bias, in Markdown", "cards:card_files"),
    "cyclonedx": Format(
        "CycloneDX 1.6: model card in a bill of materials", "cards:cyclonedx_files"
    ),
    "junit": Format("JUnit XML for continuous integration", "checks:junit_files"),
    "sarif": Format("SARIF 2.1.0 for code scanning", "checks:sarif_files"),
    "summary": Format("a gate's outcome in Markdown, for a CI job's page", "checks:summary_files"),
    "figures": Format("every chart as SVG, PNG, PDF and Vega-Lite", "common:figure_files"),
}


def export(run: Run, name: str) -> Files:
    """Return the files of one format.

    Raises:
        SpecError: no such format.
        RunError: the run has no findings yet.
    """
    if name not in FORMATS:
        raise SpecError(unknown("format", name, FORMATS, where="export"))
    if run.status != "finished":
        raise RunError(
            f"{run.folder}: the run is {run.status!r}; only finished runs are exported. Resume "
            f"it with: evenhand resume {shlex.quote(str(run.folder))}"
        )
    return FORMATS[name].make(run)


def write(files: Files, out: Path) -> list[Path]:
    """Write files into a folder, or a single file to `out` if that names a file."""
    single = len(files) == 1 and not out.is_dir() and (out.suffix or os.path.lexists(out))
    if not single:
        if out.exists() and not out.is_dir():
            raise DataError(f"{out}: is no folder, which {len(files)} files need. Give --out DIR.")
        out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, raw in files.items():
        target = out if single else out / name
        write_bytes(target, raw)
        written.append(target)
    return written
