"""Take a direction out of word vectors, whole or in part.

The plainest way to move word vectors, here to compare others with (Bolukbasi et al. 2016; Dev &
Phillips 2019): `project` removes a share of every vector's part along an axis, `equalise` puts
the two words of a pair at equal distance from everything that has no such part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError
from evenhand.metrics.association import unit_rows
from evenhand.models.vectors.files import VectorTable

Floats = npt.NDArray[np.float64]
BLOCK = 65_536


def mean_axis(vectors: VectorTable, a: Sequence[str], b: Sequence[str]) -> Floats:
    """The direction from the words b to the words a, shape [1, dimensions], length one.

    axis = mean of unit rows of a - mean of unit rows of b, scaled to length one: the axis that
    WEAT measures along, so a unit vector without a part along it has s(w, a, b) = 0.

    >>> import pyarrow as pa
    >>> table = VectorTable(pa.array(["he", "she"]), np.eye(2, dtype=np.float32))
    >>> mean_axis(table, ["he"], ["she"]).round(4).tolist()
    [[0.7071, -0.7071]]
    """
    means = []
    for name, words in (("a", a), ("b", b)):
        rows = vectors.find(words).rows
        if not len(rows):
            raise DataError(f"set {name}: none of its {len(words)} words has a vector.")
        means.append(unit_rows(rows).mean(axis=0))
    axis = means[0] - means[1]
    if np.linalg.norm(axis) < 1e-9:
        raise DataError("the words of a and b have the same mean vector: there is no direction.")
    return unit_rows(axis)


def pair_axes(
    vectors: VectorTable, pairs: Sequence[tuple[str, str]], *, components: int = 1
) -> Floats:
    """Main directions of pairs such as (he, she), shape [components, dimensions].

    Principal components of both words of each pair minus the pair's mean (Bolukbasi et al. 2016,
    Sec. 5.1), from unit vectors. Pairs with a missing word are left out. The sign of a component
    points to the first words.
    """
    places = [vectors.places(pair) for pair in pairs]
    held = [[vectors.matrix[list(rows)].mean(axis=0) for rows in two] for two in places if all(two)]
    if len(held) < components:
        raise DataError(
            f"{len(held)} of {len(pairs)} pairs have both vectors; {components} components need "
            "at least as many pairs."
        )
    unit = unit_rows(np.array(held).reshape(2 * len(held), -1)).reshape(len(held), 2, -1)
    halves = (unit[:, 0] - unit[:, 1]) / 2
    _, _, axes = np.linalg.svd(halves, full_matrices=False)
    axes = axes[:components]
    signs = np.sign((halves @ axes.T).sum(axis=0))
    return np.asarray(axes * np.where(signs == 0, 1, signs)[:, None], np.float64)


def project(
    vectors: VectorTable,
    axes: npt.ArrayLike,
    *,
    words: Sequence[str] | None = None,
    without: Sequence[str] = (),
    amount: float = 1.0,
    keep_norms: bool = True,
) -> VectorTable:
    """Vectors with a share of their part along the axes taken out.

    w' = w - amount * sum over axes of (w . e) e, with e orthonormal. 1 is the hard form, between 0
    and 1 the soft one; below 0 the part grows.

    Axes [k, dimensions] are made orthonormal here. All `words` are changed but those `without`,
    and scaled back to their old lengths; rows of other words keep their bytes.

    >>> import pyarrow as pa
    >>> table = VectorTable(pa.array(["w"]), np.array([[3.0, 4.0]], np.float32))
    >>> project(table, [[1.0, 0.0]], amount=0.5, keep_norms=False).matrix.tolist()
    [[1.5, 4.0]]
    """
    if not amount <= 1 or not np.isfinite(amount):
        raise SpecError(f"amount: '{amount}' is more than the whole. Accepted: up to 1.")
    basis = _orthonormal(axes, vectors.dimensions)
    matrix = np.array(vectors.matrix, dtype=np.float32)
    chosen = _chosen(vectors, words, without)
    for start in range(0, len(chosen), BLOCK):
        rows = chosen[start : start + BLOCK]
        old = vectors.matrix[rows].astype(np.float64)
        new = old - amount * (old @ basis.T) @ basis
        if keep_norms:
            length = np.linalg.norm(new, axis=1, keepdims=True)
            # A vector that lay on the axis has no direction left and stays where it is.
            lost = length <= 1e-6 * np.linalg.norm(old, axis=1, keepdims=True)
            scale = np.linalg.norm(old, axis=1, keepdims=True) / np.where(lost, 1.0, length)
            new = np.where(lost, old, new * scale)
        matrix[rows] = new
    return VectorTable(vectors.words, matrix, vectors.source, vectors.duplicates)


def equalise(
    vectors: VectorTable, pairs: Sequence[tuple[str, str]], axes: npt.ArrayLike
) -> VectorTable:
    """Put the words of each pair at mirrored places about the space without the axes.

    With unit vectors, m the pair's mean, v = m without its part along the axes: w' = v + sqrt(1 -
    |v|^2) * (w_B - m_B) / |w_B - m_B|, where _B is the part along the axes (Bolukbasi et al. 2016,
    Sec. 6). The result has length one, scaled here to the old length of each word.
    """
    basis = _orthonormal(axes, vectors.dimensions)
    matrix = np.array(vectors.matrix, dtype=np.float32)
    for pair in pairs:
        places = vectors.places(pair, multiword=False)
        if not all(places) or places[0] == places[1]:
            continue
        rows = [place[0] for place in places]
        old = vectors.matrix[rows].astype(np.float64)
        unit = unit_rows(old)
        mean = unit.mean(axis=0)
        along = (unit - mean) @ basis.T @ basis
        size = np.linalg.norm(along, axis=1, keepdims=True)
        if (size < 1e-9).any():
            continue
        common = mean - mean @ basis.T @ basis
        new = common + np.sqrt(max(0.0, 1 - float(common @ common))) * along / size
        matrix[rows] = new * np.linalg.norm(old, axis=1, keepdims=True)
    return VectorTable(vectors.words, matrix, vectors.source, vectors.duplicates)


def _orthonormal(axes: npt.ArrayLike, dimensions: int) -> Floats:
    rows = np.atleast_2d(np.asarray(axes, np.float64))
    if rows.shape[1] != dimensions:
        raise DataError(f"axes: {rows.shape[1]} numbers where the vectors have {dimensions}.")
    q, r = np.linalg.qr(rows.T)
    if (np.abs(np.diag(r)) < 1e-12).any():
        raise DataError("axes: one of them is zero or lies in the span of the others.")
    return np.asarray(q.T, np.float64)


def _chosen(
    vectors: VectorTable, words: Sequence[str] | None, without: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Rows to change; the parts of a term of several words are all changed."""
    kept = {row for place in vectors.places(list(without)) for row in place}
    if words is None:
        rows = np.arange(len(vectors), dtype=np.int64)
    else:
        rows = np.array(sorted({r for p in vectors.places(list(words)) for r in p}), np.int64)
        if not len(rows):
            raise DataError(f"none of the {len(words)} words has a vector.")
    return rows[~np.isin(rows, sorted(kept))] if kept else rows
