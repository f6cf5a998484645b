"""`evenhand measure underspecified`: UnQover's numbers from a table of scores (Li et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import Field

from evenhand.corpora.tables import Table, read_table
from evenhand.probes.base import Measured
from evenhand.probes.reading import Claims, Input, Reader, Resamples, Seed
from evenhand.probes.underspecified.cells import ALSO, TEXT, Cells, read_cells
from evenhand.probes.underspecified.design import Design
from evenhand.probes.underspecified.leans import LeanSums, leanings, placebos
from evenhand.probes.underspecified.numbers import PreferencesResult, Sampling
from evenhand.probes.underspecified.predictions import is_predictions, read_predictions
from evenhand.probes.underspecified.streamed import measure_cells
from evenhand.words.lexicons.questions import Attribute, Subject, occupations


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
        cells = read_cells(table)
        result = measure_cells(cells, how)
        return result.telling(lambda: self._claims(cells, result, table))

    def _claims(self, cells: Cells, result: PreferencesResult, table: Table) -> Claims:
        from evenhand.probes.underspecified.asking import TOLD
        from evenhand.probes.underspecified.findings import Told
        from evenhand.probes.underspecified.probe import Underspecified
        from evenhand.probes.underspecified.tables import items_table, lean_table, summary
        from evenhand.probes.underspecified.tables_summed import tables_of

        if len(cells.groups) != 2:  # the probe compares two groups, or terms
            cells = replace(cells, groups=(), group_of_term=None)
        sums = LeanSums(cells)
        sums.add(cells)
        links = sums.links()
        rows = [replace(row, cell=-1) for row in leanings(cells, links)]  # its text is not known
        design = _design(cells, _classes(table))
        shares = bool(np.allclose(np.nansum(cells.scores, axis=-1)[cells.kept()], 1, atol=0.01))
        told = Told(design, cells, result, rows, shares, as_published=False)
        unknown = np.full((len(cells.first), 4, len(TOLD)), np.nan)
        found = Measured(
            told.findings(),
            items_table(cells, unknown),
            {**lean_table(told), **tables_of(result, design, cells)},
            {**summary(result, design, unknown), "trust": told.trust()},
            placebos(cells, links, self.seed),
        )
        lost = int((~cells.kept()).sum())
        probe = Underspecified.model_validate({})
        return Claims.of(probe, self, table.source, found, incomplete=lost)


def _classes(table: Table) -> dict[str, str]:
    """Attribute -> its class, where the table or the packaged list of occupations tells."""
    known = {a.name: a.attribute_class for a in occupations()}
    if table.has("attribute_class"):
        own = table.texts("attribute_class", "")
        known |= {a: c for a, c in zip(table.labels("attribute"), own) if c}
    return known


def _design(cells: Cells, classes: Mapping[str, str]) -> Design:
    """What was asked, as far as a table tells."""
    of = cells.group_of_term
    groups = [cells.groups[g] for g in of] if of is not None else list(cells.terms)
    subjects = tuple(Subject(t, g, {}, {}) for t, g in zip(cells.terms, groups))
    said = {a: (f"fits “{a}”", f"does not fit “{a}”") for a in cells.attributes}
    attributes = tuple(Attribute(a, classes.get(a, ""), {"": said[a]}) for a in cells.attributes)
    pairs, counts = np.unique(np.stack([cells.first, cells.second]), axis=1, return_counts=True)
    return Design(
        subjects, (), attributes, pairs[0], pairs[1], (), int(counts.sum()), np.cumsum(counts)
    )


READERS = (UnderspecifiedReader,)
