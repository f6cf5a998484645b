"""Checks of input arrays, shared by the tests and intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError, SpecError
from evenhand.stats._draws import Floats


def vector(values: ArrayLike, name: str) -> Floats:
    """Values as a float64 vector, or a message that names the argument."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"{name}: shape {array.shape!r} is not a vector. Accepted: shape (n,).")
    return array


def table(values: ArrayLike, name: str = "values") -> Floats:
    """Values as a float64 table [units, tests]; a vector becomes one column."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise DataError(
            f"{name}: shape {array.shape!r} is not a table. Accepted: (units,) or (units, tests)."
        )
    return array


def two_groups(labels: ArrayLike, n: int) -> NDArray[np.bool]:
    """Labels as n booleans."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise DataError(
            f"labels: shape {array.shape!r} for {n} units. Accepted: one boolean per unit."
        )
    if array.size and not np.isin(array, (0, 1)).all():
        raise DataError("labels: a value is neither True nor False. Accepted: booleans or 0/1.")
    return array.astype(bool)


def same_length(labels: ArrayLike, n: int, name: str) -> NDArray[np.generic]:
    """Labels of any type, one per row of n rows."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise DataError(f"{name}: shape {array.shape!r} for {n} rows. Accepted: one label per row.")
    return array


def choice(value: str, accepted: tuple[str, ...], name: str) -> None:
    """Refuse a word that is not among the accepted ones."""
    if value not in accepted:
        words = ", ".join(repr(word) for word in accepted)
        raise SpecError(f"{name}: unknown value {value!r}. Accepted: {words}.")


def share(value: float, name: str) -> None:
    """Refuse a level or power outside (0, 1)."""
    if not 0 < value < 1:
        raise SpecError(f"{name}: {value!r} is out of range. Accepted: between 0 and 1.")


def not_finite(values: Floats, name: str = "values") -> str:
    """Why a vector cannot be used, or an empty string."""
    if values.size == 0:
        return f"{name}: no values"
    bad = int(np.count_nonzero(~np.isfinite(values)))
    return f"{name}: {bad} of {values.size} values are not finite" if bad else ""


def column_reasons(values: Floats, everywhere: str = "") -> tuple[str, ...]:
    """One reason per column that cannot be tested; empty strings for the others."""
    if everywhere:
        return tuple(everywhere for _ in range(values.shape[1]))
    bad: list[int] = np.count_nonzero(~np.isfinite(values), axis=0).tolist()
    return tuple(f"{b} of {len(values)} values are not finite" if b else "" for b in bad)
