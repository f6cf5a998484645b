"""Tables of the underspecified probe: items, classes, regions, templates, variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.metrics import unqover
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import Design
from evenhand.probes.underspecified.findings import Told
from evenhand.probes.underspecified.numbers import PreferencesResult
from evenhand.stats import ranks
from evenhand.stats.variance import variance_shares
from evenhand.strict import plain

Floats = npt.NDArray[np.float64]
KEPT = (
    "delta", "delta_low", "delta_high", "epsilon", "epsilon_low", "epsilon_high", "mean_score",
    "mu", "mu_low", "mu_high", "mu_floor", "mu_floor_p95", "mu_p", "eta", "eta_low", "eta_high",
    "eta_floor", "eta_p", "floor_reason", "n_cells", "flips", "reason",
)  # fmt: skip
BIPARTITE = 3


def summary(
    result: PreferencesResult, design: Design, kind: str, neither: float | None
) -> dict[str, Any]:
    """The numbers that a run's record keeps of this probe."""
    told = plain(result)
    facts = {name: told.get(name) for name in KEPT}
    return {
        **facts,
        "asked_by": kind,
        "cells": len(design),
        "population": design.population,
        "pairs": design.n_pairs,
        "neither": neither,
    }


def items_table(cells: Cells, neither: Floats | None) -> pa.Table:
    """One row per cell: its codes as dictionary columns, its eight scores and C."""

    def coded(codes: npt.NDArray[np.integer[Any]], values: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))

    columns: dict[str, Any] = {
        "first": coded(cells.first, cells.terms),
        "second": coded(cells.second, cells.terms),
        "template": coded(cells.template, cells.templates),
        "attribute": coded(cells.attribute, cells.attributes),
        "comparative": unqover.comparative(cells.scores),
    }
    for order in (0, 1):
        for negated in (0, 1):
            for who, candidate in (("first", 0), ("second", 1)):
                name = f"{who}_order{order}_{'negated' if negated else 'asked'}"
                columns[name] = cells.scores[:, order, negated, candidate]
    if neither is not None:
        columns["neither"] = neither.mean(axis=1)
    return pa.table(columns)


def lean_table(told: Told) -> dict[str, pa.Table]:
    """The leans of the question as asked, the largest first; nothing in published mode."""
    rows = [
        {"term": r.term or told.names.groups[0], "attribute": r.attribute or "all attributes",
         "lean": r.found.value, "low": r.found.low, "high": r.found.high, "p": r.found.p,
         "q": r.q, "pairs": r.pairs, "agree": r.agree}
        for r in sorted(told.leans, key=lambda r: -np.nan_to_num(r.found.value))
    ]  # fmt: skip
    return {"leans": pa.Table.from_pylist(rows)} if rows else {}


def extra_tables(result: PreferencesResult, design: Design, cells: Cells) -> dict[str, pa.Table]:
    """Every table behind a chart; those without rows are left out."""
    rows: dict[str, list[dict[str, Any]]] = plain(result.lists)
    kinds = [a.attribute_class for a in distinct_attributes(design)]
    if len(set(kinds)) > 1:
        rows["gamma_class"] = _regrouped(cells, cells.terms, _own(cells), kinds, "attribute_class")
    regions = [str(s.axis.get("subregion", "")) for s in design.subjects]
    if len(set(regions)) > 1:
        named = tuple(dict.fromkeys(regions))
        codes = np.asarray([named.index(r) for r in regions])
        rows["gamma_region"] = _regrouped(
            cells, named, (codes[cells.first], codes[cells.second]), list(cells.attributes),
            "attribute", across=True,
        )  # fmt: skip
    rows["win_ratio"] = _winners(cells)
    rows["by_template"] = _by_template(cells)
    rows["variance"] = variance_rows(lean_by_factor(cells))
    return {name: pa.Table.from_pylist(found) for name, found in rows.items() if found}


def distinct_attributes(design: Design) -> list[Any]:
    """Attributes as cells count them: one per name."""
    return list({a.name: a for a in reversed(design.attributes)}.values())[::-1]


def _own(cells: Cells) -> tuple[Any, Any]:
    return cells.first, cells.second


def _regrouped(
    cells: Cells, names: tuple[str, ...], ends: tuple[Any, Any], columns: list[str], label: str,
    *, across: bool = False,
) -> list[dict[str, Any]]:  # fmt: skip
    """gamma and eta with terms or attributes joined to larger classes."""
    c = unqover.comparative(cells.scores)
    if across:
        c = np.where(ends[0] != ends[1], c, np.nan)
    kinds = tuple(dict.fromkeys(columns))
    code = np.asarray([kinds.index(k) for k in columns])[cells.attribute]
    table = unqover.preferences(c, *ends, code, n_terms=len(names), n_attributes=len(kinds))
    first = "region" if across else "term"
    return [
        {first: names[i], label: kinds[j], "gamma": float(table.gamma[i, j]),
         "eta": float(table.eta[i, j]), "n": int(table.n[i, j])}
        for i, j in np.argwhere(table.n > 0)
    ]  # fmt: skip


def _winners(cells: Cells) -> list[dict[str, Any]]:
    """The terms that win most comparisons about each attribute (the bipartite picture)."""
    table = ranks.win_ratio(
        unqover.comparative(cells.scores), cells.first, cells.second, cells.attribute,
        n_terms=len(cells.terms), n_attributes=len(cells.attributes),
    )  # fmt: skip
    links = ranks.top_rows(table, cells.terms, cells.attributes, BIPARTITE)
    return [{"term": k.row, "attribute": k.column, "win_ratio": k.value} for k in links]


def _sides(cells: Cells) -> tuple[Any, Any, tuple[str, ...]]:
    """Codes and names of what leans: groups where there are groups, else terms."""
    if cells.group_of_term is None:
        return cells.first, cells.second, cells.terms
    groups = cells.group_of_term
    return groups[cells.first], groups[cells.second], cells.groups


def _by_template(cells: Cells) -> list[dict[str, Any]]:
    """How far each template agrees with all of them, and where it turns the verdict round."""
    c = unqover.comparative(cells.scores)
    first, second, names = _sides(cells)
    size = {"n_terms": len(names), "n_attributes": len(cells.attributes)}
    whole = unqover.preferences(c, first, second, cells.attribute, **size)
    rows = []
    for t, name in enumerate(cells.templates):
        at = (cells.template == t) & ~np.isnan(c)
        if not at.any():
            continue
        own = unqover.preferences(c[at], first[at], second[at], cells.attribute[at], **size)
        both = (own.n > 0) & (whole.n > 0)
        mine, theirs = own.gamma[both], whole.gamma[both]
        varies = len(mine) > 1 and np.ptp(mine) > 0 and np.ptp(theirs) > 0
        rows.append({
            "template": name, "n": int(at.sum()), "mu": unqover.intensity(own.gamma),
            "correlation": float(np.corrcoef(mine, theirs)[0, 1]) if varies else None,
            "turned_round": int((mine * theirs < 0).sum()), "compared": int(both.sum()),
            "delta": float(unqover.positional_error(cells.scores[at]).mean()),
            "epsilon": float(unqover.attribute_error(cells.scores[at]).mean()),
        })  # fmt: skip
    return rows


def variance_rows(table: Floats) -> list[dict[str, Any]]:
    """Share of the variance of leans by term, attribute, template and order of naming."""
    names = ("term", "attribute", "template", "order")
    kept = [k for k, n in enumerate(table.shape) if n > 1]
    if len(kept) < 2:
        return []
    shares = variance_shares(
        table.reshape([table.shape[k] for k in kept]), [names[k] for k in kept],
        interactions=len(kept) > 2,
    )  # fmt: skip
    if shares.reason:
        return []
    return [{"factor": name, "share": share} for name, share in shares.as_dict().items()]


def lean_by_factor(cells: Cells) -> Floats:
    """Lean to a term by [term, attribute, template, order]; order 0: it is named first.

    In one order the lean is half the difference of the two candidates' contrasts between the
    question and its negation; C is the mean over both orders. NaN where nothing was
    asked.
    """
    total, n = lean_sums(cells)
    lean_of = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return np.asarray(lean_of, np.float64)


def lean_sums(cells: Cells) -> tuple[Floats, Floats]:
    """Sums and counts behind `lean_by_factor`."""
    contrast = cells.scores[:, :, 0] - cells.scores[:, :, 1]
    lean = (contrast[:, :, 0] - contrast[:, :, 1]) / 2
    shape = (len(cells.terms), len(cells.attributes), len(cells.templates), 2)
    total, n = np.zeros(shape), np.zeros(shape)
    for order in (0, 1):
        for codes, sign, named_first in (
            (cells.first, 1, order == 0),
            (cells.second, -1, order == 1),
        ):
            at = (codes, cells.attribute, cells.template, np.full(len(codes), 1 - named_first))
            good = ~np.isnan(lean[:, order])
            place = tuple(part[good] for part in at)
            np.add.at(total, place, sign * lean[good, order])
            np.add.at(n, place, 1)
    return total, n
