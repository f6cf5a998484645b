"""`evenhand measure underspecified`: UnQover's numbers from a table of scores (Li et al. 2020).

One row per model input: `template, attribute, first, second, negated, score_first, score_second`,
and optionally `group_first, group_second, attribute_class`. The rows of both orders and both
questions form a cell; a cell that lacks one of its four rows is left out and listed.

Predictions in the format that UnQover released are read too: one JSON object, one entry per ordered
pair of terms.

    {"female|male|Mary|John|0|None|was a nurse|was a nurse": {"context": ...,
       "q0": {"question": ..., "ans0": {"text", "start", "end"}, "ans1": {...}}, "q1": {...}}, ...}

q0 is the question, q1 its negation; ans0 belongs to the first subject. S = sqrt(start * end).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from evenhand.corpora.tables import Labels, Table, from_columns, read_table
from evenhand.errors import DataError
from evenhand.opening import opened, read_json
from evenhand.probes.reading import Claims, Input, Reader, Resamples, Seed
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.design import Cells, Design
from evenhand.probes.underspecified.numbers import CellSums, PreferencesResult, Sampling
from evenhand.probes.underspecified.probe import Sums, Underspecified
from evenhand.stats.pair_network import Codes
from evenhand.words.lexicons.questions import Attribute, Subject, occupations

TEXT = ("template", "attribute", "first", "second")
ALSO = ("group_first", "group_second", "attribute_class")
COLUMNS = (*TEXT, "negated", "score_first", "score_second")
PARTS = 8
ROUNDING = 1e-6
"""How far a float32 softmax may overshoot."""
_FIRST_KEY = re.compile(rb'\{\s*"((?:[^"\\]|\\.)*)"')


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
        cells = read_cells(table)
        numbers = CellSums(cells, Sampling(**self.only("resamples", "samples", "seed")))
        numbers.add(cells)
        result = numbers.measure()
        return result.telling(lambda: self._claims(cells, numbers, result, table))

    def _claims(
        self, cells: Cells, numbers: CellSums, result: PreferencesResult, table: Table
    ) -> Claims:
        whole = cells.kept()
        if len(cells.groups) != 2:  # the probe compares two groups, or terms
            cells = cells.without_groups()
        design = _design(cells, _classes(table))
        sums = Sums(cells)
        sums.add(cells, cells, 0, np.full((len(cells.first), 4, len(TOLD)), np.nan))
        shares = bool(np.allclose(np.nansum(cells.scores, axis=-1)[whole], 1, atol=0.01))
        probe = Underspecified.model_validate({})
        found = probe.conclude(
            design, result, numbers.pairs(), sums, shares=shares, seed=self.seed, texts=False
        )
        return Claims.of(probe, self, table.source, found, incomplete=int((~whole).sum()))


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


def is_predictions(path: Path) -> bool:
    """Whether a file looks like released predictions: one object whose first key has its bars.

    The name does not matter; packed files are unpacked.
    """
    try:
        with opened(path) as file:
            head = file.read(4_096).lstrip()
    except DataError:
        return False
    key = _FIRST_KEY.match(head)
    return key is not None and key[1].count(b"|") == PARTS - 1


def read_predictions(path: Path) -> Table:
    """Released predictions as a score table of the `measure underspecified` contract.

    Raises:
        DataError: no JSON, a key without its eight parts, or an answer without probabilities.
    """
    data = read_json(path, "released predictions")
    names = (
        "template",
        "attribute",
        "first",
        "second",
        "negated",
        "score_first",
        "score_second",
        "group_first",
        "group_second",
        "attribute_class",
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for key, record in data.items():
        parts = key.split("|")
        if len(parts) != PARTS:
            raise DataError(
                f"{path}: key {key!r} has {len(parts)} parts; expected cluster1|cluster2|subject1|"
                "subject2|template|class|attribute|attribute."
            )
        for negated, question in ((False, "q0"), (True, "q1")):
            scores = [_score(path, key, record, question, who) for who in ("ans0", "ans1")]
            row = (parts[4], parts[6], parts[2], parts[3], negated, *scores, *parts[:2], parts[5])
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    if set(columns["group_first"]) | set(columns["group_second"]) == {"None"}:
        del columns["group_first"], columns["group_second"]
    return from_columns(dict(columns), str(path))


def _score(path: Path, key: str, record: Any, question: str, who: str) -> float:
    try:
        ends = [float(record[question][who][end]) for end in ("start", "end")]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: {key!r}, {question}, {who} has no start and end probability ({error!r}). "
            "Were the predictions made? Unpredicted files leave them empty."
        ) from error
    wrong = next((end for end in ends if not -ROUNDING <= end <= 1 + ROUNDING), None)
    if wrong is not None:
        raise DataError(
            f"{path}: {key!r}, {question}, {who}: {wrong!r} is not a probability. Start and end "
            "lie between 0 and 1; convert logits first, and leave out what was not predicted."
        )
    return math.sqrt(max(ends[0], 0.0) * max(ends[1], 0.0))


READERS = (UnderspecifiedReader,)
