"""Preferences in underspecified questions, from a table of scores (UnQover, Li et al. 2020).

One row per model input: `template, attribute, first, second, negated, score_first, score_second`,
and optionally `group_first, group_second, attribute_class`. The rows of both orders and both
questions form a cell; a cell that lacks one of its four rows is left out and listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import Labels, Table, read_table
from evenhand.errors import DataError
from evenhand.metrics import unqover
from evenhand.probes.underspecified.predictions import is_predictions, read_predictions
from evenhand.stats import pair_network as inference
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import plain

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]

TEXT = ("template", "attribute", "first", "second")
OPTIONAL = ("group_first", "group_second", "attribute_class")
COLUMNS = (*TEXT, "negated", "score_first", "score_second")
NUMBERS = ("delta", "epsilon", "mean_score", "mu", "eta")
LISTED = 20


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


def measure(
    table: Table | str | Path,
    *,
    resamples: int = 500,
    samples: int = 9_999,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Any]:
    """All numbers of a score table with intervals, noise floors and tests.

    Args:
        table: a table, or the path of a CSV, JSON lines or Parquet file, or of predictions in the
            format that UnQover released.
        resamples: weighed replicates for intervals, and flipped ones for the noise floor.
        samples: sign patterns of a test when there are too many to list.
        seed: seed of both.
        level: of the intervals.

    Returns:
        `delta, epsilon, mean_score, mu, eta, n_cells`, each with `_low` and `_high`; `mu_floor`
        and `eta_floor` with `_p95` and `mu_p`, `eta_p`; the lists `gamma`, `gamma_term` and, with
        groups, `gamma_group`, highest gamma first; `flips`; `coverage`. An undefined number is
        None, and `reason` says why.
    """
    if not isinstance(table, Table) and is_predictions(Path(table)):
        table = read_predictions(Path(table))
    elif not isinstance(table, Table):
        table = read_table(table, text=(*TEXT, *OPTIONAL))
    return measure_cells(
        read_cells(table), resamples=resamples, samples=samples, seed=seed, level=level
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
        name: column for name, column in table.columns.items()
        if name not in OPTIONAL or not blank(column)
    }  # fmt: skip
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


def measure_cells(
    cells: Cells,
    *,
    resamples: int = 500,
    samples: int = 9_999,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Any]:
    """The same for cells already in memory; see `measure`."""
    kept = cells.kept()
    whole = unqover.summary(
        cells.scores, cells.first, cells.second, cells.attribute,
        n_terms=len(cells.terms), n_attributes=len(cells.attributes),
    )  # fmt: skip
    result: dict[str, Any] = {"measure": "underspecified", "n_cells": whole.n_cells}
    result |= {name: getattr(whole, name) for name in NUMBERS}
    if kept.any():
        design = pairs_of(cells, kept)
        draws = inference.bootstrap(design, cells.group_of_term, draws=resamples, seed=seed)
        settings = {"resamples": resamples, "samples": samples, "seed": seed, "level": level}
        result |= inferred(result, cells, design, draws, settings)
        flips = unqover.flips(cells.scores[kept])
        result["flips"] = {name: getattr(flips, name) for name in flips.__slots__}
    else:
        result |= {"gamma": [], "gamma_term": []}
        result["reason"] = "no cell has both orders and both questions"
    result["coverage"] = coverage(cells, kept)
    result["settings"] = {"resamples": resamples, "samples": samples, "seed": seed, "level": level}
    return dict(plain(result))


def inferred(
    printed: dict[str, Any], cells: Cells, design: inference.Network, draws: inference.Draws,
    settings: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Intervals and floors of the printed numbers, and the lists of gamma with their tests.

    Of the cells only the names are read, so they need not be in memory.
    """
    level, groups = settings["level"], cells.group_of_term
    out = _uncertainty(printed, design, draws, level, settings["resamples"], settings["seed"])
    test = {"samples": settings["samples"], "seed": settings["seed"]}
    out["gamma"] = _term_rows(cells, design, draws.gamma, level, test)
    out["gamma_term"] = _term_rows(cells, design, draws.gamma_term, level, test)
    if groups is not None:
        out["gamma_group"] = _group_rows(cells, design, groups, draws.gamma_group, level, test)
    return out


def mu_error(cells: Cells, *, resamples: int = 200, seed: int = 0) -> float:
    """How far mu may be off: its standard error and its upward bias, squared and added; or NaN.

    The standard error is a quarter of the width of mu's 95 % interval, near enough. The bias is
    what mu loses when its noise floor is taken off in squares: terms that met one partner each
    have a narrow interval around a mu that is all noise. No test is run, so a sampled design can
    ask again and again.
    """
    kept = cells.kept()
    if not kept.any():
        return float("nan")
    design = pairs_of(cells, kept)
    draws = inference.bootstrap(design, None, draws=resamples, seed=seed)
    mu = unqover.intensity(inference.observed(design).gamma)
    low, high = inference.interval(mu, draws.mu, design.contexts()[0])
    floor = float(np.asarray(inference.noise_floors(design, samples=resamples, seed=seed).mean)[0])
    bias = mu - float(np.sqrt(max(mu**2 - floor**2, 0.0)))
    return float(np.hypot((high - low) / 3.92, bias))


def _uncertainty(
    printed: dict[str, Any],
    design: inference.Network,
    draws: inference.Draws,
    level: float,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    """Intervals of the five numbers, and the noise floors of mu and eta."""
    out: dict[str, Any] = {}
    spread = dict(zip(NUMBERS[:3], draws.errors, strict=True), mu=draws.mu, eta=draws.eta)
    contexts, _ = design.contexts()
    for name in NUMBERS:
        low, high = inference.interval(printed[name], spread[name], contexts, level)
        out |= {f"{name}_low": np.clip(low, 0, 1), f"{name}_high": np.clip(high, 0, 1)}
    if contexts < 2:
        out["reason"] = "one pair of terms and one template: no interval"
    floor = inference.noise_floors(design, samples=resamples, seed=seed)
    means, ends, chances = (np.asarray(part) for part in (floor.mean, floor.p95, floor.p))
    for k, name in enumerate(("mu", "eta")):
        out |= {f"{name}_floor": means[k], f"{name}_floor_p95": ends[k], f"{name}_p": chances[k]}
    return out


def pairs_of(cells: Cells, kept: npt.NDArray[np.bool_]) -> inference.Pairs:
    """The complete cells as comparisons and errors."""
    scores = cells.scores[kept]
    errors = np.stack(
        [unqover.positional_error(scores), unqover.attribute_error(scores),
         scores.mean(axis=(1, 2, 3))], axis=1,
    )  # fmt: skip
    alike = np.zeros(len(cells.terms), np.int64)
    return inference.Pairs(
        comparative=unqover.comparative(scores),
        first=cells.first[kept],
        second=cells.second[kept],
        attribute=cells.attribute[kept],
        template=cells.template[kept],
        errors=errors,
        n_terms=len(cells.terms),
        n_attributes=len(cells.attributes),
        n_templates=len(cells.templates),
        stratum=alike if cells.group_of_term is None else cells.group_of_term,
    )


def _term_rows(
    cells: Cells, design: inference.Network, draws: Floats, level: float, test: dict[str, int]
) -> list[dict[str, Any]]:
    """Rows of gamma(x, a), or of gamma(x) when the draws have no attribute axis."""
    by_attribute = draws.ndim == 3
    table = design.preferences(by_attribute=by_attribute)
    links = design.links
    ends = np.stack([links.first, links.second])
    p = inference.flip_p(links, ends, ends[::-1], design.n_terms, by_attribute=by_attribute, **test)
    names = [(term,) for term in cells.terms]
    if by_attribute:
        names = [(term, a) for term in cells.terms for a in cells.attributes]  # type: ignore[misc]
    contexts = table.n if by_attribute else design.contexts()[1]
    return _rows(("term", "attribute"), names, table, contexts, draws, p, level)


def _group_rows(
    cells: Cells, design: inference.Network, groups: Codes, draws: Floats, level: float,
    test: dict[str, int],
) -> list[dict[str, Any]]:  # fmt: skip
    """Rows of gamma(group, a) over the cells between different groups.

    Names on both sides are samples: p is the larger of flipping the group's own terms and of
    flipping its partners.
    """
    table = design.group_preferences(groups, len(cells.groups))
    links = design.links
    terms = np.stack([links.first, links.second])
    own = np.where(groups[links.first] != groups[links.second], groups[terms], -1)
    if (own < 0).all():
        return []
    p = np.maximum(
        *(inference.flip_p(links, own, side, len(cells.groups), by_attribute=True, **test)
          for side in (terms, terms[::-1]))
    )  # fmt: skip
    names = [(group, a) for group in cells.groups for a in cells.attributes]
    return _rows(("group", "attribute"), names, table, table.n, draws, p, level)


def _rows(
    keys: tuple[str, ...],
    names: list[Any],
    table: unqover.Preferences,
    contexts: Codes,
    draws: Floats,
    p: Floats,
    level: float,
) -> list[dict[str, Any]]:
    gamma, eta, n = table.gamma.ravel(), table.eta.ravel(), table.n.ravel()
    low, high = inference.interval(gamma, draws.reshape(len(gamma), -1), contexts.ravel(), level)
    low, high = np.clip(low, -1, 1), np.clip(high, -1, 1)
    q = benjamini_hochberg(p)
    rows = []
    for k in np.flatnonzero(n > 0)[np.argsort(-gamma[n > 0], kind="stable")]:
        row = dict(zip(keys, names[k], strict=False))
        row |= {
            "gamma": gamma[k], "eta": eta[k], "n": n[k],
            "low": low[k], "high": high[k], "p": p[k], "q": q[k],
        }  # fmt: skip
        if np.isnan(low[k]):
            row["reason"] = "one partner and one template: no interval"
        rows.append(row)
    return rows


def coverage(cells: Cells, kept: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """How many cells are complete, and what the first of the others lack."""
    lost = np.flatnonzero(~kept)
    which = []
    for k in lost[:LISTED]:
        gone = np.isnan(cells.scores[k]).any(axis=-1)
        pair = cells.terms[cells.first[k]], cells.terms[cells.second[k]]
        inputs = [
            {"first": pair[order], "second": pair[1 - order], "negated": bool(question)}
            for order, question in np.argwhere(gone)
        ]
        which.append({
            "template": cells.templates[cells.template[k]],
            "attribute": cells.attributes[cells.attribute[k]],
            "missing": inputs,
        })  # fmt: skip
    return {
        "n_rows": cells.n_rows, "n_cells_found": len(kept), "n_complete": int(kept.sum()),
        "n_missing": len(lost), "which": which, "which_listed": len(which),
        "n_terms": len(cells.terms), "n_attributes": len(cells.attributes),
        "n_templates": len(cells.templates),
    }  # fmt: skip
