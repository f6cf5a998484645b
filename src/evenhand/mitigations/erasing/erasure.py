"""Erasing a label from features, and a fresh classifier that says whether it is gone.

The classifier is a logistic regression fitted anew on the erased training rows and judged on the
test rows, beside the share of the most frequent class: what one reaches that reads nothing.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import read_arrays
from evenhand.errors import DataError, SpecError, unknown
from evenhand.mitigations.erasing.erasers import INLP, LEACE, Eraser
from evenhand.mitigations.erasing.nullspace import Floats, checked, quietly
from evenhand.strict import OPTIONAL, UNWRITTEN
from evenhand.writing import write_bytes

METHODS = ("inlp", "leace")
Classifier = Callable[[Floats, npt.NDArray[Any]], Any]
TRAIN, DEV, TEST = 0, 1, 2


@dataclass(frozen=True)
class Features:
    """Rows of features with a label and a part: 0 train, 1 dev, 2 test."""

    X: Floats
    y: npt.NDArray[Any]
    split: npt.NDArray[np.int64]

    def part(self, number: int) -> tuple[Floats, npt.NDArray[Any]]:
        """The rows of one part."""
        at = self.split == number
        return self.X[at], self.y[at]


@dataclass(frozen=True)
class Erased:
    """The map x -> P x + offset and how well a fresh classifier still reads the label.

    Accuracies and `majority` are of the test rows; `reason` says why it stopped before the rounds
    asked for.
    """

    P: Floats = field(metadata=UNWRITTEN)
    offset: Floats = field(metadata=UNWRITTEN)
    method: str
    classifier: str | None = field(metadata=OPTIONAL)
    rank_removed: int
    rounds: int
    accuracy_before: float
    accuracy_after: float
    majority: float
    mean_squared_change: float
    n_train: int
    n_test: int
    dimensions: int
    reason: str | None
    seconds_fit: float
    seconds_read: float

    def save(self, path: Path) -> None:
        """Write `P` (d x d) and `offset` (d) as an .npz file; no pickle is involved."""
        buffer = io.BytesIO()
        np.savez(buffer, P=self.P, offset=self.offset)
        write_bytes(path, buffer.getvalue())


def read_features(path: Path, seed: int = 0) -> Features:
    """Read `X`, `y` and optional `split` from an .npz file; pickled arrays are refused."""
    arrays = read_arrays(path, "Write one with: numpy.savez(FILE, X=features, y=labels)")
    missing = [name for name in ("X", "y") if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: array {missing[0]!r} is missing; it holds {sorted(arrays)}. "
            "Accepted: X [n, d], y [n] and optional split [n] (0 train, 1 dev, 2 test)."
        )
    X, _, _ = checked(arrays["X"], arrays["y"])
    y = np.asarray(arrays["y"])
    split = arrays.get("split")
    return Features(
        X, y, _own_split(len(X), seed) if split is None else _split(path, split, len(X))
    )


def _own_split(n: int, seed: int) -> npt.NDArray[np.int64]:
    """A seeded 60/20/20 split of the rows."""
    parts = np.zeros(n, np.int64)
    order = np.random.default_rng(seed).permutation(n)
    parts[order[int(0.6 * n) : int(0.8 * n)]] = DEV
    parts[order[int(0.8 * n) :]] = TEST
    return parts


def _split(path: Path, split: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if split.shape != (n,) or not np.isin(split, (TRAIN, DEV, TEST)).all():
        raise DataError(
            f"{path}: 'split' has shape {split.shape} and values {np.unique(split)[:6].tolist()}. "
            f"Accepted: {n} values of 0 (train), 1 (dev), 2 (test)."
        )
    parts = split.astype(np.int64)
    for number, name in ((TRAIN, "train"), (TEST, "test")):
        if not (parts == number).any():
            raise DataError(f"{path}: 'split' has no {name} row (value {number}).")
    return parts


def erase(
    data: Features,
    *,
    method: str = "leace",
    classifier: str = "lsq",
    rounds: int = 80,
    stop_at_majority: bool = False,
) -> Erased:
    """Fit an erasure on the train rows and judge it on the test rows with a fresh classifier.

    With `stop_at_majority` INLP ends once a fresh classifier on the dev rows (test rows if there
    are none) is no better than the most frequent class. `classifier`: see `nullspace.inlp`.
    """
    if method not in METHODS:
        raise SpecError(unknown("method", method, METHODS, where="erase"))
    X, y = data.part(TRAIN)
    if len(set(y.tolist())) < 2:
        raise DataError(
            f"erase: the {len(y)} train rows hold only the label {y.tolist()[:1]}, so there is "
            f"nothing to erase; all rows hold {sorted(set(data.y.tolist()))[:6]}. Give a 'split' "
            "with two or more labels in the train rows (value 0), or another: --seed"
        )
    begun = time.perf_counter()
    at = DEV if (data.split == DEV).any() else TEST
    stop = StopAtMajority(data, at) if stop_at_majority else None
    made: Eraser = LEACE() if method == "leace" else INLP(rounds, classifier, stop=stop)
    made.fit(X, y)
    fitted = time.perf_counter()
    after = Features(made.transform(data.X), data.y, data.split)
    return Erased(
        P=made.projection_,
        offset=made.offset_,
        method=method,
        classifier=classifier if method == "inlp" else None,
        rank_removed=made.rank_,
        rounds=made.rounds_,
        accuracy_before=fresh_accuracy(data),
        accuracy_after=fresh_accuracy(after),
        majority=majority(data),
        mean_squared_change=float(np.square(after.X - data.X).sum(axis=1).mean()),
        n_train=len(X),
        n_test=int((data.split == TEST).sum()),
        dimensions=X.shape[1],
        reason=made.reason_ or None,
        seconds_fit=round(fitted - begun, 3),
        seconds_read=round(time.perf_counter() - fitted, 3),
    )


def plain(X: Floats, y: npt.NDArray[Any]) -> Any:
    """A logistic regression (L2, C = 1)."""
    from sklearn.linear_model import LogisticRegression

    return quietly(LogisticRegression(max_iter=1_000), X, y)


def reader(X: Floats, y: npt.NDArray[Any]) -> Any:
    """A logistic classifier of standardised states (L2, C = 0.1)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return quietly(make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)), X, y)


def fresh_accuracy(data: Features, part: int = TEST, fit: Classifier = plain) -> float:
    """Accuracy of a fresh classifier: fitted on train, judged on `part`; NaN without such rows."""
    X, y = data.part(part)
    return float(fit(*data.part(TRAIN)).score(X, y)) if len(X) else float("nan")


def majority(data: Features, part: int = TEST) -> float:
    """Share of `part` that has the most frequent label of the train rows.

    >>> rows = Features(np.zeros((4, 1)), np.array([0, 0, 0, 1]), np.array([0, 0, 2, 2]))
    >>> majority(rows)
    0.5
    """
    values, counts = np.unique(data.part(TRAIN)[1], return_counts=True)
    return float((data.part(part)[1] == values[counts.argmax()]).mean())


class StopAtMajority:
    """True once a fresh classifier reads a part no better than the most frequent class.

    "No better" means within one standard error, for `patience` rounds on end: one may be luck.
    """

    def __init__(
        self, data: Features, part: int, fit: Classifier = plain, patience: int = 1
    ) -> None:
        self.data, self.at, self.fit, self.patience, self.quiet = data, part, fit, patience, 0
        base, n = majority(data, part), int((data.split == part).sum())
        self.limit = base + float(np.sqrt(base * (1 - base) / max(n, 1)))

    def __call__(self, basis: Floats) -> bool:
        left = replace(self.data, X=self.data.X - (self.data.X @ basis) @ basis.T)
        self.quiet += 1
        if not fresh_accuracy(left, self.at, self.fit) <= self.limit:
            self.quiet = 0
        return self.quiet >= self.patience
