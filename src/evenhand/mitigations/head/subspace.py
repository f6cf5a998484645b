"""Bias subspace and bias-sensitive tokens, from word vectors or a model's output embeddings.

Sets of words that differ only in the group (woman/man, synagogue/church/mosque) are centred set
by set; the first principal components of what is left span the subspace B (Liang et al. 2021,
Sec. 4.1; Bolukbasi et al. 2016). A token's sensitivity is how much of its embedding lies there:

    q(w) = ||B'e(w)|| / ||e(w)||   in [0, 1]   (|cosine| for one component)

Deviates: the paper writes an inner product (`projections`), which has neither a sign nor a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError
from evenhand.mitigations.erasing import pair_components
from evenhand.models.vectors.files import VectorTable
from evenhand.words.lexicons.people import definitional_sets

Floats = npt.NDArray[np.float64]
COMPONENTS = {"gender": 1, "religion": 2}
SENSITIVE = 1_000
RELEASED_NEIGHBOURS, RELEASED_COSINES = 2_500, (-0.25, 0.24)  # women, men


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
    """Return the principal components of sets of vectors, each set centred by its mean.

    For pairs the rows are +-(a - b)/2 and PCA is the SVD of the differences. The first component
    is turned so that the last member of the sets [members, d] lies on its positive side. Gives
    columns [d, components] and the share of variance each explains.

    >>> basis, share = bias_subspace([[[1.0, 0.0], [3.0, 0.0]]], 1)
    >>> bool(abs(basis[0, 0] - 1) < 1e-12), share.round(6).tolist()
    (True, [1.0])
    """
    arrays = [np.asarray(s, np.float64) for s in sets]
    codes = np.repeat(np.arange(len(arrays)), [len(a) for a in arrays])
    basis, share = pair_components(np.vstack(arrays), codes, components)
    lean = sum(float((a[-1] - a[0]) @ basis[:, 0]) for a in arrays)
    basis[:, 0] *= -1.0 if lean < 0 else 1.0
    return basis, share


def model_subspace(model: Any, axis: str, components: int | None = None) -> Subspace:
    """Return the bias subspace of a causal model's output embeddings (words after a space)."""
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
            f"{', '.join(missing[:8])}), so there is no subspace. Use the method pairs, inlp "
            "or leace: they need no word list."
        )
    basis, share = bias_subspace(sets, components or COMPONENTS.get(axis, 1))
    return Subspace(basis, tuple(used), tuple(missing), tuple(pieced), tuple(share.tolist()))


def vector_subspace(vectors: VectorTable, axis: str, components: int | None = None) -> Subspace:
    """Return the bias subspace of word vectors, such as GloVe (the paper's better choice)."""
    found = vectors.find([w for words in definitional_sets(axis) for w in words])
    known = dict(zip(found.words, found.rows.astype(np.float64)))
    used = [words for words in definitional_sets(axis) if all(w in known for w in words)]
    if len(used) < 2:
        raise ModelError(
            f"{vectors.source}: only {len(used)} definitional sets of {axis!r} have vectors "
            f"(missing: {', '.join(found.missing[:8])}), so there is no subspace. Use the model's "
            "own embeddings, or: --vectors glove-6b-50d"
        )
    sets = [np.stack([known[w] for w in words]) for words in used]
    basis, share = bias_subspace(sets, components or COMPONENTS.get(axis, 1))
    return Subspace(basis, tuple(used), found.missing, (), tuple(share.tolist()))


def words_of_tokens(model: Any) -> list[str]:
    """Return the word of each token: letters alone at the start of a word, else "".

    Pieces from the middle of a word ("man" in "command") have no word vector of their own.
    """
    size = int(model.model.get_output_embeddings().weight.shape[0])
    names = model.tokenizer.convert_ids_to_tokens(list(range(min(size, len(model.tokenizer)))))
    marks = ("\u0120", "\u2581")
    marked = any(str(n).startswith(marks) for n in names)
    out = []
    for name in names:
        text = str(name or "")
        bare = text.lstrip("".join(marks))
        starts = text.startswith(marks) or not marked
        out.append(bare if starts and len(bare) > 1 and bare.isalpha() else "")
    return out + [""] * (size - len(out))


def token_vectors(model: Any, vectors: VectorTable) -> Floats:
    """Return the word vector of each token [vocabulary, d]; zeros if the token is no known word."""
    words = words_of_tokens(model)
    out = np.zeros((len(words), vectors.dimensions))
    for row, at in enumerate(vectors.places(words, multiword=False)):
        if at:
            out[row] = vectors.matrix[at[0]]
    return out


def projections(embeddings: npt.ArrayLike, basis: Floats) -> Floats:
    """Return the paper's projection value, the sum over components of b'e(w), which has no bound.

    >>> projections([[3.0, 4.0]], np.eye(2)).tolist()
    [7.0]
    """
    return np.asarray((np.asarray(embeddings, np.float64) @ basis).sum(axis=1))


def released_tokens(cosine: Floats) -> Any:
    """Apply the released rule: 2,500 nearest a side, cosine above .24 (men) or .25 (women).

    >>> released_tokens(np.array([0.5, 0.1, -0.3, 0.245])).tolist()
    [True, False, True, True]
    """
    order = np.argsort(-cosine, kind="stable")
    near = np.zeros(len(cosine), bool)
    near[order[:RELEASED_NEIGHBOURS]] = near[order[-RELEASED_NEIGHBOURS:]] = True
    return near & ((cosine > RELEASED_COSINES[1]) | (cosine < RELEASED_COSINES[0]))


def sensitivities(embeddings: npt.ArrayLike, basis: Floats) -> tuple[Floats, Floats]:
    """Return q(w) of every token, and the signed cosine with the first component.

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
    """Choose S by rank: half from each end of the cosine (`one_side`: by the largest q)."""
    chosen = np.zeros(len(q), bool)
    count = min(count, len(q))
    if one_side:
        chosen[np.argsort(-q, kind="stable")[:count]] = True
        return chosen
    order = np.argsort(-cosine, kind="stable")
    chosen[order[: count // 2]] = True
    chosen[order[len(order) - count // 2 :]] = True
    return chosen


@dataclass(frozen=True)
class Tokens:
    """How sensitive every token is, and which form the set S.

    Attributes:
        q, cosine, projection: per token; see `sensitivities` and `projections`.
        chosen: the set S, a bool per token.
        space: the subspace behind them.
        source: "own" or the word vectors' name.
        known: how many tokens have a vector.
    """

    q: Floats
    cosine: Floats
    projection: Floats
    chosen: Any
    space: Subspace
    source: str
    known: int

    def table(self, model: Any) -> list[dict[str, Any]]:
        """Return the set S as rows, most sensitive first."""
        at = np.flatnonzero(self.chosen)
        at = at[np.argsort(-self.q[at], kind="stable")]
        return [
            {
                "token": model.tokenizer.decode([int(i)]),
                "id": int(i),
                **{k: float(getattr(self, k)[i]) for k in ("q", "cosine", "projection")},
            }
            for i in at
        ]


def tokens_of(
    model: Any,
    axis: str,
    *,
    vectors: VectorTable | None = None,
    components: int | None = None,
    count: int = SENSITIVE,
    released: bool = False,
) -> Tokens:
    """Return the sensitivity of a causal model's tokens and the set S.

    S are the `count` most sensitive, or (`released`) those beyond the released cosine thresholds.
    """
    if vectors is None:
        space = model_subspace(model, axis, components)
        rows = model.model.get_output_embeddings().weight.detach().float().cpu().numpy()
    else:
        space = vector_subspace(vectors, axis, components)
        rows = token_vectors(model, vectors)
    q, cosine = sensitivities(rows, space.basis)
    chosen = (
        released_tokens(cosine)
        if released
        else sensitive_tokens(q, cosine, count, one_side=space.basis.shape[1] > 1)
    )
    known = rows.any(axis=1)
    source = "own" if vectors is None else vectors.source
    found = projections(rows, space.basis)
    return Tokens(q, cosine, found, chosen & known, space, source, int(known.sum()))
