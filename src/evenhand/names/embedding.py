"""Do a model's vectors know whose name it is? (An et al. 2023, Sec. 2)

Every name is put into the same contexts, the vectors are averaged over contexts, and a logistic
regression learns the group from two thirds of the names and is tested on the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.requests import Embed, Requests, Scores

Ask = Callable[[Requests, str], Scores]


def name_vectors(ask: Ask, names: Sequence[str], contexts: Sequence[str]) -> np.ndarray:
    """One vector per name: the mean over contexts of the context's vector with the name in it.

    Contexts hold `{name}`. The contexts are the same for all names, so what differs between two
    rows is the name. The vector is that of the whole sentence (`Embed`); the paper takes the
    name's own pieces.
    """
    if not all("{name}" in c for c in contexts):
        raise DataError("contexts: every context needs {name} where the name stands.")
    texts = [c.replace("{name}", n) for n in names for c in contexts]
    vectors = ask(Embed(texts), "embed names").matrix("vector")
    return np.asarray(vectors.reshape(len(names), len(contexts), -1).mean(axis=1))


def predict_groups(
    vectors: np.ndarray, groups: Sequence[str], *, splits: int = 20, seed: int = 0
) -> dict[str, Any]:
    """Accuracy of a logistic regression on held-out names, against permuted groups.

    Two thirds of each group's names train, the rest test, over several random splits; features
    are standardised on the training part. The null repeats it with permuted groups.

    >>> x = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    >>> predict_groups(x, list("aaaabbbb"), splits=4)["accuracy"]
    1.0
    """
    labels = np.asarray(groups)
    sizes = {g: int((labels == g).sum()) for g in dict.fromkeys(groups)}
    if len(sizes) < 2 or min(sizes.values()) < 3:
        raise DataError(f"groups: {sizes}; two groups of three or more names are needed.")
    rng = np.random.default_rng(seed)
    found = [_one_split(vectors, labels, rng) for _ in range(splits)]
    null = [_one_split(vectors, rng.permutation(labels), rng) for _ in range(max(splits, 19))]
    observed = float(np.mean(found))
    return {
        "accuracy": observed,
        "chance": max(sizes.values()) / len(labels),
        "null_mean": float(np.mean(null)),
        "null_p95": float(np.quantile(null, 0.95)),
        "p": float((np.sum(np.asarray(null) >= observed) + 1) / (len(null) + 1)),
        "names": len(labels),
        "splits": splits,
    }


def _one_split(vectors: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> float:
    from sklearn.linear_model import LogisticRegression

    test = np.zeros(len(labels), bool)
    for group in np.unique(labels):
        at = rng.permutation(np.flatnonzero(labels == group))
        test[at[: max(1, len(at) // 3)]] = True
    center, spread = vectors[~test].mean(axis=0), vectors[~test].std(axis=0)
    scaled = (vectors - center) / np.where(spread > 0, spread, 1.0)
    fit = LogisticRegression(max_iter=1_000, C=0.1).fit(scaled[~test], labels[~test])
    return float((fit.predict(scaled[test]) == labels[test]).mean())
