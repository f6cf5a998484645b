"""Erasures of arrays as scikit-learn transformers: LEACE, INLP, SentenceDebias.

Each learns one affine map of low rank (`erasing.Removal`) from features [n, d] and labels [n].
They work in `clone`, `Pipeline`, `GridSearchCV` and with `set_output`. Import them from
`evenhand.mitigations.erasing`, which loads scikit-learn on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_X_y, validate_data

from evenhand.errors import DataError
from evenhand.mitigations.erasing import RIDGE, Floats, Removal, Sums, inlp, pair_components

FLOATS = (np.float64, np.float32)


class NotFitted(DataError, NotFittedError):  # type: ignore[misc]
    """A transformer that is used before `fit`."""


class Eraser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the transformers: the map that `fit` learned, and what is known about it.

    Attributes, once fitted:
        map_: the map, callable on rows.
        projection_, offset_: P [d, d] and offset [d] of x -> P x + offset.
        rank_: number of dimensions removed.
        rounds_: number of rounds of fitting.
        reason_: why fitting ended before all rounds, or empty.
    """

    map_: Removal

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn the map from features [n, d] and labels [n]."""
        rows, labels = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=2)
        self.map_ = self._learn(rows, labels)
        return self

    def _learn(self, X: Floats, y: npt.NDArray[Any]) -> Removal:
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the features after erasure, [n, d]; float32 stays float32."""
        removal = self._learned
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        return removal(rows)

    @property
    def _learned(self) -> Removal:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__}: not fitted yet. Call fit(X, y) first.")
        return self.map_

    def __sklearn_is_fitted__(self) -> bool:
        return "map_" in vars(self)

    @property
    def projection_(self) -> Floats:
        return self._learned.projection

    @property
    def offset_(self) -> Floats:
        return self._learned.offset

    @property
    def rank_(self) -> int:
        return self._learned.rank

    @property
    def rounds_(self) -> int:
        return len(self._learned.rounds)

    @property
    def reason_(self) -> str:
        return self._learned.reason

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LEACE(Eraser):
    """The smallest change after which no linear classifier reads the label; see `erasing.leace`.

    Args:
        ridge: added to the covariance, as a share of the mean variance.
        shrinkage: shrink the covariance towards its mean variance instead.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 100); X = rng.normal(size=(100, 3)); X[:, 0] += y
    >>> erased = LEACE().fit_transform(X, y)
    >>> bool(abs(erased[y == 0].mean(0) - erased[y == 1].mean(0)).max() < 1e-9)
    True

    Rows that do not fit in memory are added in parts; the map is solved on first use:

    >>> parts = LEACE().update(X[:50], y[:50]).update(X[50:], y[50:])
    >>> bool(np.allclose(parts.transform(X), erased))
    True
    """

    def __init__(self, ridge: float = 0.0, *, shrinkage: bool = False) -> None:
        self.ridge = ridge
        self.shrinkage = shrinkage

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn the map from features [n, d] and labels [n], two or more."""
        self._sums = Sums()
        return super().fit(X, y)

    def _learn(self, X: Floats, y: npt.NDArray[Any]) -> Removal:
        self._sums.add(X, y)
        return self._sums.solved(ridge=self.ridge, shrinkage=self.shrinkage)

    def update(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Add rows; a part may hold one label, all parts together hold two or more."""
        rows, labels = check_X_y(X, y, dtype=FLOATS, estimator=self)
        first = not self.__sklearn_is_fitted__()
        if first:
            self._sums = Sums()
        self._sums.add(rows, labels)
        validate_data(self, X, skip_check_array=True, reset=first)
        if "map_" in vars(self):
            del self.map_
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_sums" in vars(self)

    @property
    def _learned(self) -> Removal:
        if self.__sklearn_is_fitted__() and "map_" not in vars(self):
            self.map_ = self._sums.solved(ridge=self.ridge, shrinkage=self.shrinkage)
        return super()._learned


class INLP(Eraser):
    """Rounds of linear classifiers, each one's directions projected out; see `erasing.inlp`.

    Args:
        rounds: how many classifiers.
        classifier: "lsq" (least squares in closed form) or "svc" (LinearSVC, as released).
        ridge: of "lsq", as a share of the mean feature variance.
        stop: called with the basis so far after each round; True ends early.
    """

    def __init__(
        self,
        rounds: int = 80,
        classifier: str = "lsq",
        *,
        ridge: float = RIDGE,
        stop: Callable[[Floats], bool] | None = None,
    ) -> None:
        self.rounds = rounds
        self.classifier = classifier
        self.ridge = ridge
        self.stop = stop

    def _learn(self, X: Floats, y: npt.NDArray[Any]) -> Removal:
        return inlp(
            X, y, rounds=self.rounds, classifier=self.classifier, ridge=self.ridge, stop=self.stop
        )


class SentenceDebias(Eraser):
    """The first components in which matched rows differ; see `erasing.pair_components`.

    `y` holds the number of each row's set. Rows of one set differ in the group alone; rows with a
    negative number belong to no set.

    Args:
        components: how many.
        keep_mean: leave the mean of all rows in place.

    >>> X = [[1.0, 5.0], [3.0, 5.0], [0.0, 9.0], [2.0, 9.0]]
    >>> SentenceDebias().fit_transform(X, [0, 0, 1, 1]).round(6).tolist()
    [[1.5, 5.0], [1.5, 5.0], [1.5, 9.0], [1.5, 9.0]]
    """

    def __init__(self, components: int = 1, *, keep_mean: bool = True) -> None:
        self.components = components
        self.keep_mean = keep_mean

    def _learn(self, X: Floats, y: npt.NDArray[Any]) -> Removal:
        basis, self.explained_ = pair_components(X, y, self.components)
        removal = Removal.of_basis(basis, (basis.shape[1],))
        return removal.around(X.mean(axis=0, dtype=np.float64)) if self.keep_mean else removal
