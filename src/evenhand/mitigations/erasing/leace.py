"""LEACE: the smallest linear change after which no linear classifier reads the label.

Belrose et al. (2023), Theorem 4.3. With whitening W = Sxx^(-1/2) and Q the orthogonal projection
on the columns of W Sxz,

    r(x) = x - W^+ Q W (x - mean),

which makes the covariance of r(X) and the label exactly zero, so every linear predictor does no
better than a constant one, at the least mean squared change of x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def leace(features: npt.ArrayLike, labels: npt.ArrayLike, *, ridge: float = 0.0) -> Leace:
    """Fit LEACE in one step (Belrose et al. 2023, Theorem 4.3).

    Args:
        features: [n, d].
        labels: [n], at least two values, used as one-hot columns.
        ridge: added to the covariance, as a share of the mean variance. The label's covariance
            still becomes zero (any invertible W does that); the change of x is no longer the
            least. For fewer examples than dimensions, where the covariance has no inverse.

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
    X, classes, codes = checked(features, labels)
    mean = X.mean(axis=0)
    centred = X - mean
    onehot = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    cross = centred.T @ (onehot - onehot.mean(axis=0)) / len(X)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    values = values + ridge * values.clip(0.0).mean()
    kept = values > TOLERANCE * values[-1]
    root = np.sqrt(values[kept])
    whiten = (vectors[:, kept] / root) @ vectors[:, kept].T
    colour = (vectors[:, kept] * root) @ vectors[:, kept].T
    span, sizes, _ = np.linalg.svd(whiten @ cross, full_matrices=False)
    span = span[:, sizes > max(1e-9, sizes[0] * 1e-9)]
    return Leace(colour @ span, whiten @ span, mean)
