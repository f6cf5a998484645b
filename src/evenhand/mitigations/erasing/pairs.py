"""Erasing what tells matched contexts apart, at the least cost to ordinary text.

INLP's classifiers look for any direction from which the group can be read, and the projection
removes it whole, whatever else the model keeps there. Matched contexts allow a sharper question:
which directions move when only the group changes, in proportion to how much they move anyway?

    w = argmax  w' D w / w' S w,   D = mean of (h_a - h_b)(h_a - h_b)',  S = covariance of text

The solutions are generalised eigenvectors R of (D, S). They are removed by the projection that is
orthogonal in the metric of S,  h' = h - L R'(h - mean), L = S R, which changes ordinary states
least (the same argument as LEACE, Belrose et al. 2023). Round k removes the k-th eigenvector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError

Floats = npt.NDArray[np.float64]
RIDGE = 1e-3


@dataclass(frozen=True)
class PairErasure:
    """Columns of `left` and `right` in order of removal, and the mean that stays in place.

    Attributes:
        left, right: [d, rounds]; h' = h - left right' (h - mean).
        ratios: w'Dw / w'Sw of each round: 2 would mean that all variance is the group's.
    """

    left: Floats
    right: Floats
    mean: Floats
    ratios: Floats

    def after(self, rounds: int) -> tuple[Floats, Floats, Floats]:
        """Left, right and offset after this many rounds."""
        left, right = self.left[:, :rounds], self.right[:, :rounds]
        return left, right, left @ (right.T @ self.mean)


def erase_pairs(differences: npt.ArrayLike, ordinary: npt.ArrayLike, rounds: int) -> PairErasure:
    """Fit the erasure from differences of matched states [n, d] and states of ordinary text.

    At most min(n, d) rounds, the strongest direction first. Cost: one d x d generalised
    eigen-decomposition.

    >>> rng = np.random.default_rng(0)
    >>> text = rng.normal(size=(500, 4))
    >>> found = erase_pairs(np.array([[2.0, 0, 0, 0], [1.0, 0, 0, 0]]), text, 1)
    >>> bool(abs(found.right[0, 0]) > 10 * abs(found.right[1:, 0]).max())
    True
    """
    from scipy.linalg import eigh

    D, X = np.asarray(differences, np.float64), np.asarray(ordinary, np.float64)
    if not (np.isfinite(D).all() and np.isfinite(X).all()):
        raise DataError("mitigation: hidden states hold NaN or infinity. Use: --dtype float32")
    rounds = min(rounds, *D.shape)
    S = np.cov(X.T)
    S += RIDGE * np.trace(S) / len(S) * np.eye(len(S))
    top = (len(S) - rounds, len(S) - 1)
    values, right = eigh(D.T @ D / len(D), S, subset_by_index=top)
    right = right[:, ::-1]
    return PairErasure(S @ right, right, X.mean(axis=0), values[::-1])
