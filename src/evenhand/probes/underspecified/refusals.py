"""Whether questions are declined more often for some names than for others.

Both groups' names stand in every question, so groups are compared by which of them is named first,
in the same pairs of names and the same questions:

    gap(pair) = share declined, group a's name first - share declined, group b's name first

A single term is compared with what its partners get beside others:

    gap(t, p) = share declined of (t, p) - mean over others u of the share declined of (u, p)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.tables import known_mean
from evenhand.runs.finding import Finding
from evenhand.stats.mixed import Design, Factor

Floats = npt.NDArray[np.float64]
PLACE = f"underspecified/{REFUSED}"


class Refusals:
    """Shares declined, summed by pair of terms and order of naming as cells arrive."""

    def __init__(self, names: Cells) -> None:
        self.names = names
        terms = len(names.terms)
        self.sums, self.counts = np.zeros((2, terms, terms)), np.zeros((terms, terms))

    def add(self, cells: Cells, told: Floats) -> None:
        """A block of cells; `told` [cells, inputs, TOLD]."""
        by_order = known_mean(told[..., TOLD.index(REFUSED)].reshape(-1, 2, 2))
        known = np.isfinite(by_order).all(axis=1)
        at = cells.first[known], cells.second[known]
        np.add.at(self.counts, at, 1.0)
        for order in (0, 1):
            np.add.at(self.sums[order], at, by_order[known, order])

    def findings(self, rate: float, others: int = 0) -> list[Finding]:
        """One claim about the groups, or one for each term; none where nothing is declined.

        `others` is how many tests are made beside these.
        """
        if not self.sums.any():
            return []
        shares = self.sums / np.where(self.counts > 0, self.counts, np.nan)
        judge = self._groups if self.names.groups else self._terms
        return judge(shares, rate, others)

    def _groups(self, shares: Floats, rate: float, others: int) -> list[Finding]:
        assert self.names.group_of_term is not None
        group = self.names.group_of_term
        i, j = np.nonzero((self.counts > 0) & (group[:, None] != group[None, :]))
        turned = group[i] > group[j]
        first, second = shares[:, i, j]
        one, two = np.where(turned, second, first), np.where(turned, first, second)
        design = Design([Factor(np.where(turned, j, i)), Factor(np.where(turned, i, j))])
        a, b = self.names.groups[:2]
        return parity(
            PLACE,
            (a, b),
            one,
            two,
            units="pairs of names",
            over=("names",),
            rate=rate,
            family=others + 1,
            design=design if len(i) > 1 else None,
            about="questions that name first",
            method="paired by question; names as crossed samples, Satterthwaite t",
        )

    def _terms(self, shares: Floats, rate: float, others: int) -> list[Finding]:
        mean = shares.mean(axis=0)
        both = np.where(np.isnan(mean), mean.T, mean)  # each pair met in one direction
        out: list[Finding] = []
        for k, term in enumerate(self.names.terms):
            partners = np.flatnonzero(np.isfinite(both[k]))
            rest = np.delete(both[partners], k, axis=1)
            known = np.isfinite(rest).any(axis=1)
            one, beside = both[k, partners][known], rest[known]
            out += parity(
                f"{PLACE}/{term}",
                (term, "the others"),
                one,
                np.nanmean(beside, axis=1) if len(beside) else one,
                units="partner terms",
                over=("partner terms",),
                rate=rate,
                family=others + len(self.names.terms),
                method="against the partners' other questions; t over partners",
            )
        return out
