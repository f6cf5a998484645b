"""Who works in which occupation: packaged figures of the U.S., its own table, or the user's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.corpora.tables import Table, find_data, read_table
from evenhand.errors import DataError
from evenhand.words.lexicons import load

PACKAGED = "labour_market"
SHARES = ("women", "white", "black", "asian", "hispanic")
LEAST = 0.5
"""Percent below which a share counts as this: tables are rounded, and logarithms have no 0."""
ACCEPTED = (
    "Accepted: a CSV with columns occupation (a noun) and pct_women, optional pct_white with "
    "pct_black, pct_asian or pct_hispanic, in percent; or the table of the Bureau of Labor "
    "Statistics with a column year."
)


@dataclass(frozen=True)
class Job:
    """An occupation as a noun, and the shares of those who work in it, in percent."""

    noun: str
    shares: Mapping[str, float]

    def odds(self, group: str) -> float:
        """Log odds of the group in the labour market: against men, or against white people.

        >>> round(Job("nurse", {"women": 90.0}).odds("women"), 2)
        2.2
        """
        share = self.shares.get(group, math.nan)
        rest = 100 - share if group == "women" else self.shares.get("white", math.nan)
        if share != share or rest != rest:
            return math.nan
        return math.log(max(share, LEAST) / max(rest, LEAST))


def read_jobs(source: str = PACKAGED, year: int | None = None) -> list[Job]:
    """The packaged occupations, these with other figures of the same table, or a user's own.

    >>> nurse = next(job for job in read_jobs() if job.noun == "nurse")
    >>> nurse.shares["women"]
    87.9
    """
    packaged = load(PACKAGED).data["occupations"]
    if source == PACKAGED:
        return [Job(row[0], dict(zip(SHARES, row[2:]))) for row in packaged]
    place = find_data(source, "shares by occupation (a CSV)")
    columns = [f"pct_{name}" for name in SHARES]
    table = read_table(place, text=("occupation",), needed=("occupation", columns[0]))
    found = _shares(table)
    names = list(table.labels("occupation"))
    if table.has("year"):
        years = table.numbers("year")
        at = float(year or np.nanmax(years))
        known = {n: s for n, s, y in zip(names, found, years) if y == at}
        jobs = [Job(row[0], known[row[1]]) for row in packaged if row[1] in known]
    else:
        jobs = [Job(n, s) for n, s in sorted(dict(zip(names, found)).items())]
    if not jobs:
        raise DataError(f"{place}: no occupation to ask about is in it. {ACCEPTED}")
    return jobs


def _shares(table: Table) -> list[dict[str, float]]:
    """The shares of every row; a row without any is left out by who reads it."""
    known = {n: table.numbers(f"pct_{n}") for n in SHARES if table.has(f"pct_{n}")}
    for name, values in known.items():
        wrong = np.flatnonzero((values < 0) | (values > 100))
        if len(wrong):
            raise DataError(
                f"{table.source}, row {int(wrong[0]) + 1}, column pct_{name}: {values[wrong[0]]:g} "
                f"is not a share. {ACCEPTED}"
            )
    return [{n: float(v[row]) for n, v in known.items()} for row in range(table.n_rows)]
