"""Combining effect sizes: random-effects meta-analysis as CEAT uses it (Guo and Caliskan 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.strict import SameValues

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Combined(SameValues):
    """A combined effect, its standard error and what lies between the studies.

    `q` is Cochran's Q, `tau2` the variance between studies, `p` two-sided by the normal law.
    """

    effect: float
    error: float
    p: float
    q: float
    tau2: float
    n: int


def effect_variance(d: npt.ArrayLike, n_x: int, n_y: int) -> Floats:
    """Sampling variance of a standardised difference (Hedges and Olkin 1985, Eq. 5.14).

    (n_x + n_y) / (n_x n_y) + d^2 / (2 (n_x + n_y)).

    >>> float(effect_variance(0.0, 8, 8))
    0.25
    """
    size = np.asarray(d, np.float64)
    return np.asarray((n_x + n_y) / (n_x * n_y) + size**2 / (2 * (n_x + n_y)), np.float64)


def random_effects(effects: npt.ArrayLike, variances: npt.ArrayLike) -> Combined:
    """Combined effect size over studies (DerSimonian and Laird 1986; Guo and Caliskan 2021, Eq. 2).

    With w = 1 / V: Q = sum w ES^2 - (sum w ES)^2 / sum w; c = sum w - sum w^2 / sum w;
    tau^2 = max(0, (Q - (N - 1)) / c); v = 1 / (V + tau^2); CES = sum v ES / sum v;
    SE = sqrt(1 / sum v); p = 2 (1 - Phi(|CES / SE|)).

    The studies are taken as independent. Draws of contexts for the same words are not: SE then
    falls with the number of draws, however few the words are.

    >>> found = random_effects([0.0, 1.0], [0.1, 0.1])
    >>> found.effect, round(found.tau2, 3), round(found.error, 3)
    (0.5, 0.4, 0.5)
    """
    e, v = np.asarray(effects, np.float64), np.asarray(variances, np.float64)
    if e.shape != v.shape or e.ndim != 1 or not (np.isfinite(e) & (v > 0)).all():
        raise DataError(
            "random effects: effect sizes and variances must be equally many finite numbers, each "
            "variance above 0."
        )
    if not len(e):
        return Combined(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    w = 1 / v
    q = max(0.0, float((w * e**2).sum() - (w * e).sum() ** 2 / w.sum()))
    c = float(w.sum() - (w**2).sum() / w.sum())
    tau2 = max(0.0, (q - (len(e) - 1)) / c) if len(e) > 1 and c > 0 else 0.0
    weight = 1 / (v + tau2)
    effect = float((weight * e).sum() / weight.sum())
    error = math.sqrt(1 / float(weight.sum()))
    return Combined(effect, error, math.erfc(abs(effect / error) / math.sqrt(2)), q, tau2, len(e))
