"""Who stands where: ranks of terms across models, and shares of comparisons won.

These are the numbers behind the paper's rank figures (Li et al. 2020, Fig. 4 and 5) and behind the
bipartite picture of its demonstration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def descending_ranks(values: Mapping[str, float]) -> dict[str, int]:
    """Rank of each term, 1 for the largest value; equal values keep their order.

    With gamma(x) over negative attributes, rank 1 is the term most associated with them.

    >>> descending_ranks({"a": 0.1, "b": 0.3, "c": 0.1})
    {'b': 1, 'a': 2, 'c': 3}
    """
    ordered = sorted(values, key=lambda term: -values[term])
    return {term: place for place, term in enumerate(ordered, start=1)}


@dataclass(frozen=True, slots=True)
class TermRank:
    """A term's ranks in several models, their mean and population standard deviation."""

    term: str
    mean: float
    sd: float
    ranks: tuple[int, ...]


def rank_table(models: Sequence[Mapping[str, float]]) -> list[TermRank]:
    """Mean and spread of each term's rank over models (Li et al. 2020, Fig. 4 and 5).

    Terms that a model lacks are left out of all models. Sorted by mean rank; the standard
    deviation is the population one (divided by n), as in the paper's notebook. With random
    preferences each mean is near (terms + 1) / 2.

    >>> table = rank_table([{"a": 1.0, "b": 0.0}, {"a": 0.2, "b": 0.1}])
    >>> table[0]
    TermRank(term='a', mean=1.0, sd=0.0, ranks=(1, 1))
    """
    if not models:
        return []
    shared = [term for term in models[0] if all(term in model for model in models)]
    kept = set(shared)
    ranks = [descending_ranks({t: v for t, v in m.items() if t in kept}) for m in models]
    rows = [tuple(r[term] for r in ranks) for term in shared]
    table = [
        TermRank(term, float(np.mean(row)), float(np.std(row)), row)
        for term, row in zip(shared, rows, strict=True)
    ]
    return sorted(table, key=lambda row: (row.mean, row.sd))


def top_rows(table: Floats, rows: Sequence[str], columns: Sequence[str], keep: int) -> list[Link]:
    """The `keep` largest entries of each column; of equal ones the later row goes first.

    That order of ties is the released dump's, which sorts upwards and takes the end.

    >>> top_rows(np.array([[0.2], [0.9], [np.nan]]), ["a", "b", "c"], ["x"], 2)
    [Link(row='b', column='x', value=0.9), Link(row='a', column='x', value=0.2)]
    """
    links = []
    for j, column in enumerate(columns):
        known = [i for i in range(len(rows)) if not np.isnan(table[i, j])]
        best = sorted(known, key=lambda i: (table[i, j], i))[::-1][:keep]
        links += [Link(rows[i], column, float(table[i, j])) for i in best]
    return links


@dataclass(frozen=True, slots=True)
class Link:
    """One line of a bipartite picture."""

    row: str
    column: str
    value: float
