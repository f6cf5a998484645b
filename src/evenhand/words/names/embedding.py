"""Do a model's vectors know whose name it is? (An et al. 2023, Sec. 2)

Every name is put into the same contexts. Its vector is the mean over contexts of the mean over
the pieces of the name itself, each read in its context; the rest of the sentence is left out. A
logistic regression then learns the group of some names and is tested on others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.errors import DataError
from evenhand.requests import MARKS, Embed, LazyRequests, Requests, Scores
from evenhand.stats.estimate import Estimate, estimate

Ask = Callable[[Requests | LazyRequests, str], Scores]
SLOT = "{name}"
TIE = 1e-12


def name_requests(names: Sequence[str], contexts: Sequence[str]) -> Embed:
    """Every name in every context, marked wherever it stands.

    >>> name_requests(["Bo"], ["{name} sang."]).text
    ['⟦Bo⟧ sang.']
    """
    if not all(SLOT in c for c in contexts):
        raise DataError("contexts: every context needs {name} where the name stands.")
    marked = [n.join(MARKS) for n in names]
    return Embed([c.replace(SLOT, n) for n in marked for c in contexts], marked=True)


def name_vectors(ask: Ask, names: Sequence[str], contexts: Sequence[str]) -> np.ndarray:
    """One vector per name: the mean over contexts of the mean over the name's own pieces.

    Contexts hold `{name}` and are the same for all names. In a causal model a piece sees what
    stands before it only.
    """
    vectors = ask(name_requests(names, contexts), "embed names").matrix("vector")
    return np.asarray(vectors.reshape(len(names), len(contexts), -1).mean(axis=1))


def predict_groups(
    vectors: np.ndarray,
    groups: Sequence[str],
    *,
    folds: int = 5,
    permutations: int = 99,
    seed: int = 0,
) -> dict[str, Any]:
    """Cross-validated accuracy of a logistic regression, against permuted groups.

    Each name is predicted once, by a model that has not seen it; folds keep the groups' shares,
    features are standardised on the training part. The null does the same with permuted groups; its
    spread gives the standard error (`beside_chance`). Interval and p are those of t, so that they
    agree and p may be smaller than one in as many permutations.
    `p_permuted` = (1 + number of permuted accuracies at least as large) / (1 + permutations).

    >>> x = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    >>> predict_groups(x, list("aaaabbbb"), permutations=19)["accuracy"]
    1.0
    """
    labels = np.asarray(groups)
    sizes = {g: int((labels == g).sum()) for g in dict.fromkeys(groups)}
    if len(sizes) < 2 or min(sizes.values()) < 3:
        raise DataError(f"groups: {sizes}; two groups of three or more names are needed.")
    known = ~np.isnan(vectors).any(axis=1)
    if not known.all():
        raise DataError(f"{int((~known).sum())} names have no vector in this model.")
    parts = min(folds, *sizes.values())
    rng = np.random.default_rng(seed)
    with _tiny_fits():
        right, train = _out_of_fold(vectors, labels, parts, rng)
        null = np.asarray(
            [
                _out_of_fold(vectors, rng.permutation(labels), parts, rng)[0].mean()
                for _ in range(permutations)
            ]
        )
    observed = float(right.mean())
    found = beside_chance(observed, null, len(labels))
    return {
        "accuracy": observed,
        "low": found.low,
        "high": found.high,
        "error": found.error,
        "freedom": found.freedom,
        "train_accuracy": train,
        "chance": max(sizes.values()) / len(labels),
        "null_mean": float(null.mean()),
        "null_p95": float(np.quantile(null, 0.95)),
        "p": found.p,
        "p_permuted": float((np.sum(null >= observed) + 1) / (permutations + 1)),
        "by_group": {g: float(right[labels == g].mean()) for g in sizes},
        "names": len(labels),
        "folds": parts,
        "permutations": permutations,
    }


def beside_chance(observed: float, null: np.ndarray, names: int) -> Estimate:
    """An accuracy against those of permuted groups, whose mean is what chance gives.

    The permuted mean is itself unsure, so the spread s of B permutations counts as s sqrt(1 + 1/B).
    Accuracies of few names are coarse and skewed: where permuted groups come as far off, the error
    is at least so large that p is their share.

    >>> round(beside_chance(0.9, np.array([0.4, 0.5, 0.6, 0.45, 0.55]), 40).p, 4)
    0.0099
    >>> round(beside_chance(0.7, np.array([0.7, *[0.5] * 18, 0.3]), 40).p, 4)
    0.1429
    """
    from scipy.special import stdtrit

    spread = float(null.std(ddof=1)) * np.sqrt(1 + 1 / len(null))
    alone = np.sqrt(observed * (1 - observed) / names)
    chance = float(null.mean())
    off = abs(observed - chance)
    as_far = int((np.abs(null - chance) >= off - TIE).sum())
    share = (1 + as_far) / (1 + len(null))
    freedom = len(null) - 1
    ranked = off / float(stdtrit(freedom, 1 - share / 2)) if as_far and share < 1 else 0.0
    error = max(spread, alone, ranked)
    return estimate(observed, error, freedom, units=names, ideal=chance)


def chance_of_halves(vectors: np.ndarray, *, folds: int, splits: int, seed: int) -> tuple[int, int]:
    """How many random halves of one group's names were told apart, of how many: a placebo.

    Each split is a permutation of the others, so all of them together are each one's chance.
    """
    rng = np.random.default_rng([seed, 7])
    half = np.arange(len(vectors)) < len(vectors) // 2
    parts = min(folds, len(vectors) // 2)
    with _tiny_fits():
        found = np.asarray(
            [
                _out_of_fold(vectors, rng.permutation(half), parts, rng)[0].mean()
                for _ in range(splits)
            ]
        )
    p = [beside_chance(a, np.delete(found, i), len(half)).p for i, a in enumerate(found)]
    return sum(value <= 0.05 for value in p), sum(value == value for value in p)


@contextmanager
def _tiny_fits() -> Iterator[None]:
    """Hundreds of tiny fits: threads and checks of the same arrays cost far more than they give."""
    from sklearn import config_context
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


def _out_of_fold(
    vectors: np.ndarray, labels: np.ndarray, folds: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Whether each name is predicted rightly by the model that left it out; training accuracy."""
    from sklearn.linear_model import LogisticRegression

    fold = np.empty(len(labels), np.int64)
    for group in np.unique(labels):
        at = rng.permutation(np.flatnonzero(labels == group))
        fold[at] = (np.arange(len(at)) + rng.integers(folds)) % folds
    right = np.zeros(len(labels), bool)
    train = []
    for number in range(folds):
        test = fold == number
        center, spread = vectors[~test].mean(axis=0), vectors[~test].std(axis=0)
        scaled = (vectors - center) / np.where(spread > 0, spread, 1.0)
        fit = LogisticRegression(max_iter=1_000, C=0.1).fit(scaled[~test], labels[~test])
        as_told = fit.predict(scaled) == labels
        right[test] = as_told[test]
        train.append(as_told[~test].mean())
    return right, float(np.mean(train))


def plane_table(
    names: Sequence[str], groups: Sequence[str], vectors: np.ndarray, seed: int = 0
) -> pa.Table:
    """Names with their groups; eight or more stand on a plane by t-SNE (perplexity 30 at most)."""
    columns: dict[str, Any] = {"name": list(names), "group": list(groups)}
    if len(vectors) >= 8 and vectors.shape[1] and np.ptp(vectors, axis=0).any():
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(vectors) - 1) / 3)
        with _tiny_fits():
            fit = TSNE(2, init="random", perplexity=perplexity, random_state=seed)
            made = np.asarray(fit.fit_transform(vectors), np.float64)
        columns |= {"x": made[:, 0], "y": made[:, 1]}
    return pa.table(columns)
