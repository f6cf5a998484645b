"""`evenhand erase`: erase a label from a file of features, and check with a fresh classifier.

The fresh classifier is a logistic regression that is fitted on the erased training rows and judged
on the test rows. A classifier that reads nothing reaches the share of the most frequent class.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.arrays import read_arrays
from evenhand.errors import DataError, SpecError, unknown
from evenhand.mitigations.erasing import Floats, checked, inlp, leace, quietly
from evenhand.probes.reading import Result, Shown, Task
from evenhand.strict import INLINE, OPTIONAL, UNWRITTEN
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
        """Return features and labels of one part."""
        at = self.split == number
        return self.X[at], self.y[at]


@dataclass(frozen=True)
class Erased:
    """The map x -> P x + offset, and how well a fresh classifier still reads the label.

    Accuracies and `majority` are of the test rows; `reason` says why fitting ended before the
    requested rounds.
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
        X, y, _random_split(len(X), seed) if split is None else _checked_split(path, split, len(X))
    )


def _random_split(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Split the rows 60/20/20 with a seed."""
    parts = np.zeros(n, np.int64)
    order = np.random.default_rng(seed).permutation(n)
    parts[order[int(0.6 * n) : int(0.8 * n)]] = DEV
    parts[order[int(0.8 * n) :]] = TEST
    return parts


def _checked_split(path: Path, split: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
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
    are none) is no better than the most frequent class. `classifier`: see `erasing.inlp`.
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
    if method == "leace":
        removal = leace(X, y)
    else:
        removal = inlp(X, y, rounds=rounds, classifier=classifier, stop=stop)
    fitted = time.perf_counter()
    after = Features(removal(data.X), data.y, data.split)
    return Erased(
        P=removal.projection,
        offset=removal.offset,
        method=method,
        classifier=classifier if method == "inlp" else None,
        rank_removed=removal.rank,
        rounds=len(removal.rounds),
        accuracy_before=fresh_accuracy(data),
        accuracy_after=fresh_accuracy(after),
        majority=majority(data),
        mean_squared_change=float(np.square(after.X - data.X).sum(axis=1).mean()),
        n_train=len(X),
        n_test=int((data.split == TEST).sum()),
        dimensions=X.shape[1],
        reason=removal.reason or None,
        seconds_fit=round(fitted - begun, 3),
        seconds_read=round(time.perf_counter() - fitted, 3),
    )


def logistic(X: Floats, y: npt.NDArray[Any]) -> Any:
    """Fit a logistic regression (L2, C = 1)."""
    from sklearn.linear_model import LogisticRegression

    return quietly(LogisticRegression(max_iter=1_000), X, y)


def standardised_logistic(X: Floats, y: npt.NDArray[Any]) -> Any:
    """Fit a logistic regression of standardised states (L2, C = 0.1)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return quietly(make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)), X, y)


def fresh_accuracy(data: Features, part: int = TEST, fit: Classifier = logistic) -> float:
    """Return the accuracy on `part` of a classifier fitted on train; NaN if `part` has no rows."""
    X, y = data.part(part)
    return float(fit(*data.part(TRAIN)).score(X, y)) if len(X) else float("nan")


def majority(data: Features, part: int = TEST) -> float:
    """Return the share of `part` that has the most frequent label of the train rows.

    >>> rows = Features(np.zeros((4, 1)), np.array([0, 0, 0, 1]), np.array([0, 0, 2, 2]))
    >>> majority(rows)
    0.5
    """
    values, counts = np.unique(data.part(TRAIN)[1], return_counts=True)
    return float((data.part(part)[1] == values[counts.argmax()]).mean())


class StopAtMajority:
    """Stopping rule: a fresh classifier reads a part no better than the most frequent class.

    "No better" means within one standard error, for `patience` rounds in a row: one may be luck.
    """

    def __init__(
        self, data: Features, part: int, fit: Classifier = logistic, patience: int = 1
    ) -> None:
        self.data, self.at, self.fit, self.patience, self.quiet = data, part, fit, patience, 0
        base, n = majority(data, part), int((data.split == part).sum())
        self.limit = base + float(np.sqrt(base * (1 - base) / max(n, 1)))

    def __call__(self, basis: Floats) -> bool:
        rest = replace(self.data, X=self.data.X - (self.data.X @ basis) @ basis.T)
        self.quiet += 1
        if not fresh_accuracy(rest, self.at, self.fit) <= self.limit:
            self.quiet = 0
        return self.quiet >= self.patience


@dataclass(frozen=True)
class ErasedFile(Result):
    """Result of the command: what was erased, from which file, and where the map was written."""

    erased: Erased = field(metadata=INLINE)
    file: str
    out: str | None

    def shown(self) -> list[Shown]:
        rows = [[name, str(value)] for name, value in self.as_dict().items()]
        return [Shown("erase", ("what", "value"), rows)]


class Erase(Task):
    """Settings of `evenhand erase`."""

    name: ClassVar[str] = "erase"
    help: ClassVar[str] = """Erase a label from features (INLP or LEACE) and judge it.

    X is [n, d], y has one label per row, split is 0 train, 1 dev, 2 test. A fresh classifier reads
    the test rows before and after.
    """
    positional: ClassVar[tuple[str, ...]] = ("file",)

    file: Path = Field(description="An .npz file with X, y and optional split.")
    method: str = Field("leace", description="inlp or leace.")
    classifier: str = Field(
        "lsq", description="inlp: lsq (closed form) or svc (LinearSVC, as published)."
    )
    rounds: int = Field(80, ge=1, description="inlp: how many classifiers.")
    out: Path | None = Field(None, description="Write P (d x d) to this .npz file.")
    stop_at_majority: bool = Field(
        False, description="inlp: stop once a fresh classifier reads nothing."
    )
    seed: int = Field(0, ge=0, description="Seed of the split, where the file has none.")

    def work(self, say: Callable[[str], None]) -> ErasedFile:
        erased = erase(
            read_features(self.file, self.seed),
            **self.only("method", "classifier", "rounds", "stop_at_majority"),
        )
        if self.out is not None:
            erased.save(self.out)
        return ErasedFile(erased, str(self.file), str(self.out) if self.out else None)
