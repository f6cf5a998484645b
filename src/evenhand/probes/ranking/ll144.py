"""The table that New York City's Local Law 144 asks for (6 RCNY 5-301), from test data.

Selection rate and impact ratio by sex, by race or ethnicity, and by both together; the number of
people of unknown category; categories below 2 % of those known may be left out, with reason and
count. The law wants historical data; names given to resumes are test data, and it wants to be told
why those were used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import DataError
from evenhand.probes.ranking.rankings import Rankings
from evenhand.strict import OPTIONAL

SMALL = 0.02
STATEMENT = (
    "Test data: the candidates are texts to which names were given that stand for the categories, "
    "not people who applied. Historical data of an employer were not available to this audit, or "
    "hold no category; names are a signal of sex and race or ethnicity that readers attach, not "
    "what a person states. Selected means ranked first."
)
AXES = ("sex", "race", "intersection")


@dataclass(frozen=True)
class CategoryRow:
    """One category: applicants, selected, selection rate, impact ratio; why it is left out."""

    axis: str
    category: str
    n: int
    selected: float
    rate: float
    ratio: float
    left_out: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Law144:
    """The table, the number of unknown category, and the statement on test data."""

    rows: Sequence[CategoryRow]
    unknown: int
    left_out: int
    statement: str = STATEMENT


def table(rankings: Rankings, unknown: int, source: str) -> Law144:
    """Rates and ratios of all categories, over all strata together.

    Raises:
        DataError: sex and race of the groups are not known.
    """
    axes = rankings.axes
    if not axes or not all({"sex", "race"} <= set(axes.get(g, ())) for g in rankings.groups):
        shown = ", ".join(rankings.groups[:4])
        raise DataError(
            f"{source}: sex and race of the groups ({shown}) are not known. Accepted with --table "
            "ll144: columns sex and race, or groups that name both, such as 'Black women' or B_W."
        )
    rows: list[CategoryRow] = []
    for axis in AXES:
        labels = [
            " ".join((axes[g]["race"], axes[g]["sex"])) if axis == "intersection" else axes[g][axis]
            for g in rankings.group
        ]
        rows += _categories(axis, labels, rankings)
    return Law144(rows, unknown, sum(r.n for r in rows if r.left_out and r.axis == AXES[2]))


def _categories(axis: str, labels: Sequence[str], rankings: Rankings) -> list[CategoryRow]:
    found = np.asarray(labels)
    counted = [
        (str(c), int((found == c).sum()), float(rankings.top[found == c].sum()))
        for c in sorted(set(labels))
    ]
    small = {c for c, n, _ in counted if n < SMALL * len(found)}
    best = max((top / n for c, n, top in counted if c not in small), default=float("nan"))
    rows = []
    for category, n, top in counted:
        why = None
        if category in small:
            why = f"{n} of {len(found)} candidates, less than 2 %"
        ratio = float("nan") if why or not best > 0 else top / n / best
        rows.append(CategoryRow(axis, category, n, top, top / n, ratio, why))
    return rows
