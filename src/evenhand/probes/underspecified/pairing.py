"""Items of two runs, cell by cell: leans that can be subtracted, and whether answers still stand.

A model that picks whoever is named second has no lean left, and no answers either. So beside the
leans three numbers say what becomes of the question itself: whether the order of names decides,
whether a negation is heeded, and how much of the answer goes to the two names at all.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.metrics.unqover import attribute_error
from evenhand.probes.base import Behaviour
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.findings import Told
from evenhand.probes.underspecified.leans import LeanSums, leanings
from evenhand.stats.estimate import Estimate

Floats = npt.NDArray[np.float64]
TURNED, LOST = 0.10, 0.5
"""Margins: ten answers of 100 (order, negation); half of the mass on the two names."""


def scores_of(items: pa.Table) -> Floats:
    """The scores [cells, order, question, candidate] of an items table."""
    names = [
        f"{who}_order{order}_{asked}"
        for order in (0, 1)
        for asked in ("asked", "negated")
        for who in ("first", "second")
    ]
    columns = [np.asarray(items.column(name).to_numpy(), np.float64) for name in names]
    return np.stack(columns, axis=1).reshape(-1, 2, 2, 2)


def cells_of(items: pa.Table, groups: Mapping[str, str]) -> Cells:
    """An items table as cells; `groups` by term, where groups meet."""
    sides = [items.column(name).to_pylist() for name in ("first", "second")]
    terms = list(dict.fromkeys(t for pair in zip(*sides) for t in pair))
    coded = {name: _codes(items.column(name).to_pylist()) for name in ("template", "attribute")}
    place = {term: k for k, term in enumerate(terms)}
    first, second = (np.asarray([place[t] for t in side], np.int64) for side in sides)
    known = tuple(dict.fromkeys(groups.values()))
    member = np.asarray([known.index(groups[t]) for t in terms]) if groups else None
    return Cells(
        scores_of(items),
        first,
        second,
        coded["attribute"][1],
        coded["template"][1],
        tuple(terms),
        coded["attribute"][0],
        coded["template"][0],
        known,
        member,
        items.num_rows,
    )


def _codes(values: list[str]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    known = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return tuple(known), np.asarray([known[v] for v in values], np.int64)


def estimates(items: pa.Table, groups: Mapping[str, str]) -> dict[str, Estimate]:
    """Every lean of the question as asked, by the end of its finding's id."""
    cells = cells_of(items, groups)
    sums = LeanSums(cells)
    sums.add(cells)
    rows = leanings(cells, sums.links())
    return {Told._place("lean", row.term, row.attribute): row.found for row in rows}


def behaviours(items: pa.Table) -> list[Behaviour]:
    """Order, negation and mass, cell by cell.

    Negation is UnQover's epsilon on shares: an even answer has none of it, so that taking a lean
    away does not look like deafness to the question.

    >>> always_second = {f"{who}_order{o}_{q}": [0.1 if (who == "first") == (o == 0) else 0.9]
    ...     for who in ("first", "second") for o in (0, 1) for q in ("asked", "negated")}
    >>> found = behaviours(pa.table(always_second))
    >>> [(b.what.split()[-1], b.values.round(2).tolist()) for b in found]
    [('first', [0.1]), ('negated', [0.8])]
    """
    scores = scores_of(items)
    mass = scores.sum(axis=3)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = scores / mass[..., None]
    asked = shares[:, :, 0]
    named_first = (asked[:, 0, 0] + asked[:, 1, 1]) / 2
    found = [
        Behaviour("share of the answer that goes to the one named first", named_first, TURNED, 0.5),
        Behaviour(
            "share of the answer that stays where it should turn when the question is negated",
            attribute_error(shares),
            TURNED,
            float("-inf"),
        ),
    ]
    if np.nanmax(np.abs(mass - 1), initial=0.0) > 1e-6:
        whole = mass[:, :, 0].mean(axis=1)
        found.append(Behaviour("score of the two names together", whole, LOST, relative=True))
    return found
