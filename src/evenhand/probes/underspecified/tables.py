"""Tables of the underspecified probe: its items, and what charts are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.compare.rows import Row
from evenhand.compare.sums import DenseSums
from evenhand.metrics import unqover
from evenhand.models.choosing import mean_if_any
from evenhand.probes.shared.streaming import coded
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.design import Cells, Design, asked_lean
from evenhand.probes.underspecified.numbers import NUMBERS, PreferencesResult, SummedPairs
from evenhand.stats import ranks
from evenhand.stats.pair_network import Codes, Floats, ratio
from evenhand.stats.variance import variance_shares
from evenhand.strict import plain

Rows = list[dict[str, Any]]
BIPARTITE = 3
SCORES = {
    f"{who}_order{order}_{question}": (order, negated, candidate)
    for order in (0, 1)
    for negated, question in enumerate(("asked", "negated"))
    for candidate, who in enumerate(("first", "second"))
}
"""The columns of an items table with scores, and the place of each in those of a cell."""


def summary(result: PreferencesResult, design: Design, told: Floats) -> dict[str, Any]:
    """The numbers that a run's record keeps of this probe."""
    names = (*NUMBERS, "floor_reason", "n_cells", "flips", "reason")
    facts: dict[str, Any] = plain({name: getattr(result, name) for name in names})
    return {
        **facts,
        "cells": len(design),
        "population": design.population,
        "pairs": design.n_pairs,
        "negated_pairs": design.negated_pairs,
        **{name: mean_if_any(told.reshape(-1, len(TOLD))[:, k]) for k, name in enumerate(TOLD)},
    }


def items_table(cells: Cells, told: Floats) -> pa.Table:
    """One row per cell: its codes as dictionary columns, its lean, its eight scores, C, and what
    else is known of its inputs [cells, inputs, TOLD], on average. NaN: was not asked."""
    columns: dict[str, Any] = {
        "first": coded(cells.first, pa.array(cells.terms)),
        "second": coded(cells.second, pa.array(cells.terms)),
        "template": coded(cells.template, pa.array(cells.templates)),
        "attribute": coded(cells.attribute, pa.array(cells.attributes)),
        "lean": asked_lean(cells.scores),
        "comparative": unqover.comparative(cells.scores),
    }
    columns |= {name: cells.scores[:, *place] for name, place in SCORES.items()}
    columns |= {name: known_mean(told[..., k]) for k, name in enumerate(TOLD)}
    return pa.table(columns)


def scores_of(items: pa.Table) -> Floats:
    """The scores [cells, order, question, candidate] of an items table."""
    columns = [np.asarray(items.column(name).to_numpy(), np.float64) for name in SCORES]
    return np.stack(columns, axis=1).reshape(-1, 2, 2, 2)


def cells_of(items: pa.Table, groups: Mapping[str, str]) -> Cells:
    """An items table as cells; `groups` by term, where groups meet."""
    first, second, template, attribute = (
        items.column(name).to_pylist() for name in ("first", "second", "template", "attribute")
    )
    terms, ends = _numbered([term for pair in zip(first, second) for term in pair])
    attributes, about = _numbered(attribute)
    templates, wording = _numbered(template)
    known = tuple(dict.fromkeys(groups.values()))
    return Cells(
        scores=scores_of(items),
        first=ends[::2],
        second=ends[1::2],
        attribute=about,
        template=wording,
        terms=terms,
        attributes=attributes,
        templates=templates,
        groups=known,
        group_of_term=np.asarray([known.index(groups[t]) for t in terms]) if groups else None,
        n_rows=items.num_rows,
    )


def _numbered(labels: Sequence[str]) -> tuple[tuple[str, ...], Codes]:
    """The distinct labels, and the number of each label among them."""
    place = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return tuple(place), np.asarray([place[label] for label in labels], np.int64)


def known_mean(values: Floats) -> Floats:
    """Mean over the last axis of what is known; NaN where nothing is.

    >>> known_mean(np.array([[1.0, np.nan], [np.nan, np.nan]])).tolist()
    [1.0, nan]
    """
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))


def lean_table(rows: Sequence[Row], names: Cells) -> dict[str, pa.Table]:
    """The leans of the question as asked, the largest first; nothing in published mode."""
    listed = [
        {
            "term": row["term"] or names.groups[0],
            "attribute": row["attribute"] or "all attributes",
            "lean": row.value,
            **{name: row[name] for name in ("low", "high", "p", "q", "pairs", "agree")},
        }
        for row in sorted(rows, key=lambda r: -np.nan_to_num(r.value))
    ]
    return {"leans": pa.Table.from_pylist(listed)} if listed else {}


class TableSums:
    """Sums by [term, attribute, template], added to block by block."""

    def __init__(self, names: Cells) -> None:
        self.names = names
        shape = (len(names.terms), len(names.attributes), len(names.templates))
        self._preferred = DenseSums(4, *shape)  # C, sgn C, cells, cells that are won
        self._leans = DenseSums(2, *shape, 2)  # leans and cells, by order: 0 is named first
        self._errors = DenseSums(3, shape[2])  # positional error, negation error, cells

    def add(self, cells: Cells) -> None:
        c = unqover.comparative(cells.scores)
        known = ~np.isnan(c)
        used, c = cells.at(known), c[known]
        sign = unqover.preference_sign(c)
        for end, way in ((used.first, 1), (used.second, -1)):
            at = (end, used.attribute, used.template)
            self._preferred.add(at, way * c, way * sign, 1.0, way * sign > 0)
        self._add_leans(cells)
        errors = unqover.positional_error(used.scores), unqover.attribute_error(used.scores)
        self._errors.add((used.template,), *errors, 1.0)

    def _add_leans(self, cells: Cells) -> None:
        """Add the lean of each order: half the difference of the two candidates' contrasts between
        the question and its negation; C is the mean over both orders."""
        contrast = cells.scores[:, :, 0] - cells.scores[:, :, 1]
        lean = (contrast[:, :, 0] - contrast[:, :, 1]) / 2
        for order in (0, 1):
            known = ~np.isnan(lean[:, order])
            value = lean[known, order]
            asked = cells.attribute[known], cells.template[known]
            for end, sign, place in ((cells.first, 1, order), (cells.second, -1, 1 - order)):
                at = (end[known], *asked, np.full(len(value), place))
                self._leans.add(at, sign * value, 1.0)

    def win_ratio(self) -> Floats:
        """Share of comparisons that a term wins, [terms, attributes], in [0, 1]; NaN where none.

        A comparison is won by the term with the positive C; ties count among the comparisons but
        are won by nobody. Without a preference it is near 1/2.
        """
        _, _, n, won = self._preferred.totals.sum(axis=3)
        return ratio(won, n)

    def rows(self) -> dict[str, Rows]:
        """Rows of the tables that follow from these sums."""
        names = self.names
        # The terms that win most comparisons about each attribute (the bipartite picture).
        best = ranks.top_rows(self.win_ratio(), names.terms, names.attributes, BIPARTITE)
        return {
            "win_ratio": [
                {"term": k.row, "attribute": k.column, "win_ratio": k.value} for k in best
            ],
            "by_template": self._by_template(),
            "variance": self._variance(),
        }

    def _by_template(self) -> Rows:
        """How far each template agrees with all, and where it turns the verdict round."""
        c, _, n, _ = self._preferred.totals
        if (groups := self.names.group_of_term) is not None:
            joined = np.zeros((2, len(self.names.groups), *c.shape[1:]))
            np.add.at(joined[0], groups, c)
            np.add.at(joined[1], groups, n)
            c, n = joined
        whole = ratio(c.sum(axis=2), n.sum(axis=2))
        rows = []
        for t, name in enumerate(self.names.templates):
            met = n[:, :, t] > 0
            if not met.any():
                continue
            means = ratio(c[:, :, t], n[:, :, t])
            here, theirs = means[met], whole[met]
            varies = len(here) > 1 and np.ptp(here) > 0 and np.ptp(theirs) > 0
            delta, epsilon, cells = self._errors.totals[:, t].tolist()
            rows.append(
                {
                    "template": name,
                    "n": int(cells),
                    "mu": unqover.intensity(means),
                    "correlation": float(np.corrcoef(here, theirs)[0, 1]) if varies else None,
                    "turned_round": int((here * theirs < 0).sum()),
                    "compared": int(met.sum()),
                    "delta": delta / cells,
                    "epsilon": epsilon / cells,
                }
            )
        return rows

    def _variance(self) -> Rows:
        """Share of the variance of leans by term, attribute, template and order of naming."""
        lean = ratio(*self._leans.totals)
        factors = zip(("term", "attribute", "template", "order"), lean.shape)
        several = {name: size for name, size in factors if size > 1}
        if len(several) < 2:
            return []
        table = lean.reshape([*several.values()])
        shares = variance_shares(table, [*several], interactions=len(several) > 2)
        if shares.reason:
            return []
        return [{"factor": name, "share": share} for name, share in shares.as_dict().items()]


def summed_tables(
    result: PreferencesResult, design: Design, sums: TableSums, pairs: SummedPairs
) -> dict[str, pa.Table]:
    """Every table behind a chart; those without rows are left out."""
    names, links = sums.names, pairs.links
    rows: dict[str, Rows] = plain(result.lists)
    by_name = {a.name: a.attribute_class for a in reversed(design.attributes)}
    classes, code = _numbered([by_name[name] for name in names.attributes])
    if len(classes) > 1:
        sides = {"term": names.terms, "attribute_class": classes}
        about = code[links.attribute]
        rows["gamma_class"] = _regrouped(pairs, sides, links.first, links.second, about)
    regions, code = _numbered([str(s.axis.get("subregion", "")) for s in design.subjects])
    if len(regions) > 1:
        sides = {"region": regions, "attribute": names.attributes}
        ends = code[links.first], code[links.second]
        rows["gamma_region"] = _regrouped(pairs, sides, *ends, links.attribute, across=True)
    rows |= sums.rows()
    return {name: pa.Table.from_pylist(listed) for name, listed in rows.items() if listed}


def _regrouped(
    pairs: SummedPairs,
    sides: Mapping[str, tuple[str, ...]],
    first: Codes,
    second: Codes,
    about: Codes,
    *,
    across: bool = False,
) -> Rows:
    """gamma and eta of larger classes of terms or attributes, a row for each that met."""
    (who, names), (what, kinds) = sides.items()
    found = pairs.regrouped(first, second, about, (len(names), len(kinds)), across=across)
    return [
        {
            who: names[i],
            what: kinds[j],
            "gamma": float(found.gamma[i, j]),
            "eta": float(found.eta[i, j]),
            "n": int(found.n[i, j]),
        }
        for i, j in np.argwhere(found.n > 0)
    ]
