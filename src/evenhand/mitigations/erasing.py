"""Erase a label from features: INLP, LEACE, matched pairs, SentenceDebias.

    from evenhand.mitigations.erasing import LEACE

    eraser = LEACE().fit(X, y)        # scikit-learn transformers: INLP, LEACE, SentenceDebias
    eraser.transform(X_new)

Every method gives one affine map of low rank, a `Removal`: x -> x - left (right' x) + offset.

inlp             rounds of linear classifiers, each one's directions projected out (Ravfogel et al.
                 2020), in closed form or with LinearSVC as released
leace            the smallest change after which no linear classifier reads the label (Belrose et
                 al. 2023)
erase_pairs      the directions in which matched rows differ most, relative to ordinary text
pair_components  the principal components of matched rows (SentenceDebias, Liang et al. 2020)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError, unknown

if TYPE_CHECKING:
    from evenhand.mitigations.estimators import INLP, LEACE, SentenceDebias

__all__ = [
    "INLP",
    "LEACE",
    "Removal",
    "SentenceDebias",
    "erase_pairs",
    "inlp",
    "leace",
    "pair_components",
]

Floats = npt.NDArray[np.float64]
CLASSIFIERS = ("lsq", "svc")
ZERO = 1e-8  # a LinearSVC without a weight above this found nothing (released rule)
ROUNDING = 1e-12  # of the first least-squares weights: smaller ones are rounding errors
NO_VARIANCE = 1e-13  # of the features' sum of squares: the features do not vary along less
NO_EIGENVALUE = 1e-10  # of the largest eigenvalue: LEACE ignores directions with less variance
RIDGE = 1e-3  # of the mean feature variance: keeps Gram and covariance matrices invertible


def __getattr__(name: str) -> Any:
    """Load the scikit-learn transformers, and scikit-learn with them, on first use."""
    if name not in ("INLP", "LEACE", "SentenceDebias"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evenhand.mitigations import estimators

    return getattr(estimators, name)


@dataclass(frozen=True)
class Removal:
    """The affine map x -> x - left (right' x) + offset, with right' left the identity.

    Attributes:
        left, right: [d, rank], columns in the order of their removal.
        offset: [d]; zeros if the map is linear.
        rounds: number of columns after each round of fitting.
        reason: why fitting ended before the requested rounds, or empty.

    >>> e = np.eye(2, 1)
    >>> Removal(e, e, np.zeros(2)).projection.tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    offset: npt.NDArray[Any]
    rounds: tuple[int, ...] = ()
    reason: str = ""

    @classmethod
    def of_basis(cls, basis: Floats, rounds: tuple[int, ...] = (), reason: str = "") -> Self:
        """Return the orthogonal projection that removes orthonormal columns [d, rank]."""
        return cls(basis, basis, np.zeros(len(basis)), rounds, reason)

    @property
    def rank(self) -> int:
        """Number of dimensions that the map removes."""
        return int(self.left.shape[1])

    @property
    def projection(self) -> Floats:
        """P of x -> P x + offset, [d, d]; idempotent, symmetric only if left equals right."""
        removed = self.left.astype(np.float64, copy=False) @ self.right.T
        return np.asarray(np.eye(len(self.left)) - removed, np.float64)

    def around(self, mean: Floats) -> Self:
        """Return the map with the offset that leaves `mean` where it is."""
        return replace(self, offset=self.left @ (self.right.T @ mean))

    def after(self, rounds: int) -> Self:
        """Return the map after the first `rounds` rounds: one fit serves every smaller number."""
        ends = (0, *self.rounds)
        end = ends[min(max(rounds, 0), len(self.rounds))]
        left, right = self.left[:, :end], self.right[:, :end]
        offset = left @ (right.T @ self.offset)
        return replace(
            self, left=left, right=right, offset=offset, rounds=self.rounds[: max(rounds, 0)]
        )

    def __call__(self, states: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the mapped rows [n, d]: float32 for float32 rows, float64 for all others."""
        X = np.asarray(states)
        kind = np.float32 if X.dtype == np.float32 else np.float64
        X = np.asarray(X, kind)
        left, right = (a.astype(kind, copy=False) for a in (self.left, self.right))
        mapped = (X @ right) @ left.T
        np.subtract(X, mapped, out=mapped)
        mapped += self.offset.astype(kind, copy=False)
        return np.asarray(mapped)


def inlp(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    rounds: int,
    classifier: str = "lsq",
    ridge: float = RIDGE,
    stop: Callable[[Floats], bool] | None = None,
) -> Removal:
    """Remove the directions from which linear classifiers read the label, round by round.

    P_i = I - proj(rowspace(W_1, ..., W_i)), W_i the classifier of X P_(i-1) (Ravfogel et al.
    2020, Algorithm 1). One-vs-rest without intercept, so k classes (k > 2) lose up to k
    dimensions a round and two classes lose one.

    Args:
        features: [n, d].
        labels: [n], at least two values.
        rounds: how many classifiers to remove.
        classifier: "lsq" (ridge least squares on +-1 targets, closed form) or "svc" (LinearSVC,
            squared hinge, C = 1, primal: the released setting). The closed form refits nothing:
            downdates of the inverse Gram matrix give each round's weights.
        ridge: of "lsq", as a share of the mean feature variance. Most directions of an encoder's
            states hardly vary; with a small ridge the classifier reads the label from them, and
            each round removes little (120 rounds instead of 5). A large ridge turns the weights
            to the differences of class means.
        stop: called with the basis so far after each round; True ends early.

    Returns:
        The orthogonal projection on what is left, without an offset. Cost of "lsq": one d x d
        inverse, then O(d^2) a direction; 80 rounds of 4,800 x 768 take about a second.

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
) -> Removal:
    basis = np.zeros((width, 0))
    ends: list[int] = []
    reason = ""
    for number in range(rounds):
        weights = step.weights()
        fresh = basis[:, :0] if step.exhausted(weights) else _new_directions(weights, basis)
        if not fresh.shape[1]:
            reason = f"round {number + 1}: the classifier found no direction left"
            break
        step.remove(fresh)
        basis = np.hstack([basis, fresh])
        ends.append(basis.shape[1])
        if stop is not None and stop(basis):
            reason = f"round {number + 1}: the stopping rule held"
            break
    return Removal.of_basis(basis, tuple(ends), reason)


def _targets(codes: npt.NDArray[np.int64], classes: int) -> Floats:
    """Return +1 for the class and -1 for the rest; one column if there are two classes."""
    signs = np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
    return signs[:, 1:] if classes == 2 else signs


def _new_directions(weights: Floats, basis: Floats) -> Floats:
    """Return orthonormal columns that span the weights and are orthogonal to the basis."""
    left, sizes, _ = np.linalg.svd(weights, full_matrices=False)
    fresh = left[:, sizes > sizes[0] * np.finfo(float).eps * max(weights.shape)]
    for _ in range(2):  # twice is enough for orthogonality to the last bits
        fresh = fresh - basis @ (basis.T @ fresh)
    left, sizes, _ = np.linalg.svd(fresh, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-6], np.float64)


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


class _LeastSquares:
    """Ridge least squares on projected features, downdated instead of refitted.

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
    """LinearSVC on projected features, refitted every round (released settings)."""

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


@dataclass
class Sums:
    """Sufficient statistics of LEACE, summed part by part: any number of rows in d x d numbers.

    With parts a and b of n_a and n_b rows, scatter = scatter_a + scatter_b + n_a n_b / n d d',
    d the difference of their means (Chan, Golub and LeVeque 1983).
    """

    n: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    scatter: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    classes: dict[Any, tuple[int, Floats]] = field(default_factory=dict)
    """Number of rows and their sum, by label."""

    def add(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        """Add rows; a part may hold one label only."""
        X, classes, codes = checked(features, labels, least=1)
        if self.n and X.shape[1] != len(self.mean):
            raise DataError(
                f"erasure: X has {X.shape[1]} columns, earlier parts had {len(self.mean)}. "
                "Accepted: parts of the same features."
            )
        mean = X.mean(axis=0)
        centred = X - mean
        scatter = centred.T @ centred
        if self.n:
            apart, total = mean - self.mean, self.n + len(X)
            scatter += self.scatter + self.n * len(X) / total * np.outer(apart, apart)
            mean = self.mean + len(X) / total * apart
        self.mean, self.scatter, self.n = mean, scatter, self.n + len(X)
        for code, label in enumerate(classes.tolist()):
            part = X[codes == code]
            count, summed = self.classes.get(label, (0, np.zeros(X.shape[1])))
            self.classes[label] = (count + len(part), summed + part.sum(axis=0))

    def solved(self, *, ridge: float = 0.0, shrinkage: bool = False) -> Removal:
        """Return LEACE's map for all rows added so far; see `leace`."""
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
        varies = values > NO_EIGENVALUE * values[-1]
        root = np.sqrt(values[varies])
        whiten = (vectors[:, varies] / root) @ vectors[:, varies].T
        colour = (vectors[:, varies] * root) @ vectors[:, varies].T
        span, sizes, _ = np.linalg.svd(whiten @ cross, full_matrices=False)
        span = span[:, sizes > max(1e-9, sizes[0] * 1e-9)]
        left, right = colour @ span, whiten @ span
        return Removal(left, right, np.zeros(len(left)), (span.shape[1],)).around(self.mean)


def shrunk(values: Floats, n: int) -> Floats:
    """Shrink the eigenvalues of a covariance of n rows towards their mean.

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
) -> Removal:
    """Return the smallest change after which no linear classifier reads the label.

    Belrose et al. (2023), Theorem 4.3. With whitening W = Sxx^(-1/2) and Q the orthogonal
    projection on the columns of W Sxz,

        r(x) = x - W^+ Q W (x - mean),

    which makes the covariance of r(X) and the label exactly zero, so no linear predictor does
    better than a constant one, at the least mean squared change of x.

    Args:
        features: [n, d].
        labels: [n], at least two values, used as one-hot columns.
        ridge: added to the covariance, as a share of the mean variance, for fewer examples than
            dimensions, where the covariance has no inverse. The label's covariance still becomes
            zero (any invertible W does that), but the change of x is no longer the least.
        shrinkage: shrink the covariance towards its mean variance, by an amount that follows
            from the number of examples (`shrunk`), instead of adding a ridge.

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


def erase_pairs(differences: npt.ArrayLike, ordinary: npt.ArrayLike, rounds: int) -> Removal:
    """Remove the directions in which matched states differ, at the least cost to ordinary text.

    INLP's classifiers use any direction from which the group can be read, and the projection
    removes all of it, whatever else the model keeps there. Matched states allow to ask which
    directions move when only the group changes, in proportion to how much they move anyway:

        w = argmax  w' D w / w' S w,   D = mean of (h_a - h_b)(h_a - h_b)',  S = covariance of text

    The generalised eigenvectors R of (D, S) are removed by the projection that is orthogonal in
    the metric of S, h' = h - L R'(h - mean) with L = S R, which changes ordinary states least (as
    in LEACE). Round k removes the k-th eigenvector.

    Args:
        differences: of matched states, [n, d].
        ordinary: states of ordinary text, [m, d].
        rounds: number of directions; at most min(n, d) are removed.

    Returns:
        The map, strongest direction first. Cost: one d x d generalised eigen-decomposition.

    >>> rng = np.random.default_rng(0)
    >>> text = rng.normal(size=(500, 4))
    >>> removal = erase_pairs(np.array([[2.0, 0, 0, 0], [1.0, 0, 0, 0]]), text, 1)
    >>> bool(abs(removal.right[0, 0]) > 10 * abs(removal.right[1:, 0]).max())
    True
    """
    from scipy.linalg import eigh

    D, X = np.asarray(differences, np.float64), np.asarray(ordinary, np.float64)
    if not (np.isfinite(D).all() and np.isfinite(X).all()):
        raise DataError("mitigation: hidden states hold NaN or infinity. Use: --dtype float32")
    rounds = min(rounds, *D.shape)
    S = np.cov(X.T)
    S += RIDGE * np.trace(S) / len(S) * np.eye(len(S))
    _, right = eigh(D.T @ D / len(D), S, subset_by_index=(len(S) - rounds, len(S) - 1))
    right = right[:, ::-1]
    ends = tuple(range(1, rounds + 1))
    return Removal(S @ right, right, np.zeros(len(S)), ends).around(X.mean(axis=0))


def pair_components(
    states: npt.ArrayLike, sets: npt.ArrayLike, components: int
) -> tuple[Floats, Floats]:
    """Return the principal components of states [n, d] centred within matched sets.

    SentenceDebias (Liang et al. 2020) encodes sets of sentences that differ in the group alone,
    subtracts the mean of each set, and removes the first components V: h' = h - V V'h.

    Args:
        states: [n, d].
        sets: number of each row's set, [n]; rows with a negative number are left out.
        components: how many.

    Returns:
        Orthonormal columns [d, components], and the share of the variance within sets that each
        explains.

    >>> X = [[1.0, 5.0], [3.0, 5.0], [0.0, 9.0], [2.0, 9.0]]
    >>> V, share = pair_components(X, [0, 0, 1, 1], 1)
    >>> np.abs(V).round(6).tolist(), share.round(6).tolist()
    ([[1.0], [0.0]], [1.0])
    """
    X, codes = np.asarray(states, np.float64), np.asarray(sets)
    X, codes = X[codes >= 0], np.unique(codes[codes >= 0], return_inverse=True)[1]
    sums = np.zeros((int(codes.max(initial=-1)) + 1, X.shape[1]))
    np.add.at(sums, codes, X)
    centred = X - (sums / np.bincount(codes)[:, None])[codes]
    _, sizes, right = np.linalg.svd(centred, full_matrices=False)
    rank = int((sizes > sizes.max(initial=0.0) * 1e-9).sum())
    if not 1 <= components <= rank:
        raise SpecError(f"--components '{components}': expected 1 to {rank}.")
    return right[:components].T.copy(), np.square(sizes[:components]) / np.square(sizes).sum()


def checked(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, least: int = 2
) -> tuple[Floats, Any, Any]:
    """Return features as float64, the distinct labels, and the label's code of each row.

    Raises:
        DataError: features are not finite numbers [n, d], or labels not [n] with `least` values.
    """
    rows, y = np.asarray(features), np.asarray(labels)
    if rows.dtype.kind not in "fiub":
        raise DataError(f"erasure: X holds {rows.dtype.name} values. Accepted: real numbers.")
    X = np.asarray(rows, np.float64)
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
    """Fit a scikit-learn model without its warning that it did not converge."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
