"""Cells of underspecified questions: four rows of a score table each.

One row per model input: `template, attribute, first, second, negated, score_first, score_second`,
and optionally `group_first, group_second, attribute_class`. The rows of both orders and both
questions form a cell; a cell that lacks one of its four rows is left out and listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import Labels, Table
from evenhand.errors import DataError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]

TEXT = ("template", "attribute", "first", "second")
ALSO = ("group_first", "group_second", "attribute_class")
COLUMNS = (*TEXT, "negated", "score_first", "score_second")


@dataclass(frozen=True)
class Cells:
    """All cells of a table: `scores` [cells, order, question, candidate], NaN where missing."""

    scores: Floats
    first: Codes
    second: Codes
    attribute: Codes
    template: Codes
    terms: tuple[str, ...]
    attributes: tuple[str, ...]
    templates: tuple[str, ...]
    groups: tuple[str, ...]
    group_of_term: Codes | None
    n_rows: int

    def kept(self) -> npt.NDArray[np.bool_]:
        """Which cells have all eight scores."""
        return np.asarray(~np.isnan(self.scores.sum(axis=(1, 2, 3))), np.bool_)

    def head(self, n: int) -> Cells:
        """The first n cells."""
        return replace(
            self,
            scores=self.scores[:n],
            first=self.first[:n],
            second=self.second[:n],
            attribute=self.attribute[:n],
            template=self.template[:n],
            n_rows=min(n, len(self.scores)) * 4,
        )


def read_cells(table: Table) -> Cells:
    """Put the rows of a table together to cells, checking every row."""
    table.require(COLUMNS)
    table = _without_blank(table)
    first, second, terms = _joined(table.labels("first"), table.labels("second"))
    _two_terms(table, first, second, terms)
    attribute, template = table.labels("attribute"), table.labels("template")
    sizes = [len(terms), len(terms), len(attribute.values), len(template.values)]
    parts = [np.minimum(first, second), np.maximum(first, second), attribute.codes, template.codes]
    if table.has("attribute_class"):
        kind = table.labels("attribute_class")
        sizes, parts = [*sizes, len(kind.values)], [*parts, kind.codes]
    known, cell = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    order = (first > second).astype(np.int64)
    question = table.flags("negated").astype(np.int64)
    slot = (cell * 2 + order) * 2 + question
    _no_repeats(table, slot, 4 * len(known))
    scores = np.full((4 * len(known), 2), np.nan)
    stated = table.scores("score_first"), table.scores("score_second")
    for position, values in enumerate(stated):
        # In the second order, the term named first is the cell's second candidate.
        scores[slot, position ^ order] = values
    groups, group_of_term = _groups(table, first, second, terms)
    codes = [np.asarray(code, np.int64) for code in np.unravel_index(known, sizes)]
    return Cells(
        scores=scores.reshape(-1, 2, 2, 2),
        first=codes[0],
        second=codes[1],
        attribute=codes[2],
        template=codes[3],
        terms=terms,
        attributes=attribute.values,
        templates=template.values,
        groups=groups,
        group_of_term=group_of_term,
        n_rows=table.n_rows,
    )


def _without_blank(table: Table) -> Table:
    """The table without optional columns that have no value in any row."""

    def blank(column: Any) -> bool:
        return all(v is None or v == "" or v != v for v in column.unique().to_pylist())

    kept = {
        name: column
        for name, column in table.columns.items()
        if name not in ALSO or not blank(column)
    }
    return Table(kept, table.source, table.n_rows)


def _joined(one: Labels, other: Labels) -> tuple[Codes, Codes, tuple[str, ...]]:
    """Two text columns on one list of values."""
    values = tuple(sorted({*one.values, *other.values}))
    place = {value: code for code, value in enumerate(values)}
    codes = [
        np.asarray([place[value] for value in side.values], np.int64)[side.codes]
        for side in (one, other)
    ]
    return codes[0], codes[1], values


def _two_terms(table: Table, first: Codes, second: Codes, terms: tuple[str, ...]) -> None:
    same = np.flatnonzero(first == second)
    if len(same):
        raise DataError(
            f"{table.source}, row {int(same[0]) + 1}: {terms[first[same[0]]]!r} is compared with "
            "itself. The columns first and second must name two terms."
        )


def _no_repeats(table: Table, slot: Codes, n_slots: int) -> None:
    counts = np.bincount(slot, minlength=n_slots)
    if counts.max(initial=0) > 1:
        rows = np.flatnonzero(slot == int(np.flatnonzero(counts > 1)[0])) + 1
        raise DataError(
            f"{table.source}, rows {int(rows[0])} and {int(rows[1])}: the same template, "
            f"attribute, terms, order and question twice ({int((counts > 1).sum())} such inputs). "
            "Keep one row per model input."
        )


def _groups(
    table: Table, first: Codes, second: Codes, terms: tuple[str, ...]
) -> tuple[tuple[str, ...], Codes | None]:
    given = [name for name in ("group_first", "group_second") if table.has(name)]
    if not given:
        return (), None
    table.require(("group_first", "group_second"))
    one, other, groups = _joined(table.labels("group_first"), table.labels("group_second"))
    of_term = np.zeros(len(terms), np.int64)
    of_term[first], of_term[second] = one, other
    for term, group in ((first, one), (second, other)):
        wrong = np.flatnonzero(of_term[term] != group)
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{table.source}, row {row + 1}: {terms[term[row]]!r} is in group "
                f"{groups[group[row]]!r} here and in {groups[of_term[term[row]]]!r} elsewhere. "
                "A term belongs to one group."
            )
    return groups, of_term
