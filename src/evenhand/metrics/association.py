"""Associations of word vectors: WEAT (Caliskan et al. 2017) and RNSB (Sweeney & Najafian 2019).

Two sets of target words x, y and two sets of attribute words a, b, each given as rows of vectors
[words, dimensions]. Everything is computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError

Floats = npt.NDArray[np.float64]
STEPS = 100
"""Newton steps at most; seven are usual."""
LEAST, ROOM, NEAR = 1e-8, 1e-12, 1e-3
"""The smallest part of a step that is tried, what rounding may add to the loss, a short step."""
TRIES, CLOSE, MOST = 6, 0.01, 100.0
"""How far to go along a step: that often tried, that exactly told, at most this many steps."""


def unit_rows(vectors: npt.ArrayLike) -> Floats:
    """Rows scaled to length one, in float64 (Caliskan et al. 2017, Methods); a zero row gives NaN.

    >>> unit_rows([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """
    rows = np.atleast_2d(np.asarray(vectors, np.float64))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    out = np.full(rows.shape, np.nan)
    np.divide(rows, length, out=out, where=length > 0)
    return out


def check_sets(what: str, **sets: npt.ArrayLike) -> None:
    """Refuse sets of words that are not rows of numbers, all of one length, by their names.

    >>> check_sets("weat", x=[[1.0, 0.0]], a=[[1.0]])
    Traceback (most recent call last):
    evenhand.errors.DataError: weat: vectors of one length are expected, not x (2), a (1).
    """
    sizes: dict[str, int] = {}
    for name, given in sets.items():
        try:
            rows = np.asarray(given)
        except ValueError:  # rows of several lengths
            rows = np.asarray(None)
        if not rows.size:
            raise DataError(f"{what}: set {name} has no vectors. Accepted: one word or more.")
        if rows.dtype.kind not in "fiub" or rows.ndim not in (1, 2):
            raise DataError(f"{what}: set {name} is no row of numbers for each of its words.")
        sizes[name] = rows.shape[-1]
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} ({size})" for name, size in sizes.items())
        raise DataError(f"{what}: vectors of one length are expected, not {shown}.")


def associations(words: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """s(w, A, B) of every word (Caliskan et al. 2017, Methods), shape [words], in [-2, 2].

    s(w) = mean over a of cos(w, a) - mean over b of cos(w, b); positive: w is nearer to a. A mean
    of cosines is the product with the mean of the unit rows, so all words cost one product.

    >>> associations([[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0]], [[0.0, 1.0]]).tolist()
    [1.0, -1.0]
    """
    direction = unit_rows(a).mean(axis=0) - unit_rows(b).mean(axis=0)
    return np.asarray(unit_rows(words) @ direction, np.float64)


def effect_size(
    s_x: npt.ArrayLike, s_y: npt.ArrayLike, *, ddof: int = 0, noise: float = 1e-14
) -> float:
    """WEAT effect size d (Caliskan et al. 2017, Methods); ideal 0, positive: x leans to a.

    d = [mean s(x) - mean s(y)] / sd of s over x and y together. With sets of equal size and
    ddof 0, |d| <= 2. NaN when a set is empty or all associations are equal to within `noise`.
    It has no scale: halving every association leaves d as it was. Read the statistic beside it.

    >>> effect_size([1.0, 1.0], [-1.0, -1.0])
    2.0
    """
    x, y = np.asarray(s_x, np.float64), np.asarray(s_y, np.float64)
    pooled = np.concatenate([x, y])
    if not len(x) or not len(y) or len(pooled) <= ddof:
        return float("nan")
    spread = float(pooled.std(ddof=ddof))
    # Equal associations differ in the last bits only; a spread of that size carries no meaning.
    if not spread > noise * max(1.0, float(np.abs(pooled).max())):
        return float("nan")
    return float((x.mean() - y.mean()) / spread)


@dataclass(frozen=True, slots=True)
class Weat:
    """A WEAT result: the associations of both target sets and the numbers made from them."""

    s_x: Floats
    s_y: Floats
    statistic: float
    effect_size: float
    effect_size_ddof1: float


def weat(x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> Weat:
    """WEAT of two target and two attribute sets (Caliskan et al. 2017, Methods).

    statistic = sum of s(x) - sum of s(y), effect size as in `effect_size`; both are positive when
    x leans to a and y to b. `effect_size` divides by the population standard deviation (ddof 0),
    `effect_size_ddof1` by the sample one. A permutation test needs `s_x` and `s_y` only.

    >>> axes = [[1.0, 0.0], [0.0, 1.0]]
    >>> result = weat(x=[axes[0]], y=[axes[1]], a=[axes[0]], b=[axes[1]])
    >>> result.statistic, result.effect_size, round(result.effect_size_ddof1, 4)
    (2.0, 2.0, 1.4142)
    """
    check_sets("weat", x=x, y=y, a=a, b=b)
    rows_x, rows_y = np.atleast_2d(np.asarray(x)), np.atleast_2d(np.asarray(y))
    s = associations(np.concatenate([rows_x, rows_y]), a, b)
    s_x, s_y = s[: len(rows_x)], s[len(rows_x) :]
    # What float32 numbers were rounded by shows in s, however exactly s is computed from them.
    noise = 5e-7 if np.asarray(x).dtype == np.float32 else 1e-14
    return Weat(
        s_x=s_x,
        s_y=s_y,
        statistic=float(s_x.sum() - s_y.sum()),
        effect_size=effect_size(s_x, s_y, noise=noise),
        effect_size_ddof1=effect_size(s_x, s_y, ddof=1, noise=noise),
    )


def fit_logistic(
    rows: npt.ArrayLike, labels: npt.ArrayLike, *, strength: float = 1.0, tol: float = 1e-10
) -> Floats:
    """Optimum of L2 logistic regression (Fan et al. 2008, Eq. 1), shape [dimensions + 1].

    Minimises 1/2 |w|^2 + strength * sum log(1 + exp(-label * w.x)) over w, with a feature of value
    1 appended for the intercept, which is penalised like the others. This is the point liblinear
    walks towards (its `C` is `strength`); Newton steps reach it to `tol`, with systems of the
    smaller of rows and dimensions.

    Args:
        rows: vectors, shape [n, dimensions].
        labels: +1 or -1, shape [n].

    >>> fit_logistic([[1.0], [-1.0]], [1, -1]).round(4).tolist()
    [0.6748, 0.0]
    """
    given = np.atleast_2d(np.asarray(rows, np.float64))
    return _fitted(_with_ones([given]), np.asarray(labels, np.float64), strength, tol)


def _with_ones(parts: Sequence[Floats]) -> Floats:
    """The rows of all parts, one after the other, with a last feature of value 1."""
    out = np.ones((sum(map(len, parts)), parts[0].shape[1] + 1))
    np.concatenate(parts, out=out[:, :-1])
    return out


def _fitted(x: Floats, y: Floats, strength: float = 1.0, tol: float = 1e-10) -> Floats:
    """`fit_logistic` of rows that have their last feature, to float labels."""
    if not (y == 1).any() or not (y == -1).any():
        raise DataError(
            f"logistic regression: {len(y)} rows, all of one class. Accepted: at least one row "
            "of each class (+1 and -1); for RNSB, a word with a vector in each attribute set."
        )
    if len(x) > x.shape[1]:
        return _many_rows(x, y, strength, tol)
    kernel = x @ x.T
    alpha = np.zeros(len(x))

    def loss(point: Floats) -> float:
        margin = kernel @ point
        penalty = point @ margin / 2
        return float(penalty + strength * np.logaddexp(0.0, -y * margin).sum())

    for _ in range(STEPS):
        pull = _pull(y * (kernel @ alpha))
        residual = alpha - strength * y * pull
        curvature = strength * pull * (1 - pull)
        step = np.linalg.solve(np.eye(len(x)) + curvature[:, None] * kernel, residual)
        size, here = 1.0, loss(alpha)
        while size > LEAST and loss(alpha - size * step) > here + ROOM * abs(here):
            size /= 2
        alpha = alpha - size * step
        if np.abs(step).max() < tol * max(1.0, float(np.abs(alpha).max())):
            break
    return np.asarray(alpha @ x, np.float64)


def _many_rows(x: Floats, y: Floats, strength: float, tol: float) -> Floats:
    """The optimum where rows outnumber dimensions: w itself is stepped, with

        H = I + strength X' diag(pull (1 - pull)) X,    gradient = w - strength X' (y pull)

    H is summed in float32, which halves the time and costs no digit: where the steps end is decided
    by the gradient alone, and that is exact. Summing H takes longer than all else, so a long step
    goes as far as its direction is worth (`_along`): the first by a factor of two or three, since
    margins grow. That saves two of six.
    """
    from scipy.linalg import cho_factor, cho_solve

    rough = x.astype(np.float32)
    w, margin = np.zeros(x.shape[1]), np.zeros(len(x))

    def loss(point: Floats, margin: Floats) -> float:
        return float(point @ point / 2 + strength * np.logaddexp(0.0, -y * margin).sum())

    here, moved = loss(w, margin), np.inf
    for _ in range(STEPS):
        pull = _pull(y * margin)
        if moved > NEAR:  # nearer the optimum H hardly changes, and the last one serves
            weighed = rough * np.sqrt(strength * pull * (1 - pull)).astype(np.float32)[:, None]
            factor = cho_factor(np.eye(len(w)) + (weighed.T @ weighed).astype(np.float64))
        step = cho_solve(factor, w - strength * (y * pull) @ x)
        moves, size = x @ step, 1.0
        if moved > NEAR:
            size = _along(w, step, y * margin, y * moves, strength)
        while (next_ := loss(w - size * step, margin - size * moves)) > here + ROOM * abs(here):
            size /= 2
            if size <= LEAST:
                break
        w, margin, here = w - size * step, margin - size * moves, next_
        moved = size * float(np.abs(step).max()) / max(1.0, float(np.abs(w).max()))
        if moved < tol:
            break
    return w


def _along(w: Floats, step: Floats, margin: Floats, moves: Floats, strength: float) -> float:
    """How many of a step lead to the least loss in its direction: Newton steps in one dimension."""
    size, reach, square = 1.0, float(w @ step), float(step @ step)
    for _ in range(TRIES):
        pull = _pull(margin - size * moves)
        slope = size * square - reach + strength * float(pull @ moves)
        bend = square + strength * float((pull * (1 - pull)) @ (moves * moves))
        before, size = size, size - slope / bend if bend > 0 else 1.0
        if abs(size - before) < CLOSE * abs(size):
            break
    return size if LEAST < size < MOST else 1.0


def _pull(margin: Floats) -> Floats:
    """How strongly each row still pulls: the probability of the other class."""
    return np.asarray(1 / (1 + np.exp(np.clip(margin, -700, 700))), np.float64)


@dataclass(frozen=True, slots=True)
class Rnsb:
    """An RNSB result: P(b | word) of both target sets, the signed form and the KL form."""

    p_x: Floats
    p_y: Floats
    signed: float
    kl: float


def rnsb(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    normalise: bool = True,
) -> Rnsb:
    """RNSB of two target sets (Sweeney & Najafian 2019; Kato & Miyao 2024, Sec. 3.2).

    A logistic classifier learns a against b; f(T) is the mean probability of b over the words of T.
    signed = [f(y) - f(x)] / [f(x) + f(y)], in (-1, 1), ideal 0, positive: y leans to b.
    kl = KL(p / sum p || uniform) over the probabilities of all target words, in nats; ideal 0.

    Deviates: vectors are scaled to length one unless `normalise` is False. The published form uses
    the vectors as given, and then depends on their length: the same GloVe directions read 2 to 10
    times larger with raw lengths. One fit to the optimum replaces ten seeds of a solver that does
    not depend on its seed.

    >>> axes = [[1.0, 0.0], [0.0, 1.0]]
    >>> round(rnsb(x=[axes[0]], y=[axes[1]], a=[axes[0]], b=[axes[1]]).signed, 4)
    0.1979
    """
    check_sets("rnsb", x=x, y=y, a=a, b=b)
    p = second_probabilities(
        np.concatenate([np.atleast_2d(np.asarray(part, np.float64)) for part in (x, y)]),
        a,
        b,
        normalise=normalise,
    )
    p_x, p_y = p[: len(np.atleast_2d(np.asarray(x)))], p[len(np.atleast_2d(np.asarray(x))) :]
    f_x, f_y = float(p_x.mean()), float(p_y.mean())
    return Rnsb(p_x=p_x, p_y=p_y, signed=(f_y - f_x) / (f_x + f_y), kl=uneven(p))


def second_probabilities(
    words: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, *, normalise: bool = True
) -> Floats:
    """P(b | word) of a logistic classifier of a against b, one per row of `words`.

    >>> second_probabilities([[1.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]]).tolist()
    [0.5]
    """
    for name, part in (("a", a), ("b", b)):
        if not len(np.asarray(part)):
            raise DataError(f"rnsb: set {name} has no vectors. Accepted: one word or more.")
    prepare = unit_rows if normalise else lambda v: np.atleast_2d(np.asarray(v, np.float64))
    rows, first, second = (prepare(part) for part in (words, a, b))
    labels = np.concatenate([np.ones(len(first)), -np.ones(len(second))])
    weights = _fitted(_with_ones([first, second]), labels)
    return _pull(rows @ weights[:-1] + weights[-1])


def uneven(probabilities: npt.ArrayLike) -> float:
    """KL(p / sum p || uniform) in nats (Sweeney & Najafian 2019, Eq. 2); 0: all equal.

    >>> uneven([0.3, 0.3])
    0.0
    """
    share = np.asarray(probabilities, np.float64)
    share = share / share.sum()
    return float(np.maximum((share * np.log(share * len(share))).sum(), 0.0))
