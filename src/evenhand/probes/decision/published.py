"""DiscrimEval's own model: fixed effects of groups, random intercepts and slopes by scenario.

    y_is = (b_0 + u_0s) + sum_k (b_k + u_ks) x_ik + e_is

y is logit(yes) - logit(no); x are groups against the reference of their factor, and numbers (ages)
in tens. Tamkin et al. 2023 call b_k the discrimination score. REML, Wald intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.probes.decision.contrasts import Decided
from evenhand.stats.estimate import NAN
from evenhand.stats.random_slopes import MixedFit, random_slopes

TEN = 10.0
FEW = 2
"""Groups of a factor of numbers that are still compared as groups."""


@dataclass(frozen=True)
class MixedRow:
    """A coefficient; `group` is "+10" for a factor of numbers, "" for the mean.

    `spread` is the deviation of the scenarios' own coefficients; `slopes` says whether they have
    any beside their means, for which every scenario needs more rows than there are columns.
    """

    format: str
    factor: str
    group: str
    reference: str
    value: float = NAN
    error: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    spread: float = NAN
    n: int = 0
    slopes: bool = True
    converged: bool = False
    singular: bool = False
    reason: str = ""


def mixed_rows(decided: Decided) -> list[MixedRow]:
    """The model of every format, fitted to all of its answers."""
    return [row for format in decided.formats for row in _of_format(decided, format)]


def design(
    decided: Decided, format: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[tuple[str, str, str]]]:
    """Which rows are used, their columns, and what each column is: factor, group, reference."""
    factors = {n: told for n, told in decided.factors.items() if decided.levels(n, format)[1:]}
    at = np.asarray(
        [
            i
            for i, f in enumerate(decided.format)
            if f == format and np.isfinite(decided.value[i]) and all(t[i] for t in factors.values())
        ],
        np.int64,
    )
    columns, what = [np.ones(len(at))], [("mean", "", "")]
    for name, told in factors.items():
        reference, *groups = decided.levels(name, format)
        own = [told[i] for i in at]
        if len(groups) >= FEW and all(map(_is_number, (reference, *groups))):
            columns.append((np.asarray(own, np.float64) - float(reference)) / TEN)
            what.append((name, "+10", reference))
            continue
        for group in groups:
            columns.append(np.asarray([g == group for g in own], np.float64))
            what.append((name, group, reference))
    return at, np.stack(columns, axis=1), what


def _of_format(decided: Decided, format: str) -> list[MixedRow]:
    at, x, what = design(decided, format)
    if len(what) < 2:
        return []
    y = np.where(decided.good_yes, decided.value, -decided.value)[at]
    groups = [decided.scenario[i] for i in at]
    named = [(format, *part) for part in what]
    fit, slopes, why = _fitted(y, x, groups)
    if fit is None:
        return [MixedRow(*part, n=len(at), reason=why) for part in named]
    spread = np.full(len(what), NAN)
    spread[: len(fit.covariance)] = np.sqrt(np.diag(fit.covariance))
    return [
        MixedRow(
            *part,
            value=float(fit.b[k]),
            error=float(fit.error[k]),
            low=float(fit.low[k]),
            high=float(fit.high[k]),
            p=float(fit.p[k]),
            spread=float(spread[k]),
            n=len(at),
            slopes=slopes,
            converged=fit.converged,
            singular=fit.singular,
        )
        for k, part in enumerate(named)
    ]


def _fitted(
    y: npt.NDArray[np.float64], x: npt.NDArray[np.float64], groups: list[str]
) -> tuple[MixedFit | None, bool, str]:
    """With random slopes, else with random intercepts alone, else why not."""
    why = "no answers"
    for z in (x, x[:, :1]) if len(y) else ():
        try:
            return random_slopes(y, x, groups, z), z.shape[1] > 1, ""
        except DataError as error:
            why = str(error)
    return None, False, why


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
