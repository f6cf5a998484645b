"""Erasures of arrays in the manner of scikit-learn: `fit`, `transform`, `fit_transform`.

Each ends as one affine map x -> P x + offset with a P of low rank less than the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.mitigations.erasing.leace import Leace, Sums
from evenhand.mitigations.erasing.nullspace import RIDGE, Floats, inlp
from evenhand.mitigations.erasing.sentence import pair_components


class Eraser:
    """What they share.

    Attributes, once fitted:
        projection_: P, [d, d].
        offset_: [d].
        rank_: how many dimensions were removed.
        rounds_: how many steps that took.
        reason_: why it ended before all steps, or empty.
    """

    projection_: Floats
    offset_: Floats
    rank_: int = 0
    rounds_: int = 1
    reason_: str = ""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit on features [n, d] and labels [n]."""
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The features after erasure, [n, d]."""
        if not hasattr(self, "projection_"):
            raise DataError(f"{type(self).__name__}: not fitted yet. Call fit(X, y) first.")
        return np.asarray(np.asarray(X, np.float64) @ self.projection_.T + self.offset_)

    def fit_transform(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
        """Fit, and the same features after erasure."""
        return self.fit(X, y).transform(X)


class LEACE(Eraser):
    """The smallest change after which no linear classifier reads the label; see `leace`.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 100); X = rng.normal(size=(100, 3)); X[:, 0] += y
    >>> left = LEACE().fit_transform(X, y)
    >>> bool(abs(left[y == 0].mean(0) - left[y == 1].mean(0)).max() < 1e-9)
    True

    Rows that do not fit in memory come in parts; nothing is solved before it is asked for:

    >>> parts = LEACE().update(X[:50], y[:50]).update(X[50:], y[50:])
    >>> bool(np.allclose(parts.transform(X), left))
    True
    """

    def __init__(self, ridge: float = 0.0, *, shrinkage: bool = False) -> None:
        self.ridge, self.shrinkage = ridge, shrinkage

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        self._sums = Sums()
        self.update(X, y).map_  # noqa: B018 (labels that cannot be erased are refused here)
        return self

    def update(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Take in more rows; parts may hold one label, all of them together two or more."""
        self._sums = getattr(self, "_sums", None) or Sums()
        self._sums.add(X, y)
        vars(self).pop("map_", None)
        return self

    @cached_property
    def map_(self) -> Leace:
        """The map for all rows so far."""
        sums = getattr(self, "_sums", None)
        if sums is None:
            raise DataError(f"{type(self).__name__}: not fitted yet. Call fit(X, y) first.")
        found: Leace = sums.solved(ridge=self.ridge, shrinkage=self.shrinkage)
        return found

    @property
    def projection_(self) -> Floats:  # type: ignore[override]
        return self.map_.projection

    @property
    def offset_(self) -> Floats:  # type: ignore[override]
        return self.map_.offset

    @property
    def rank_(self) -> int:  # type: ignore[override]
        return self.map_.rank

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The features after erasure [n, d], by the map's few directions; float32 stays float32."""
        return self.map_(X)


class INLP(Eraser):
    """Rounds of classifiers, each one's directions projected out; see `nullspace.inlp`."""

    def __init__(
        self,
        rounds: int = 80,
        classifier: str = "lsq",
        *,
        ridge: float = RIDGE,
        stop: Callable[[Floats], bool] | None = None,
    ) -> None:
        self.rounds, self.classifier, self.ridge, self.stop = rounds, classifier, ridge, stop

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        found = inlp(
            X, y, rounds=self.rounds, classifier=self.classifier, ridge=self.ridge, stop=self.stop
        )
        self.projection_, self.offset_ = found.projection, np.zeros(len(found.basis))
        self.rank_, self.rounds_, self.reason_ = found.rank, len(found.rounds), found.reason
        return self


class SentenceDebias(Eraser):
    """The first components in which matched rows differ (Liang et al. 2020); see `sentence`.

    `y` says which rows belong together and differ in the group alone; negative ones stand alone.

    >>> X = [[1.0, 5.0], [3.0, 5.0], [0.0, 9.0], [2.0, 9.0]]
    >>> SentenceDebias().fit_transform(X, [0, 0, 1, 1]).round(6).tolist()
    [[1.5, 5.0], [1.5, 5.0], [1.5, 9.0], [1.5, 9.0]]
    """

    def __init__(self, components: int = 1, *, keep_mean: bool = True) -> None:
        self.components, self.keep_mean = components, keep_mean

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        rows: Any = np.asarray(X, np.float64)
        basis, self.explained_ = pair_components(rows, y, self.components)
        mean = rows.mean(axis=0) if self.keep_mean else np.zeros(rows.shape[1])
        self.projection_ = np.eye(len(basis)) - basis @ basis.T
        self.offset_ = np.asarray(basis @ (basis.T @ mean))
        self.rank_ = basis.shape[1]
        return self
