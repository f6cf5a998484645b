"""Estimators for declared tests: means and differences of a column over a sampled factor.

    gap = difference(items, "logprob", "group", "women", "men", over="opening")
    Test("gap", "courtesy_gap", {}, gap)

p, interval and the smallest detectable effect come from one variance (`stats.clustered_means`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from evenhand.compare.items import Items
from evenhand.errors import SpecError
from evenhand.stats.clustered_means import Cells, clustered_mean
from evenhand.stats.estimate import Estimate


def mean(
    items: Items,
    value: str,
    *,
    over: str,
    ideal: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Callable[..., Estimate]:
    """Return what estimates the mean of a column; the units of column `over` are the sample.

    >>> items = Items({"share": [0.6, 0.8, 0.7, 0.9], "name": ["a", "b", "c", "d"]})
    >>> found = mean(items, "share", over="name", ideal=0.5)(family=1, rate=0.05)
    >>> round(found.value, 2), found.units
    (0.75, 4)
    """
    _need(items, value, over)
    return partial(
        clustered_mean, items.numbers(value), items.codes(over), ideal=ideal, bounds=bounds
    )


def difference(
    items: Items, value: str, group: str, first: str, second: str, *, over: str
) -> Callable[..., Estimate]:
    """Return what estimates the mean of a column in one group minus that in another.

    Units of column `over` (templates, names, cases) are the sample. Both groups may share them, in
    which case what a unit has in common cancels.

    >>> items = Items({"group": ["w", "m"] * 4, "opening": list("aabbccdd"),
    ...                "score": [2.0, 1.0, 2.2, 1.1, 1.9, 1.0, 2.1, 1.1]})
    >>> found = difference(items, "score", "group", "w", "m", over="opening")(family=1, rate=0.05)
    >>> round(found.value, 2), found.p < 0.001, found.units
    (1.0, True, 4)
    """
    _need(items, value, group, over)
    for name in (first, second):
        if name not in items.levels(group):
            known = ", ".join(items.levels(group))
            raise SpecError(f"no item has {name!r} in column {group!r}. Its values: {known}.")
    part = items.at(items.where(**{group: first}) | items.where(**{group: second}))
    known_rows = part.at(np.isfinite(part.numbers(value)))
    sides = known_rows.where(**{group: first})
    cells = Cells.of(known_rows.numbers(value), known_rows.codes(over), sides)
    return partial(cells.estimate, np.array([-1.0, 1.0]))


def _need(items: Items, *columns: str) -> None:
    for name in columns:
        if name not in items:
            raise SpecError(f"the items have no column {name!r} (columns: {', '.join(items)}).")
