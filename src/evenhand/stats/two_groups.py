"""Two groups of sampled names in sampled situations, for thousands of words at once.

Every name n of group g was asked in situation c, and x(n, c) is a rate. The model is

    x = mean_g + situation_c + (+-1/2) shift_c + name_n + e

where `shift_c` is what a situation does to the difference of the groups. Names and situations are
samples, so the difference of the groups varies with v_name, v_shift and v_e:

    value = mean over situations of (mean of A in c - mean of B in c)
    error^2 = v_name sum_n b_n^2 + v_shift / K + v_e sum_nc a_nc^2

with the weights a_nc of the cells, b_n = sum_c a_nc and K situations. Components are by moments,
degrees of freedom by Satterthwaite (1946). This is `stats.mixed.Design` with names and signed
situations sampled and situations kept fixed, to the digit where every name meets every situation;
a sum over cells replaces its matrices, so that each word may have gaps of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
BLOCK = 2_000_000
"""Numbers in one block of columns."""
HELD = 1.5


@dataclass(frozen=True)
class Contrasts:
    """Group A minus group B for each column of values.

    Attributes:
        value, error, freedom: of the t statistic; NaN where there is none.
        situations: in how many situations both groups have a value.
        names: the size of the smaller group.
    """

    value: Floats
    error: Floats
    freedom: Floats
    situations: Ints
    names: int

    def p(self) -> Floats:
        """Two-sided, against no difference; NaN where there is none or nothing varies."""
        from scipy.special import stdtr

        t = np.divide(
            self.value, self.error, out=np.full(self.value.shape, np.nan), where=self.error > 0
        )
        return np.asarray(2 * stdtr(self.freedom, -np.abs(t)), np.float64)

    def estimates(self, *, family: int = 1, rate: float = 0.05) -> list[Estimate]:
        """Each column with interval, p and detectable effect; units are the scarcer sample."""
        units = np.where(self.situations > 1, np.minimum(self.situations, self.names), self.names)
        return [
            estimate(float(v), float(e), float(f), units=int(n), family=family, rate=rate)
            for v, e, f, n in zip(self.value, self.error, self.freedom, units)
        ]


def group_contrasts(values: npt.ArrayLike, first: npt.ArrayLike, least: int = 2) -> Contrasts:
    """The difference of two groups in every column, over names and situations.

    Args:
        values: [names, situations, columns], NaN where there is none.
        first: whether a name is of group A; the others are of group B.
        least: situations that a column needs. With 1, a column of one situation is a comparison of
            names alone: the t test of two samples.

    Few situations make the estimate of v_shift so unsure that Satterthwaite's degrees of freedom
    come out too large in the tails, and likewise few names; they are held at 1.5 times those of the
    scarcer sample, K - 1 or n - 2 (`benchmarks.calibration`).

    >>> x = np.random.default_rng(0).normal(size=(8, 6, 1))
    >>> x[:4] += 2
    >>> found = group_contrasts(x, np.arange(8) < 4)
    >>> round(float(found.value[0]), 2), round(float(found.p()[0]), 3)
    (1.63, 0.007)
    """
    table, in_a = np.asarray(values, np.float64), np.asarray(first, bool)
    names = int(min(in_a.sum(), (~in_a).sum()))
    width = table.shape[2]
    value, error, freedom = (np.full(width, np.nan) for _ in range(3))
    situations = np.zeros(width, np.int64)
    if names >= 2:
        for part in _blocks(table):
            made = _Moments(table[..., part], in_a)
            situations[part] = made.situations
            known = made.situations >= max(1, least)
            value[part], error[part], freedom[part] = (
                np.where(known, v, np.nan) for v in (made.value, made.error(), made.freedom())
            )
    return Contrasts(value, error, freedom, situations, names)


def _blocks(table: Floats) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, table.shape[0] * table.shape[1]))
    for begin in range(0, table.shape[2], step):
        yield slice(begin, begin + step)


class _Moments:
    """Components of a block of columns, [columns] each."""

    def __init__(self, values: Floats, in_a: Marks) -> None:
        there = ~np.isnan(values)
        sizes = np.stack([there[in_a].sum(axis=0), there[~in_a].sum(axis=0)]).astype(float)
        both = np.asarray((sizes > 0).all(axis=0), np.bool_)
        there &= both
        x = np.where(there, values, 0.0)
        self.situations = both.sum(axis=0)
        share = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=both)
        side = (~in_a).astype(int)
        means = np.stack([x[in_a].sum(axis=0), x[~in_a].sum(axis=0)]) * share
        self.k = np.maximum(self.situations, 1)
        apart = means[0] - means[1]
        self.value = apart.sum(axis=0) / self.k
        self._names(np.where(there, x - means[side], 0.0), there, share, sizes * both, in_a)
        self._situations(np.where(both, apart - self.value, 0.0), there, share, side, both)

    def _names(self, rest: Floats, there: Marks, share: Floats, sizes: Floats, in_a: Marks) -> None:
        """v_name and v_e from what is left after the means of group and situation."""
        times = there.sum(axis=1)
        per = np.divide(1.0, times, out=np.zeros(times.shape), where=times > 0)
        free = np.maximum(sizes - 1, 0).sum(axis=(0, 1))
        mean_square = (rest**2).sum(axis=(0, 1)) / np.maximum(free, 1)
        by_name = (rest.sum(axis=1) ** 2 * per).sum(axis=0)
        of_e, of_name = np.zeros((2, there.shape[2]))
        for number, group in enumerate((in_a, ~in_a)):
            met = there[group].astype(float)
            joint = -np.einsum("ncw,kcw,cw->nkw", met, met, share[number], optimize=True)
            at = np.arange(len(joint))
            joint[at, at] += met.sum(axis=1)
            of_e += (joint[at, at] * per[group]).sum(axis=0)
            of_name += (joint**2 * per[group][:, None]).sum(axis=(0, 1))
        apart = of_name - of_e  # 0 where no name is in two situations
        told = apart > 1e-9
        v_e = np.where(told, of_name * mean_square - by_name, mean_square)
        v_e = np.where(told, v_e / np.where(told, apart, 1.0), v_e)
        self.raw_e, self.raw_name = v_e, np.where(told, mean_square - v_e, 0.0)
        self.v_e, self.v_name = np.maximum(v_e, 0.0), np.maximum(self.raw_name, 0.0)
        self.e_of_name = np.divide(of_e, of_name, out=np.ones(len(of_e)), where=of_name > 0)
        self.names = (times > 0).sum(axis=0) - 2
        self.free = free

    def _situations(
        self, off: Floats, there: Marks, share: Floats, side: Ints, both: Marks
    ) -> None:
        """v_shift from how far the situations' differences lie apart; the estimate's weights."""
        weight = np.where(there, share[side], 0.0) * np.where(side == 0, 1.0, -1.0)[:, None, None]
        mean = weight.sum(axis=1) / self.k
        moved = (np.where(both, weight - mean[:, None], 0.0) ** 2).sum(axis=(0, 1))
        noise = share.sum(axis=(0, 1))
        known = (off**2).sum(axis=0) - (1 - 1 / self.k) * noise * self.raw_e - moved * self.raw_name
        self.v_shift = np.maximum(known / np.maximum(self.k - 1, 1), 0.0) * (self.k > 1)
        self.of_names, self.of_cells = (mean**2).sum(axis=0), noise / self.k**2

    def error(self) -> Floats:
        return np.asarray(
            np.sqrt(self.v_name * self.of_names + self.v_shift / self.k + self.v_e * self.of_cells)
        )

    def freedom(self) -> Floats:
        """Satterthwaite's, from the three mean squares that the variance is made of."""
        several = self.k > 1
        shift = np.where(several, self.v_shift / self.k + self.v_e * self.of_cells, 0.0)
        name = (self.v_name + self.v_e * self.e_of_name) * self.of_names
        rest = np.where(several, -self.v_e * self.e_of_name * self.of_names, 0.0)
        m, few = np.maximum(self.k - 1, 1), np.maximum(self.names, 1)
        spread = name**2 / few + shift**2 / m + rest**2 / np.maximum(self.free - few, 1)
        made = np.divide(
            self.error() ** 4, spread, out=np.full(len(spread), np.nan), where=spread > 0
        )
        held = np.where(several, HELD * np.minimum(m, few), np.inf)
        return np.asarray(np.clip(made, 1.0, held))
