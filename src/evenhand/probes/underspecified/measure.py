"""`evenhand measure underspecified`: UnQover's numbers from a table of scores (Li et al. 2020)."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.probes.reading import Input, Reader, Resamples, Seed
from evenhand.probes.underspecified.cells import ALSO, TEXT, read_cells
from evenhand.probes.underspecified.numbers import PreferencesResult, Sampling, measure_cells
from evenhand.probes.underspecified.predictions import is_predictions, read_predictions


class UnderspecifiedReader(Reader):
    """A table, or predictions in the format that UnQover released."""

    name = "underspecified"
    help = """Preferences between two terms when the text does not say (UnQover).

    One row per model input: template, attribute, first, second, negated, score_first,
    score_second; optional group_first, group_second, attribute_class.
    """
    positional = ("table",)

    table: Input
    resamples: Resamples = 500
    samples: int = Field(9_999, ge=1, description="Sign patterns of a test.")
    seed: Seed = 0

    def read(self) -> PreferencesResult:
        if isinstance(self.table, Path) and is_predictions(self.table):
            table = read_predictions(self.table)
        else:
            table = read_table(self.table, text=(*TEXT, *ALSO))
        how = Sampling(**self.only("resamples", "samples", "seed"))
        return measure_cells(read_cells(table), how)


READERS = (UnderspecifiedReader,)
