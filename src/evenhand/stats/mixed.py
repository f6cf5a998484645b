"""Means and contrasts over sampled names, words, templates and contexts: one variance model.

A number such as a lean is a mean over things that were drawn: names meet names, words meet words,
every name is asked in every context. Values that share a name are alike, so they are no
independent draws. The model is

    y = X b + sum_f Z_f u_f + e,      u_f ~ (0, v_f I),      e ~ (0, v_e I)

with one random factor f per thing that the claim generalises over. The estimate is the contrast
c' b by least squares; its variance follows from components v estimated by moments (Henderson
1953), and t gets the degrees of freedom of Satterthwaite (1946). p, interval, standard error and
detectable effect come from this one variance, so that they agree.

For a complete table of I x J names this is the analysis of variance: (MS_A + MS_B - MS_E) / (I J).
For disjoint pairs it is the one-sample t test over pairs. With one factor whose levels are as large
it is the t test over the levels' means, to the digit: only there a component may come out negative,
since the variance of the estimate cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.stats.estimate import Estimate, estimate

ALIKE = 1e-9
"""Below this share of another number a number is what additions leave behind."""
LEFT = 1e-13
"""The same of squares."""
FEW = 8
"""Levels from which on a factor's component is sure enough beside those of larger factors."""
HELD = 1.5
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Factor:
    """A sampled factor: which level each row has, and how much of the level's effect it gets.

    `weight` is 1 for an ordinary effect, +1 and -1 (or shares) where a level's effect enters rows
    with different signs: the situations of two groups' names, the attributes of two target sets.
    Two factors with weights 1 and 0 let the levels of two sides differ in their variance.
    """

    codes: Codes
    weight: Floats | None = None

    def columns(self) -> Floats:
        """The design matrix, one column per level that occurs and has a weight."""
        levels, codes = np.unique(self.codes, return_inverse=True)
        table = np.zeros((len(codes), len(levels)))
        table[np.arange(len(codes)), codes] = 1.0 if self.weight is None else self.weight
        return table[:, table.any(axis=0)]


class Design:
    """Rows, fixed part and sampled factors, prepared once for any number of value columns.

    Args:
        factors: what was sampled, crossed or nested.
        fixed: design matrix of the fixed part; by default one mean.
        contrast: the combination of fixed coefficients that is estimated; by default the mean.
        within: levels with a fixed effect each, such as the cases inside which groups are compared.
            They are taken out of y, X and Z before all else (Frisch and Waugh 1933), which is least
            squares with a column for each of them, without columns.
        held: whether a factor of fewer than `FEW` levels among larger ones holds the degrees of
            freedom at 1.5 times its own. Its component is so unsure that it often comes out too
            small, and Satterthwaite's then are those of the larger factor.

    >>> pairs = Design([Factor(np.arange(4)), Factor(np.arange(4))])
    >>> round(pairs.estimate(np.array([1.0, 2.0, 3.0, 6.0])).p, 4)   # the t test over four pairs
    0.0691
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        fixed: Floats | None = None,
        contrast: npt.ArrayLike | None = None,
        within: Codes | None = None,
        held: bool = False,
    ) -> None:
        if not factors:
            raise DataError("factors: none is given. Accepted: one or more sampled factors.")
        n = len(factors[0].codes)
        x = np.ones((n, 1)) if fixed is None else np.asarray(fixed, np.float64)
        direction = np.eye(x.shape[1])[0] if contrast is None else np.asarray(contrast, float)
        parts = [x, *(factor.columns() for factor in factors)]
        ends = np.cumsum([part.shape[1] for part in parts])
        z = np.concatenate(parts, axis=1)
        self.sizes = (z * z).sum(axis=0)
        self.within = None if within is None else np.unique(within, return_inverse=True)[1]
        self.z = self._inside(z)
        x = self.z[:, : x.shape[1]]
        self.rows = n - (0 if self.within is None else int(self.within.max()) + 1)
        self.blocks = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends)]
        self.gram = self.z.T @ self.z
        # What is left of columns that only tell levels of `within` apart is rounding.
        least = 1e-15 if within is None else ALIKE
        inverse = np.asarray(np.linalg.pinv(x.T @ x, rcond=least), np.float64)
        self.weights: Floats = x @ (inverse @ direction)
        self.levels = [part.shape[1] for part in parts[1:]]
        few = held and min(self.levels) < min(FEW, max(self.levels))
        self.fewest = min(self.levels) - 1 if few else None
        self._moments(inverse)

    def _inside(self, y: Floats) -> Floats:
        """Columns less their means in the levels of `within`."""
        if self.within is None:
            return y
        sums = np.zeros((int(self.within.max()) + 1, y.shape[1]))
        np.add.at(sums, self.within, y)
        return np.asarray(y - (sums / np.bincount(self.within)[:, None])[self.within], np.float64)

    def _moments(self, inverse: Floats) -> None:
        """Moment equations of the components, and what the variance of the estimate makes of them.

        Operators are o I + Z A Z' with Z = [X, Z_1, ...]: products and traces need matrices as
        large as the number of levels only, however many rows there are. I is the projection that
        takes the levels of `within` out, if there are any; Z has none of them left.
        """
        size = len(self.gram)
        remove = np.zeros((size, size))
        remove[self.blocks[0], self.blocks[0]] = -inverse
        clean = _Operator(1.0, remove)
        spread = [self._level_operator(block) for block in self.blocks[1:]]
        means = [self._level_means(block) for block in self.blocks[1:]]
        spread.append(_Operator(1.0, np.zeros((size, size))))
        self.forms = [self._times(self._times(clean, m), clean) for m in means] + [clean]
        known = self._traces(self.forms, spread)
        self.shares = np.array(
            [
                (self.z[:, b].T @ self.weights) @ (self.z[:, b].T @ self.weights)
                for b in self.blocks[1:]
            ]
            + [self.weights @ self.weights]
        )
        self.solve = np.linalg.pinv(known, rcond=1e-9)
        mixed = self.shares @ self.solve
        self.mixed = mixed
        # The variance is one of levels' means alone: a sum of squares, whatever the components.
        self.nested = len(means) == 1 and mixed[-1] > -ALIKE * abs(mixed[0])
        quadratic = _Operator(
            float(sum(g * r.scale for g, r in zip(mixed, self.forms))),
            np.asarray(sum(g * r.inner for g, r in zip(mixed, self.forms))),
        )
        sides = [self._times(quadratic, s) for s in spread]
        self.noise = self._traces(sides, sides)

    def _level_operator(self, block: slice) -> _Operator:
        inner = np.zeros_like(self.gram)
        at = np.arange(block.start, block.stop)
        inner[at, at] = 1.0
        return _Operator(0.0, inner)

    def _level_means(self, block: slice) -> _Operator:
        inner = np.zeros_like(self.gram)
        at = np.arange(block.start, block.stop)
        inner[at, at] = 1.0 / self.sizes[at]
        return _Operator(0.0, inner)

    def _times(self, a: _Operator, b: _Operator) -> _Operator:
        inner = a.scale * b.inner + b.scale * a.inner + a.inner @ self.gram @ b.inner
        return _Operator(a.scale * b.scale, inner)

    def _traces(self, left: Sequence[_Operator], right: Sequence[_Operator]) -> Floats:
        """tr(A B) for every A and B: with Z'Z at hand, sums of products, without the product."""
        ours, theirs = ([x.inner @ self.gram for x in side] for side in (left, right))
        return np.array(
            [
                [
                    a.scale * b.scale * self.rows
                    + a.scale * np.trace(n)
                    + b.scale * np.trace(m)
                    + (m * n.T).sum()
                    for b, n in zip(right, theirs)
                ]
                for a, m in zip(left, ours)
            ]
        )

    def components(self, values: Floats) -> Floats:
        """Variance components [factors + 1, columns]; negative moment estimates become 0."""
        return np.asarray(np.maximum(self.solve @ self._squares(values), 0.0), np.float64)

    def _squares(self, values: Floats) -> Floats:
        """The moments [factors + 1, columns]."""
        y = self._inside(np.asarray(values, np.float64).reshape(len(self.z), -1))
        inside = self.z.T @ y
        squares = (y * y).sum(axis=0)
        return np.stack(
            [
                form.scale * squares + np.einsum("ic,ij,jc->c", inside, form.inner, inside)
                for form in self.forms
            ]
        )

    def estimates(self, values: npt.ArrayLike, **options: Any) -> list[Estimate]:
        """One estimate per column; `options` are those of `estimate` (ideal, family, rate)."""
        y = self._inside(np.asarray(values, np.float64).reshape(len(self.z), -1))
        parts = self.components(y)
        variance = self.shares @ parts
        spread = np.einsum("fc,fg,gc->c", parts, self.noise, parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.where(spread > 0, variance**2 / spread, np.nan)
        freedom = np.where(np.isnan(freedom), 1.0, np.maximum(freedom, 1.0))
        if self.fewest is not None:
            freedom = np.minimum(freedom, max(1.0, HELD * self.fewest))
        if self.nested:
            variance = np.maximum(self.mixed @ self._squares(y), 0.0)
        # Differences of squares leave about 1e-16 of these behind where nothing varies.
        size = (y * y).mean(axis=0) * (self.weights @ self.weights)
        variance = np.where(variance <= LEFT * size, 0.0, variance)
        value = self.weights @ y
        ideal = options.get("ideal", 0.0)
        reach = ALIKE * np.sqrt((y * y).mean(axis=0)) * np.abs(self.weights).sum()
        value = np.where((variance == 0) & (np.abs(value - ideal) <= reach), ideal, value)
        return [
            estimate(float(m), float(np.sqrt(v)), float(d), units=min(self.levels), **options)
            for m, v, d in zip(value, variance, freedom)
        ]

    def estimate(self, values: npt.ArrayLike, **options: Any) -> Estimate:
        """The estimate of one column of values."""
        return self.estimates(values, **options)[0]


@dataclass(frozen=True)
class _Operator:
    """scale * I + Z inner Z'"""

    scale: float
    inner: Floats
