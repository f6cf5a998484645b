"""The tables behind charts of the underspecified probe, from running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.metrics import unqover
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import Design
from evenhand.probes.underspecified.numbers import PreferencesResult, pairs_of
from evenhand.probes.underspecified.streamed import SummedPairs
from evenhand.probes.underspecified.tables import (
    Floats,
    distinct_attributes,
    lean_sums,
    variance_rows,
)
from evenhand.stats import ranks
from evenhand.strict import plain

BIPARTITE = 3


class TableSums:
    """Sums by [term, attribute, template], added to block by block."""

    def __init__(self, names: Cells) -> None:
        self.names = names
        shape = (len(names.terms), len(names.attributes), len(names.templates))
        self.c, self.sign, self.n, self.won = (np.zeros(shape) for _ in range(4))
        self.lean, self.lean_n = np.zeros((*shape, 2)), np.zeros((*shape, 2))
        self.errors = np.zeros((3, shape[2]))  # positional error, negation error, cells

    def add(self, cells: Cells) -> None:
        c = unqover.comparative(cells.scores)
        used = ~np.isnan(c)
        sign = unqover.preference_sign(c)
        for end, way in ((cells.first, 1), (cells.second, -1)):
            at = (end[used], cells.attribute[used], cells.template[used])
            np.add.at(self.c, at, way * c[used])
            np.add.at(self.sign, at, way * sign[used])
            np.add.at(self.n, at, 1.0)
            np.add.at(self.won, at, (way * sign[used] > 0).astype(np.float64))
        total, n = lean_sums(cells)
        self.lean += total
        self.lean_n += n
        scores, template = cells.scores[used], cells.template[used]
        np.add.at(self.errors[0], template, unqover.positional_error(scores))
        np.add.at(self.errors[1], template, unqover.attribute_error(scores))
        np.add.at(self.errors[2], template, 1.0)

    def win_ratio(self) -> Floats:
        """Share of comparisons that a term wins, [terms, attributes], in [0, 1]; NaN where none.

        A comparison is won by the term with the positive C; ties count among the comparisons but
        are won by nobody. Without a preference it is near 1/2.
        """
        won, n = self.won.sum(axis=2), self.n.sum(axis=2)
        return np.asarray(np.divide(won, n, out=np.full(n.shape, np.nan), where=n > 0), np.float64)

    def by_side(self, sums: Floats) -> Floats:
        """The sums by group where there are groups, else by term."""
        groups = self.names.group_of_term
        if groups is None:
            return sums
        joined = np.zeros((len(self.names.groups), *sums.shape[1:]))
        np.add.at(joined, groups, sums)
        return joined


def tables_of(result: PreferencesResult, design: Design, cells: Cells) -> dict[str, pa.Table]:
    """The tables of cells in memory."""
    sums = TableSums(cells)
    sums.add(cells)
    pairs = SummedPairs.of(pairs_of(cells, cells.kept()))
    return summed_tables(result, design, sums, pairs)


def summed_tables(
    result: PreferencesResult, design: Design, sums: TableSums, pairs: SummedPairs
) -> dict[str, pa.Table]:
    """Every table behind a chart; those without rows are left out."""
    names = sums.names
    rows: dict[str, list[dict[str, Any]]] = plain(result.lists)
    kinds = [a.attribute_class for a in distinct_attributes(design)]
    links = pairs.links
    if len(set(kinds)) > 1:
        known = tuple(dict.fromkeys(kinds))
        code = np.asarray([known.index(k) for k in kinds])[links.attribute]
        size = (len(names.terms), len(known))
        found = pairs.regrouped(links.first, links.second, code, size, across=False)
        rows["gamma_class"] = _listed(found, "term", names.terms, "attribute_class", known)
    regions = [str(s.axis.get("subregion", "")) for s in design.subjects]
    if len(set(regions)) > 1:
        named = tuple(dict.fromkeys(regions))
        codes = np.asarray([named.index(r) for r in regions])
        ends = codes[links.first], codes[links.second]
        size = (len(named), len(names.attributes))
        found = pairs.regrouped(*ends, links.attribute, size, across=True)
        rows["gamma_region"] = _listed(found, "region", named, "attribute", names.attributes)
    # The terms that win most comparisons about each attribute (the bipartite picture).
    best = ranks.top_rows(sums.win_ratio(), names.terms, names.attributes, BIPARTITE)
    rows["win_ratio"] = [{"term": k.row, "attribute": k.column, "win_ratio": k.value} for k in best]
    rows["by_template"] = _by_template(sums)
    shape = sums.lean.shape
    lean = np.divide(sums.lean, sums.lean_n, out=np.full(shape, np.nan), where=sums.lean_n > 0)
    rows["variance"] = variance_rows(lean)
    return {name: pa.Table.from_pylist(found) for name, found in rows.items() if found}


def _listed(
    table: unqover.Preferences,
    first: str,
    names: tuple[str, ...],
    label: str,
    kinds: tuple[str, ...],
) -> list[dict[str, Any]]:
    return [
        {
            first: names[i],
            label: kinds[j],
            "gamma": float(table.gamma[i, j]),
            "eta": float(table.eta[i, j]),
            "n": int(table.n[i, j]),
        }
        for i, j in np.argwhere(table.n > 0)
    ]


def _by_template(sums: TableSums) -> list[dict[str, Any]]:
    """How far each template agrees with all of them, and where it turns the verdict round."""
    c, n = sums.by_side(sums.c), sums.by_side(sums.n)
    whole = np.divide(c.sum(axis=2), n.sum(axis=2), out=np.zeros(c.shape[:2]), where=n.any(axis=2))
    rows = []
    for t, name in enumerate(sums.names.templates):
        met = n[:, :, t] > 0
        if not met.any():
            continue
        own = np.divide(c[:, :, t], n[:, :, t], out=np.full(met.shape, np.nan), where=met)
        mine, theirs = own[met], whole[met]
        varies = len(mine) > 1 and np.ptp(mine) > 0 and np.ptp(theirs) > 0
        delta, epsilon, cells = sums.errors[:, t].tolist()
        rows.append(
            {
                "template": name,
                "n": int(cells),
                "mu": unqover.intensity(own),
                "correlation": float(np.corrcoef(mine, theirs)[0, 1]) if varies else None,
                "turned_round": int((mine * theirs < 0).sum()),
                "compared": int(met.sum()),
                "delta": delta / cells,
                "epsilon": epsilon / cells,
            }
        )
    return rows
