"""Tables of the underspecified probe: items, classes, regions, templates, variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.metrics import unqover
from evenhand.models.choosing import mean_if_any
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import Design
from evenhand.probes.underspecified.findings import Told
from evenhand.probes.underspecified.leans import asked_lean
from evenhand.probes.underspecified.numbers import PreferencesResult
from evenhand.stats.variance import variance_shares
from evenhand.strict import plain

Floats = npt.NDArray[np.float64]
KEPT = (
    "delta",
    "delta_low",
    "delta_high",
    "epsilon",
    "epsilon_low",
    "epsilon_high",
    "mean_score",
    "mu",
    "mu_low",
    "mu_high",
    "mu_floor",
    "mu_floor_p95",
    "mu_p",
    "eta",
    "eta_low",
    "eta_high",
    "eta_floor",
    "eta_p",
    "floor_reason",
    "n_cells",
    "flips",
    "reason",
)


def summary(result: PreferencesResult, design: Design, told: Floats) -> dict[str, Any]:
    """The numbers that a run's record keeps of this probe."""
    known = plain(result)
    facts = {name: known.get(name) for name in KEPT}
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

    def coded(codes: npt.NDArray[np.integer[Any]], values: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))

    columns: dict[str, Any] = {
        "first": coded(cells.first, cells.terms),
        "second": coded(cells.second, cells.terms),
        "template": coded(cells.template, cells.templates),
        "attribute": coded(cells.attribute, cells.attributes),
        "lean": asked_lean(cells.scores),
        "comparative": unqover.comparative(cells.scores),
    }
    for order in (0, 1):
        for negated in (0, 1):
            for who, candidate in (("first", 0), ("second", 1)):
                name = f"{who}_order{order}_{'negated' if negated else 'asked'}"
                columns[name] = cells.scores[:, order, negated, candidate]
    columns |= {name: known_mean(told[..., k]) for k, name in enumerate(TOLD)}
    return pa.table(columns)


def known_mean(values: Floats) -> Floats:
    """Mean over the last axis of what is known; NaN where nothing is.

    >>> known_mean(np.array([[1.0, np.nan], [np.nan, np.nan]])).tolist()
    [1.0, nan]
    """
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    out = np.full(count.shape, np.nan)
    return np.asarray(np.divide(total, count, out=out, where=count > 0), np.float64)


def lean_table(told: Told) -> dict[str, pa.Table]:
    """The leans of the question as asked, the largest first; nothing in published mode."""
    rows = [
        {
            "term": r.term or told.names.groups[0],
            "attribute": r.attribute or "all attributes",
            "lean": r.found.value,
            "low": r.found.low,
            "high": r.found.high,
            "p": r.found.p,
            "q": r.q,
            "pairs": r.pairs,
            "agree": r.agree,
        }
        for r in sorted(told.leans, key=lambda r: -np.nan_to_num(r.found.value))
    ]
    return {"leans": pa.Table.from_pylist(rows)} if rows else {}


def distinct_attributes(design: Design) -> list[Any]:
    """Attributes as cells count them: one per name."""
    return list({a.name: a for a in reversed(design.attributes)}.values())[::-1]


def variance_rows(table: Floats) -> list[dict[str, Any]]:
    """Share of the variance of leans by term, attribute, template and order of naming."""
    names = ("term", "attribute", "template", "order")
    kept = [k for k, n in enumerate(table.shape) if n > 1]
    if len(kept) < 2:
        return []
    shares = variance_shares(
        table.reshape([table.shape[k] for k in kept]),
        [names[k] for k in kept],
        interactions=len(kept) > 2,
    )
    if shares.reason:
        return []
    return [{"factor": name, "share": share} for name, share in shares.as_dict().items()]


def lean_sums(cells: Cells) -> tuple[Floats, Floats]:
    """Sums and counts of leans by [term, attribute, template, order]; order 0: it is named first.

    In one order the lean is half the difference of the two candidates' contrasts between the
    question and its negation; C is the mean over both orders.
    """
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
