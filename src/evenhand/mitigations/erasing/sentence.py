"""The subspace in which contexts differ when only the group changes (SentenceDebias).

Liang et al. (2020) put definitional words into sentences, encode each set of sentences that differ
in the group alone, and take the principal components of what is left after the mean of each set is
subtracted. V holds the first k; a state loses them by h' = h - V V'h.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.mitigations.erasing.nullspace import Floats


def pair_components(
    states: npt.ArrayLike, sets: npt.ArrayLike, components: int
) -> tuple[Floats, Floats]:
    """Principal components of states [n, d] centred within matched sets.

    Rows with one number in `sets` belong together; negative ones are left out. Gives orthonormal
    columns [d, components] and the share of the within-set variance each explains, by one SVD.

    >>> X = [[1.0, 5.0], [3.0, 5.0], [0.0, 9.0], [2.0, 9.0]]
    >>> V, share = pair_components(X, [0, 0, 1, 1], 1)
    >>> np.abs(V).round(6).tolist(), share.round(6).tolist()
    ([[1.0], [0.0]], [1.0])
    """
    X, codes = np.asarray(states, np.float64), np.asarray(sets)
    X, codes = X[codes >= 0], np.unique(codes[codes >= 0], return_inverse=True)[1]
    sums = np.zeros((int(codes.max(initial=-1)) + 1, X.shape[1]))
    np.add.at(sums, codes, X)
    centred = X - (sums / np.bincount(codes)[:, None])[codes]
    _, sizes, right = np.linalg.svd(centred, full_matrices=False)
    rank = int((sizes > sizes.max(initial=0.0) * 1e-9).sum())
    if not 1 <= components <= rank:
        raise SpecError(f"--components '{components}': expected 1 to {rank}.")
    return right[:components].T.copy(), np.square(sizes[:components]) / np.square(sizes).sum()
