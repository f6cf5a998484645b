"""A design of the underspecified probe summed block by block: numbers, examples, items.

Cells are taken in blocks of whole pairs as their scores arrive. What is kept: the sums of
`streamed.CellSums`, leans by pair and attribute, sums by [term, attribute, template] for the
tables behind charts, and the items, on disk where they are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import Asker
from evenhand.probes.shared.streaming import Items, block_ends, blocks, large
from evenhand.probes.underspecified.asking import TOLD, Answers, Asking
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design
from evenhand.probes.underspecified.leans import LeanSums
from evenhand.probes.underspecified.numbers import Sampling
from evenhand.probes.underspecified.refusals import Refusals
from evenhand.probes.underspecified.streamed import CellSums
from evenhand.probes.underspecified.tables import items_table
from evenhand.probes.underspecified.tables_summed import TableSums

if TYPE_CHECKING:
    from evenhand.probes.underspecified.probe import Underspecified

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
Blocks = Iterator[tuple[int, int, Answers]]


class Summed:
    """Everything a run says of a design, which need not have been in memory as a whole."""

    def __init__(self, probe: Underspecified, design: Design, seed: int, given: Blocks) -> None:
        self.design = design
        self.names = probe.cells(design.head(0), np.empty((0, 2)))
        self.sums = CellSums(self.names, Sampling(probe.resamples, seed=seed))
        self.tables = TableSums(self.names)
        self.leans = LeanSums(self.names)
        self.refusals = Refusals(self.names)
        kept = Items(large=large(int(design.asked_before(len(design)))))
        sums, counts = np.zeros(len(TOLD)), np.zeros(len(TOLD))
        for start, stop, answers in given:
            cells = probe.cells(design, answers.scores, np.arange(start, stop))
            whole = cells.head(max(0, design.negated_cells - start))  # all four inputs asked
            self.sums.add(whole)
            self.tables.add(whole)
            self.leans.add(cells, start)
            told = answers.told
            sums += np.nansum(told, axis=0)
            counts += (~np.isnan(told)).sum(axis=0)
            by_cell = told.reshape(-1, INPUTS_PER_CELL, len(TOLD))
            self.refusals.add(cells, by_cell)
            kept.add(items_table(cells, by_cell))
        self.told = np.divide(sums, counts, out=np.full(len(TOLD), np.nan), where=counts > 0)
        self.items = kept.found()


def asked(ask: Asker, way: Asking, design: Design, label: str) -> Blocks:
    """Answers about whole pairs of terms, in design order."""
    ends = list(block_ends(design.pair_ends))
    rows = (design.asked_before(ends) * way.rows).tolist()
    begins = [0, *ends]
    for k, (_, _, scores) in enumerate(blocks(ask, way.requests(design), rows, label)):
        yield begins[k], ends[k], way.answers(scores, design, begins[k], ends[k])


def held(design: Design, answers: Answers) -> Blocks:
    """The same blocks of answers that are there already."""
    start = 0
    for stop in block_ends(design.pair_ends):
        part = slice(start * INPUTS_PER_CELL, stop * INPUTS_PER_CELL)
        yield start, stop, Answers(answers.scores[part], answers.told[part])
        start = stop
