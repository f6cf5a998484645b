"""Are distractors valid? A sheet for people to fill in, and what they said (Table 7).

A valid distractor is grammatical and fluent, but neither plausible nor similar to the right
answer. Each is scored from 1 to 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.probes.reading import Reader, Result, Seed, Shown, number
from evenhand.runs.finding import NAN
from evenhand.runs.record import Run
from evenhand.stats import bootstrap
from evenhand.writing import write_csv

SCALES = ("grammar", "fluency", "plausibility", "similarity")
COLUMNS = ("situation", "answer", "distractor")


def write_sheet(distractors: pa.Table, path: Path, *, size: int = 1_000, seed: int = 0) -> int:
    """Write a random sample of distractors with empty columns for the four scores.

    Group and success are left out, so that whoever scores is blind to them. Gives the number of
    rows.
    """
    rows = list({tuple(r[c] for c in COLUMNS): r for r in distractors.to_pylist()}.values())
    order = np.random.default_rng(seed).permutation(len(rows))[:size]
    chosen = ([*(rows[i][c] for c in COLUMNS), "", "", "", ""] for i in order)
    write_csv(path, [*COLUMNS, *SCALES], chosen)
    return len(order)


@dataclass(frozen=True)
class Scale:
    """What people said on one scale; empty cells are left out."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class ValidityResult(Result):
    """Mean, standard deviation and 95 % interval of each scale."""

    called: ClassVar[str] = "validity"

    rows: int
    grammar: Scale
    fluency: Scale
    plausibility: Scale
    similarity: Scale

    def shown(self) -> Iterator[Shown]:
        found = [(name, getattr(self, name)) for name in SCALES]
        cells = [[name, str(s.n), number(s.mean, ".2f"), number(s.sd, ".2f")] for name, s in found]
        yield Shown(f"{self.rows} distractors", ["scale", "n", "mean", "sd"], cells)


@dataclass(frozen=True)
class SheetWritten(Result):
    """A sheet that waits for people."""

    called: ClassVar[str] = "validity"

    sheet: str
    distractors: int

    def shown(self) -> Iterator[Shown]:
        yield Shown(f"Written: {self.sheet} ({self.distractors} distractors to score from 1 to 5)")


def read_sheet(path: Path, *, seed: int = 0) -> ValidityResult:
    """What people filled in."""
    table = read_table(path, text=COLUMNS, needed=SCALES)
    scales = []
    for scale in SCALES:
        values = table.numbers(scale)
        values = values[~np.isnan(values)]
        wrong = values[(values < 1) | (values > 5)]
        if len(wrong):
            raise DataError(f"{path}, column {scale}: '{wrong[0]:g}' is outside 1 to 5.")
        mean = float(values.mean()) if len(values) else NAN
        if len(values) < 2:
            scales.append(Scale(len(values), mean, NAN, NAN, NAN))
            continue
        found = bootstrap.interval(values, seed=seed)
        sd = float(values.std(ddof=1))
        scales.append(Scale(len(values), mean, sd, float(found.low), float(found.high)))
    return ValidityResult(table.n_rows, *scales)


class ValidityReader(Reader):
    name = "validity"
    help = "Are distractors valid? With --run, write a sheet to score; without, read scores back."

    run: Path | None = Field(None, description="Write a sheet from this run.")
    sheet: Path = Field(Path("validity.csv"), description="The sheet to write, or to read back.")
    size: int = Field(1_000, ge=1, description="Distractors on the sheet.")
    seed: Seed = 0

    def read(self) -> ValidityResult | SheetWritten:
        if self.run is None:
            return read_sheet(self.sheet, seed=self.seed)
        table = Run.open(self.run).table("discovery", "distractors")
        count = write_sheet(table, self.sheet, size=self.size, seed=self.seed)
        return SheetWritten(str(self.sheet), count)
