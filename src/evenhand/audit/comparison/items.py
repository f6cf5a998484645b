"""Two runs of one suite item by item: what changed, with paired tests.

Items are matched on every column that names something (terms, templates, contexts); numbers are
then compared pair by pair. Two questions per number: did its mean move, and did its *size* |x|
move (for signed preferences and for divergences alike, a smaller size is nearer to no preference).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.errors import RunError
from evenhand.probes.registry import probe_of
from evenhand.runs.compared import FindingChange, ItemChange
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name, rate_of
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
FEWEST = 5
MOST_CELLS = 20_000_000


def shared_labels(*runs: Run) -> list[str]:
    """Probes that every run has asked of its audited model."""
    asked = []
    for facts in (run.facts for run in runs):
        name = audited_name(facts)
        entries = facts["probes"].items()
        asked.append(
            [k for k, e in entries if not e.get("skipped") and e.get("model", name) == name]
        )
    return [label for label in asked[0] if all(label in labels for labels in asked)]


def own_findings(run: Run) -> dict[str, Finding]:
    """Findings about the audited model, by id."""
    name = audited_name(run.facts)
    return {f.id: f for f in run.findings if f.model == name}


def matched(before: Run, after: Run, label: str) -> tuple[pa.Table, pa.Table]:
    """The items of both runs in one order.

    Raises:
        RunError: an item of one run is missing in the other, so the runs cannot be paired.
    """
    tables = [run.table(label, "items") for run in (before, after)]
    keys = [c for c in tables[0].column_names if _names(tables[0], c) and c in _columns(tables[1])]
    coded = [_keys(t, keys) for t in tables]
    if coded[0] == coded[1]:
        return tables[0], tables[1]
    places = [{key: i for i, key in enumerate(rows)} for rows in coded]
    if len(places[0]) < len(coded[0]) or set(places[0]) != set(places[1]):
        lost = next(iter(set(places[0]) ^ set(places[1])), "an item that occurs twice")
        raise RunError(
            f"compare: probe {label!r} was not asked the same items in {before.folder} and "
            f"{after.folder} (for example {lost}). Run both with the same suite, seed and helpers."
        )
    order = [places[1][key] for key in coded[0]]
    return tables[0], tables[1].take(pa.array(order))


def _columns(table: pa.Table) -> list[str]:
    return list(table.column_names)


def _names(table: pa.Table, column: str) -> bool:
    kind = table.schema.field(column).type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_dictionary(kind) or pa.types.is_integer(kind))


def _keys(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    if not columns:
        return [(i,) for i in range(table.num_rows)]
    return list(zip(*(table.column(c).to_pylist() for c in columns)))


def item_changes(before: Run, after: Run) -> list[ItemChange]:
    """One row per probe and number: paired change of mean and size, interval, p, q, verdict.

    q is corrected over all rows, means and sizes together. p and the interval of the printed change
    of size generalise over every sampled factor of the items (names of both sides, templates,
    contexts) at once.
    """
    rows: list[ItemChange] = []
    for label in shared_labels(before, after):
        one, two = matched(before, after, label)
        shape = probe_of(before.facts, label).item_shape
        factors = sampled(one, shape.clusters if shape else ())
        for column in _columns(one):
            if pa.types.is_floating(one.schema.field(column).type) and column in _columns(two):
                a, b = (_floats(t, column) for t in (one, two))
                rows.append(ItemChange(label, column, **_change(a, b, factors)))
    q = benjamini_hochberg([[r.p for r in rows], [r.p_size for r in rows]])
    rate = rate_of(before.facts)
    return [
        replace(row, q=float(a), q_size=float(b), verdict=_verdict(row.size_change, b <= rate))
        for row, a, b in zip(rows, *q)
    ]


def _floats(table: pa.Table, column: str) -> Floats:
    values = pc.cast(table.column(column), pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def sampled(table: pa.Table, columns: Sequence[str]) -> list[Codes]:
    """Codes of the sampled columns (names, templates, contexts); of the items when there is none.

    A column with fewer than five values is no sample: the change is one for these values.
    """
    found = []
    for column in columns:
        if column in table.column_names and _names(table, column):
            values = np.asarray(table.column(column).to_pylist(), object).astype(str)
            known, codes = np.unique(values, return_inverse=True)
            if FEWEST <= len(known) < len(values):
                found.append(codes)
    return found or [np.arange(table.num_rows)]


def _change(a: Floats, b: Floats, factors: Sequence[Codes]) -> dict[str, Any]:
    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    row: dict[str, Any] = {"n": len(a), "coverage": float(known.mean()) if len(known) else 0.0}
    if len(a) < 2:
        return {**row, "reason": "fewer than two items are known in both runs"}
    both = np.stack([b - a, np.abs(b) - np.abs(a)], axis=1)
    moved, size = changes(both, [codes[known] for codes in factors])
    numbers = {
        "before": a.mean(),
        "after": b.mean(),
        "change": moved.value,
        "p": moved.p,
        "size_before": np.abs(a).mean(),
        "size_after": np.abs(b).mean(),
        "size_change": size.value,
        "p_size": size.p,
        "size_low": size.low,
        "size_high": size.high,
    }
    return {**row, **{name: float(value) for name, value in numbers.items()}}


def changes(values: Floats, factors: Sequence[Codes], family: int | None = None) -> list[Estimate]:
    """Mean change of each column, over every sampled factor at once (`stats.mixed`).

    Items that agree in all factors are averaged first. Where factors have too many levels to hold
    together, the one with the fewest levels stands for all. The columns are tested together,
    unless `family` says otherwise.
    """
    levels = [len(np.unique(codes)) for codes in factors]
    if len(values) * sum(levels) > MOST_CELLS:
        factors = [factors[int(np.argmin(levels))]]
    key = np.stack(factors, axis=1)
    known, place = np.unique(key, axis=0, return_inverse=True)
    count = np.bincount(place)
    means = np.stack([np.bincount(place, column) / count for column in values.T], axis=1)
    return Design([Factor(codes) for codes in known.T]).estimates(
        means, family=family or means.shape[1]
    )


def _verdict(change: float, detected: bool) -> str:
    if not detected:
        return "no difference detected"
    return "smaller" if change < 0 else "larger"


def finding_changes(before: Run, after: Run) -> list[FindingChange]:
    """Findings of both runs: detected before and after, nearer to the ideal or further off.

    Method checks and placebos are left out. A status compares two verdicts; whether the change
    itself is sure is the paired tests' business.
    """
    old, new = (
        {k: f for k, f in own_findings(run).items() if not f.control and not f.placebo}
        for run in (before, after)
    )
    return [_followed(k, old.get(k), new.get(k)) for k in {**old, **new}]


def _followed(place: str, old: Finding | None, new: Finding | None) -> FindingChange:
    status = {
        (True, True): "persisted",
        (True, False): "gone",
        (False, True): "appeared",
        (False, False): "not detected",
    }[bool(old and old.detected), bool(new and new.detected)]
    said = new or old
    return FindingChange(
        place,
        status,
        before=old.value if old else NAN,
        after=new.value if new else NAN,
        distance_before=abs(old.value - old.ideal) if old else NAN,
        distance_after=abs(new.value - new.ideal) if new else NAN,
        q_before=old.q if old else NAN,
        q_after=new.q if new else NAN,
        sentence=said.sentence if said else "",
    )
