"""LEACE: the smallest linear change after which no linear classifier reads the label.

Belrose et al. (2023), Theorem 4.3. With whitening W = Sxx^(-1/2) and Q the orthogonal projection
on the columns of W Sxz,

    r(x) = x - W^+ Q W (x - mean),

which makes the covariance of r(X) and the label exactly zero, so every linear predictor does no
better than a constant one, at the least mean squared change of x.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.mitigations.erasing.nullspace import Floats, LowRank, checked

TOLERANCE = 1e-10  # of the largest eigenvalue: directions with less variance carry nothing


@dataclass(frozen=True)
class Leace(LowRank):
    """x -> x - left (right' (x - mean)): left W^+ U and right W U, U spanning W Sxz."""

    left: Floats
    right: Floats
    mean: Floats

    @property
    def offset(self) -> Floats:
        """What is added so that the mean stays where it was."""
        return np.asarray(self.left @ (self.right.T @ self.mean), np.float64)

    def __call__(self, states: npt.ArrayLike) -> npt.NDArray[Any]:
        """The map on an array of states [n, d]: float32 stays float32, all else is float64."""
        X = np.asarray(states)
        kind = np.float32 if X.dtype == np.float32 else np.float64
        X = np.asarray(X, kind)
        low = X @ self.right.astype(kind)
        low -= (self.mean @ self.right).astype(kind)
        out = low @ (-self.left.T).astype(kind)
        out += X
        return np.asarray(out)


@dataclass
class Sums:
    """What LEACE needs of the rows, added up part by part: any number of rows in d x d numbers.

    With parts a and b of n_a and n_b rows, scatter = scatter_a + scatter_b + n_a n_b / n d d',
    d the difference of their means (Chan, Golub and LeVeque 1983).
    """

    n: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    scatter: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    classes: dict[Any, tuple[int, Floats]] = field(default_factory=dict)
    """By label: how many rows, and their sum."""

    def add(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        """Take in more rows; a part may hold one label only."""
        X, classes, codes = checked(features, labels, least=1)
        if self.n and X.shape[1] != len(self.mean):
            raise DataError(
                f"erasure: X has {X.shape[1]} columns, earlier parts had {len(self.mean)}. "
                "Accepted: parts of the same features."
            )
        own = X.mean(axis=0)
        centred = X - own
        scatter = centred.T @ centred
        if self.n:
            apart, total = own - self.mean, self.n + len(X)
            scatter += self.scatter + self.n * len(X) / total * np.outer(apart, apart)
            own = self.mean + len(X) / total * apart
        self.mean, self.scatter, self.n = own, scatter, self.n + len(X)
        for code, label in enumerate(classes.tolist()):
            part = X[codes == code]
            count, total_ = self.classes.get(label, (0, np.zeros(X.shape[1])))
            self.classes[label] = (count + len(part), total_ + part.sum(axis=0))

    def solved(self, *, ridge: float = 0.0, shrinkage: bool = False) -> Leace:
        """The map for all rows so far; see `leace`."""
        if len(self.classes) < 2:
            raise DataError(
                f"erasure: y holds only {list(self.classes)}. Accepted: two or more labels."
            )
        cross = (
            np.stack([total - count * self.mean for count, total in self.classes.values()], axis=1)
            / self.n
        )
        values, vectors = np.linalg.eigh(self.scatter / self.n)
        values = values + ridge * values.clip(0.0).mean()
        values = shrunk(values, self.n) if shrinkage else values
        kept = values > TOLERANCE * values[-1]
        root = np.sqrt(values[kept])
        whiten = (vectors[:, kept] / root) @ vectors[:, kept].T
        colour = (vectors[:, kept] * root) @ vectors[:, kept].T
        span, sizes, _ = np.linalg.svd(whiten @ cross, full_matrices=False)
        span = span[:, sizes > max(1e-9, sizes[0] * 1e-9)]
        return Leace(colour @ span, whiten @ span, self.mean)


def shrunk(values: Floats, n: int) -> Floats:
    """Eigenvalues of a covariance of n rows, drawn to their mean as far as n rows are too few.

    S* = a S + (1 - a) (tr S / d) I with a = 1 - (tr S)^2 / n / (|S|_F^2 - (tr S)^2 / d) between 0
    and 1, the least expected squared error among such mixtures for large n and d (Bodnar, Gupta
    and Parolya 2014, Eq. 4.3 and 4.4 with the identity as target).

    >>> shrunk(np.array([1.0, 9.0]), 10).round(3).tolist()
    [2.25, 7.75]
    >>> shrunk(np.array([1.0, 9.0]), 2).tolist()
    [5.0, 5.0]
    """
    total, d = float(values.sum()), len(values)
    apart = float((values**2).sum()) - total**2 / d
    share = 1 - total**2 / n / apart if apart > 0 else 0.0
    share = min(1.0, max(0.0, share))
    return np.asarray(share * values + (1 - share) * total / d, np.float64)


def leace(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, ridge: float = 0.0, shrinkage: bool = False
) -> Leace:
    """Fit LEACE in one step (Belrose et al. 2023, Theorem 4.3).

    Args:
        features: [n, d].
        labels: [n], at least two values, used as one-hot columns.
        ridge: added to the covariance, as a share of the mean variance. The label's covariance
            still becomes zero (any invertible W does that); the change of x is no longer the
            least. For fewer examples than dimensions, where the covariance has no inverse.
        shrinkage: draw the covariance to its mean variance by as much as the number of examples
            asks for (`shrunk`), instead of by a ridge of one's own choice.

    Returns:
        The map; its rank is classes - 1 unless classes share their mean. Cost: one d x d
        eigen-decomposition.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(300, 6)); X[:, 0] += y
    >>> left = leace(X, y)(X)
    >>> means = [left[y == k].mean(axis=0) for k in range(3)]
    >>> bool(np.ptp(means, axis=0).max() < 1e-9)
    True
    """
    sums = Sums()
    sums.add(features, labels)
    return sums.solved(ridge=ridge, shrinkage=shrinkage)
