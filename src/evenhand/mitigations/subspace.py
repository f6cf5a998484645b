"""Bias subspace and bias-sensitive tokens of a model's output embeddings.

Sets of words that differ only in the group (woman/man, synagogue/church/mosque) are centred set
by set; the first principal components of what is left span the subspace B (Liang et al. 2021,
Sec. 4.1; Bolukbasi et al. 2016). A token's sensitivity is how much of its embedding lies there:

    q(w) = ||B'e(w)|| / ||e(w)||   in [0, 1]   (|cosine| for one component)

Deviates: the paper writes an inner product, which has neither a sign nor a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError, SpecError
from evenhand.lexicons.contexts import definitional_sets

Floats = npt.NDArray[np.float64]
COMPONENTS = {"gender": 1, "religion": 2}
SENSITIVE = 1_000


@dataclass(frozen=True)
class Subspace:
    """Orthonormal columns [d, k], and which definitional words stood behind them.

    Attributes:
        basis: the components, largest first; with pairs the first points to the second member.
        used: the sets that were found.
        missing: words the vocabulary lacks; their sets are left out.
        pieced: words that the tokenizer splits; the mean of their pieces stands for them.
        explained: share of the centred variance that each component explains.
    """

    basis: Floats
    used: tuple[tuple[str, ...], ...]
    missing: tuple[str, ...]
    pieced: tuple[str, ...]
    explained: tuple[float, ...]


def bias_subspace(sets: Sequence[npt.ArrayLike], components: int) -> tuple[Floats, Floats]:
    """Principal components of sets of vectors, each set centred by its own mean.

    For pairs the rows are +-(a - b)/2 and PCA is the SVD of the differences. The first component
    is turned so that the last member of the sets lies on its positive side.

    Args:
        sets: one array [members, d] per set.
        components: how many to keep; at most the rank.

    Returns:
        Columns [d, components] and the share of variance each explains.

    >>> basis, share = bias_subspace([[[1.0, 0.0], [3.0, 0.0]]], 1)
    >>> bool(abs(basis[0, 0] - 1) < 1e-12), share.round(6).tolist()
    (True, [1.0])
    """
    arrays = [np.asarray(s, np.float64) for s in sets]
    rows = np.vstack([a - a.mean(axis=0) for a in arrays])
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    rank = int((sizes > sizes[0] * 1e-9).sum())
    if not 1 <= components <= rank:
        raise SpecError(f"subspace: components is {components}. Accepted: 1 to {rank}.")
    basis = right[:components].T.copy()
    lean = sum(float((a[-1] - a[0]) @ basis[:, 0]) for a in arrays)
    basis[:, 0] *= -1.0 if lean < 0 else 1.0
    return basis, np.square(sizes[:components]) / np.square(sizes).sum()


def model_subspace(model: Any, axis: str, components: int | None = None) -> Subspace:
    """The bias subspace of a causal model's output embeddings, words with a leading space."""
    weight = model.model.get_output_embeddings().weight.detach()
    sets, used, missing, pieced = [], [], [], []
    for words in definitional_sets(axis):
        ids = model.encode([f" {w}" for w in words], special=False)
        unknown = {model.tokenizer.unk_token_id} - {None}
        lacking = [w for w, row in zip(words, ids) if not row or unknown & set(row)]
        if lacking:
            missing += lacking
            continue
        pieced += [w for w, row in zip(words, ids) if len(row) > 1]
        sets.append(np.stack([weight[row].double().mean(0).cpu().numpy() for row in ids]))
        used.append(tuple(words))
    if len(sets) < 2:
        raise ModelError(
            f"model {model.name!r}: its vocabulary has only {len(sets)} of the "
            f"{len(definitional_sets(axis))} definitional sets of {axis!r} (missing: "
            f"{', '.join(missing[:8])}), so there is no subspace. Use --method inlp or leace: "
            "they need no word list."
        )
    basis, share = bias_subspace(sets, components or COMPONENTS.get(axis, 1))
    return Subspace(basis, tuple(used), tuple(missing), tuple(pieced), tuple(share.tolist()))


def sensitivities(embeddings: npt.ArrayLike, basis: Floats) -> tuple[Floats, Floats]:
    """q(w) of every token, and the signed cosine with the first component.

    >>> q, cosine = sensitivities([[3.0, 4.0], [0.0, 0.0]], np.array([[1.0], [0.0]]))
    >>> q.tolist(), cosine.tolist()
    ([0.6, 0.0], [0.6, 0.0])
    """
    E = np.asarray(embeddings, np.float64)
    inside = E @ basis
    length = np.linalg.norm(E, axis=1)
    safe = np.where(length > 0, length, 1.0)
    q = np.linalg.norm(inside, axis=1) / safe
    return np.clip(q, 0.0, 1.0), inside[:, 0] / safe


def sensitive_tokens(
    q: Floats, cosine: Floats, count: int = SENSITIVE, *, one_side: bool = False
) -> Any:
    """The set S by rank: with one component half from each end of the cosine, else largest q.

    Returns:
        A bool array over the vocabulary.
    """
    chosen = np.zeros(len(q), bool)
    count = min(count, len(q))
    if one_side:
        chosen[np.argsort(-q, kind="stable")[:count]] = True
        return chosen
    order = np.argsort(-cosine, kind="stable")
    chosen[order[: count // 2]] = True
    chosen[order[len(order) - count // 2 :]] = True
    return chosen


def token_table(model: Any, q: Floats, cosine: Floats, count: int = 40) -> list[dict[str, Any]]:
    """The most sensitive tokens as rows for a list or a plot."""
    best = np.argsort(-q, kind="stable")[:count]
    return [
        {"token": model.tokenizer.decode([int(i)]), "q": float(q[i]), "cosine": float(cosine[i])}
        for i in best
    ]
