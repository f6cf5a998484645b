"""Iterative nullspace projection (INLP, Ravfogel et al. 2020) in closed form and as published.

Each round fits a linear classifier of the protected label on what is left of the features and
projects its directions out. With a least-squares classifier nothing has to be fitted again: the
inverse Gram matrix of the projected features follows from the one before by rank-1 downdates, so
80 rounds cost about as much as one. `classifier="svc"` fits LinearSVC every round instead, as the
released code does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError, unknown

Floats = npt.NDArray[np.float64]
CLASSIFIERS = ("lsq", "svc")
ZERO = 1e-8  # a LinearSVC with no weight above this has found nothing (released rule)
ROUNDING = 1e-12  # of the first least-squares weights: below this they are rounding errors
NO_VARIANCE = 1e-13  # of the features' sum of squares: a direction with less is not in them
RIDGE = 1e-3  # of the mean feature variance: keeps the Gram matrix well conditioned


class LowRank:
    """An affine map x -> x - left (right' x) + offset, rank by rank.

    Subclasses have `left` and `right` [d, rank] and `offset` [d].
    """

    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    offset: Any

    @property
    def rank(self) -> int:
        """How many dimensions the map takes out."""
        return int(self.left.shape[1])

    @property
    def projection(self) -> Floats:
        """P of x -> P x + offset; idempotent, in general not symmetric."""
        taken = self.left.astype(np.float64) @ self.right.T
        return np.asarray(np.eye(len(self.left)) - taken, np.float64)

    def __call__(self, states: npt.ArrayLike) -> Floats:
        """The map on an array of states [n, d], in float64."""
        X = np.asarray(states, np.float64)
        return np.asarray(X - (X @ self.right) @ self.left.T + self.offset, np.float64)


@dataclass(frozen=True)
class Nullspace:
    """What INLP removed.

    Attributes:
        basis: orthonormal columns [d, rank]; the projection is I - basis basis'.
        rounds: columns of `basis` after each round (its length is the rounds that removed
            something).
        reason: why it stopped before the rounds asked for, or empty.
    """

    basis: Floats
    rounds: tuple[int, ...]
    reason: str = ""
    directions: tuple[Floats, ...] = field(default=(), repr=False)

    @property
    def rank(self) -> int:
        """How many dimensions were removed."""
        return int(self.basis.shape[1])

    @property
    def projection(self) -> Floats:
        """The symmetric, idempotent matrix P = I - B B' (d x d)."""
        return np.eye(len(self.basis)) - self.basis @ self.basis.T

    def after(self, rounds: int) -> Floats:
        """The basis after this many rounds: one fit serves every number of rounds up to it."""
        if rounds <= 0 or not self.rounds:
            return self.basis[:, :0]
        return self.basis[:, : self.rounds[min(rounds, len(self.rounds)) - 1]]


def inlp(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    rounds: int,
    classifier: str = "lsq",
    ridge: float = RIDGE,
    stop: Callable[[Floats], bool] | None = None,
) -> Nullspace:
    """Remove, round by round, the directions from which a linear classifier reads the label.

    P_i = I - proj(rowspace(W_1, ..., W_i)), W_i the classifier of X P_(i-1) (Ravfogel et al.
    2020, Algorithm 1). One-vs-rest without intercept, so k classes (k > 2) lose up to k
    dimensions a round and two classes lose one.

    Args:
        features: [n, d].
        labels: [n], at least two values.
        rounds: how many classifiers to remove.
        classifier: "lsq" (ridge least squares on +-1 targets, closed form) or "svc" (LinearSVC,
            squared hinge, C = 1, primal: the released setting).
        ridge: of "lsq", as a share of the mean feature variance. States of encoders have most
            directions with hardly any variance; a small ridge reads the label off those, and each
            round removes little (120 rounds for what 5 do with 1.0). With a large one the weights
            lean to the differences of class means, which are all that a linear reader needs.
        stop: called with the basis so far after each round; True ends early.

    Returns:
        The orthonormal basis of what was removed. Cost of "lsq": one d x d inverse, then O(d^2)
        a direction; 80 rounds of 4,800 x 768 with three classes take about a second.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 5)); X[:, 0] += 3 * y
    >>> inlp(X, y, rounds=2).rank
    2
    """
    X, classes, codes = checked(features, labels)
    if rounds < 1:
        raise SpecError(f"inlp: rounds is {rounds}. Accepted: 1 or more.")
    if classifier not in CLASSIFIERS:
        raise SpecError(unknown("classifier", classifier, CLASSIFIERS, where="inlp"))
    if not ridge > 0:
        raise SpecError(f"inlp: ridge is {ridge:g}. Accepted: a share above 0.")
    targets = _targets(codes, len(classes))
    step = _LeastSquares(X, targets, ridge) if classifier == "lsq" else _LinearSVC(X, codes)
    return _rounds(step, X.shape[1], rounds, stop)


def _rounds(
    step: _LeastSquares | _LinearSVC, width: int, rounds: int, stop: Callable[[Floats], bool] | None
) -> Nullspace:
    basis = np.zeros((width, 0))
    ends: list[int] = []
    weights: list[Floats] = []
    reason = ""
    for number in range(rounds):
        found = step.weights()
        fresh = basis[:, :0] if step.exhausted(found) else _new_directions(found, basis)
        if not fresh.shape[1]:
            reason = f"round {number + 1}: the classifier found no direction left"
            break
        step.remove(fresh)
        basis = np.hstack([basis, fresh])
        weights.append(found)
        ends.append(basis.shape[1])
        if stop is not None and stop(basis):
            reason = f"round {number + 1}: the stopping rule held"
            break
    return Nullspace(basis, tuple(ends), reason, tuple(weights))


def checked(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, least: int = 2
) -> tuple[Floats, Any, Any]:
    """Features as float64, at least this many labels, and one code per row; or a clear refusal."""
    given, y = np.asarray(features), np.asarray(labels)
    if given.dtype.kind not in "fiub":
        raise DataError(f"erasure: X holds {given.dtype.name} values. Accepted: real numbers.")
    X = np.asarray(given, np.float64)
    if X.ndim != 2 or not X.shape[1] or y.ndim != 1 or len(X) != len(y):
        raise DataError(
            f"erasure: X has shape {X.shape} and y {y.shape}. Accepted: X [n, d] and y [n]."
        )
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise DataError(f"erasure: X, row {row} holds NaN or infinity. Accepted: finite numbers.")
    if y.dtype.kind == "f" and np.isnan(y).any():
        row = int(np.flatnonzero(np.isnan(y))[0])
        raise DataError(f"erasure: y, row {row} is NaN. Accepted: a label for every row.")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < least:
        raise DataError(f"erasure: y holds only {classes.tolist()}. Accepted: two or more labels.")
    return X, classes, codes


def quietly(model: Any, X: Floats, y: npt.NDArray[Any]) -> Any:
    """A fitted scikit-learn model; that it stopped before it converged is no news here."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def _targets(codes: npt.NDArray[np.int64], classes: int) -> Floats:
    """+1 for the class, -1 for the rest; one column when there are two classes."""
    signs = np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
    return signs[:, 1:] if classes == 2 else signs


def _new_directions(weights: Floats, basis: Floats) -> Floats:
    """Orthonormal columns that span the weights and are orthogonal to the basis."""
    left, sizes, _ = np.linalg.svd(weights, full_matrices=False)
    fresh = left[:, sizes > sizes[0] * np.finfo(float).eps * max(weights.shape)]
    for _ in range(2):  # twice is enough for orthogonality to the last bits
        fresh = fresh - basis @ (basis.T @ fresh)
    left, sizes, _ = np.linalg.svd(fresh, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-6], np.float64)


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


class _LeastSquares:
    """Ridge least squares on projected features, by downdating instead of refitting.

    With A = X'X + aI and c = X'Y the weights are A^-1 c. On the complement of a unit vector w
    the inverse of the compressed A is A^-1 - u u' / (w'u), u = A^-1 w, and c becomes c - w (w'c).
    The k directions of one round go together: A^-1 - U (W'U)^-1 U', U = A^-1 W.
    """

    def __init__(self, X: Floats, targets: Floats, ridge: float = RIDGE) -> None:
        from scipy.linalg import cho_factor, cho_solve

        gram = X.T @ X
        added = ridge * (float(np.trace(gram)) / len(gram) or 1.0)
        self.inverse = cho_solve(cho_factor(gram + added * np.eye(len(gram))), np.eye(len(gram)))
        self.cross = X.T @ targets

        self.limit = ROUNDING * _largest(self.weights())
        self.gram, self.least = gram, NO_VARIANCE * float(np.trace(gram))

    def weights(self) -> Floats:
        return np.asarray(self.inverse @ self.cross, np.float64)

    def exhausted(self, weights: Floats) -> bool:
        if _largest(weights) <= self.limit:
            return True
        unit = weights / np.linalg.norm(weights, axis=0).clip(self.limit)
        return bool(np.einsum("dk,dk->k", unit, self.gram @ unit).max() <= self.least)

    def remove(self, directions: Floats) -> None:
        moved = self.inverse @ directions
        self.inverse -= moved @ np.linalg.solve(directions.T @ moved, moved.T)
        self.cross -= directions @ (directions.T @ self.cross)


class _LinearSVC:
    """LinearSVC on projected features, fitted anew every round (released settings)."""

    def __init__(self, X: Floats, codes: npt.NDArray[np.int64]) -> None:
        self.left, self.codes = X.copy(), codes

    def weights(self) -> Floats:
        from sklearn.svm import LinearSVC

        model = LinearSVC(fit_intercept=False, dual=False, random_state=0)
        return np.asarray(quietly(model, self.left, self.codes).coef_.T, np.float64)

    def exhausted(self, weights: Floats) -> bool:
        return _largest(weights) <= ZERO

    def remove(self, directions: Floats) -> None:
        self.left -= (self.left @ directions) @ directions.T
