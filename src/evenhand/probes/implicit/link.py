"""Do decisions follow associations? Logistic regression of single answers, as published.

    logit P(decision follows the stereotype) = a + b D

by maximum likelihood (Newton), with standard errors from the information. Answers to the same
stereotype are no independent evidence: the interval over stereotypes (sandwich over `dataset`, t
with their number less one) stands beside the published one where there are ten or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.probes.reading import Input, Reader, Result, Shown, listed
from evenhand.stats.estimate import Estimate, estimate
from evenhand.strict import INLINE

Floats = npt.NDArray[np.float64]
STEPS = 100
ENOUGH = 10
"""Clusters from which on a sandwich can be trusted."""


@dataclass(frozen=True)
class Fit:
    """Coefficients (intercept, slope) with their covariance, and how well they fit."""

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    n: int

    @property
    def aic(self) -> float:
        return 2 * len(self.coefficients) - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        return len(self.coefficients) * math.log(self.n) - 2 * self.log_likelihood


def logistic(x: Floats, y: Floats) -> Fit:
    """The fit of 0/1 outcomes on one number.

    >>> x, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    >>> fit = logistic(x, y)
    >>> bool(abs(fit.coefficients).max() < 1e-9), round(fit.log_likelihood, 4)
    (True, -2.7726)
    """
    design = np.stack([np.ones(len(x)), x], axis=1)
    beta = np.zeros(2)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(design @ beta)))
        information = (design * (p * (1 - p))[:, None]).T @ design
        try:
            step = np.linalg.solve(information, design.T @ (y - p))
        except np.linalg.LinAlgError:
            raise DataError(_SEPARATED) from None
        beta = beta + step
        if np.abs(beta).max() > 1e3:
            raise DataError(_SEPARATED)
        if np.abs(step).max() < 1e-12:
            break
    line = design @ beta
    fit = float((y * line - np.logaddexp(0, line)).sum())
    p = 1 / (1 + np.exp(-line))
    information = (design * (p * (1 - p))[:, None]).T @ design
    covariance = np.asarray(np.linalg.inv(information), np.float64)
    return Fit(beta, covariance, fit, len(y))


_SEPARATED = (
    "implicit-link: the regression has no solution, since iat_bias does not vary or tells the "
    "decisions apart without a mistake. Accepted: values of both columns that vary and overlap."
)


def clustered(fit: Fit, x: Floats, y: Floats, clusters: Sequence[str]) -> Estimate:
    """The slope with its variance over clusters (sandwich, k / (k - 1))."""
    names, codes = np.unique(clusters, return_inverse=True)
    slope, k = float(fit.coefficients[1]), len(names)
    if k < ENOUGH:
        return Estimate(slope, units=k, reason=f"fewer than {ENOUGH} stereotypes")
    p = 1 / (1 + np.exp(-(fit.coefficients[0] + slope * x)))
    scores = np.zeros((k, 2))
    np.add.at(scores, codes, np.stack([y - p, (y - p) * x], axis=1))
    middle = fit.covariance @ (scores.T @ scores) @ fit.covariance * k / (k - 1)
    return estimate(slope, float(np.sqrt(middle[1, 1])), k - 1.0, units=k)


@dataclass(frozen=True, kw_only=True)
class LinkResult(Result):
    """The published table, and the slope over stereotypes (value, low, high, p)."""

    measure: ClassVar[str] = "implicit-link"

    intercept: float
    slope: float
    se: tuple[float, float]
    z: tuple[float, float]
    p_published: tuple[float, float]
    log_likelihood: float
    aic: float
    bic: float
    n: int
    over_stereotypes: Estimate = field(metadata=INLINE)

    def shown(self) -> Iterator[Shown]:
        rows = [
            {"": name, "coefficient": value, "se": se, "z": z, "p": p}
            for name, value, se, z, p in zip(
                ("intercept", "iat_bias"),
                (self.intercept, self.slope),
                self.se,
                self.z,
                self.p_published,
            )
        ]
        title = f"Decisions on associations: {self.n} answers, taken as independent (as published)"
        yield listed(title, rows, ("", "coefficient", "se", "z", "p"))
        yield Shown(
            f"log-likelihood {self.log_likelihood:.4f}, AIC {self.aic:.4f}, BIC {self.bic:.4f}"
        )
        keys = ("value", "low", "high", "p", "units", "reason")
        yield listed("Slope over stereotypes", [self.over_stereotypes], keys)


class LinkReader(Reader):
    """The regression of the chained test."""

    name = "implicit-link"
    help = """Do decisions follow associations? Logistic regression, as published.

    One row per answer: iat_bias (D of its association), decision_bias (1: the decision follows the
    stereotype, 0: it does not); optional dataset (the stereotype).
    """
    positional = ("table",)

    table: Input

    def read(self) -> LinkResult:
        names = ("iat_bias", "decision_bias")
        table = read_table(self.table, text=("dataset",), needed=names)
        x, y = (table.numbers(name) for name in names)
        known = np.isfinite(x) & np.isfinite(y)
        wrong = np.flatnonzero(known & (y != 0) & (y != 1))
        if len(wrong):
            raise DataError(
                f"{table.source}, row {wrong[0] + 1}, column decision_bias: {y[wrong[0]]:g}. "
                "Accepted: 1 or 0."
            )
        fit = logistic(x[known], y[known])
        errors = np.sqrt(np.diag(fit.covariance))
        z = fit.coefficients / errors
        p = [math.erfc(abs(value) / math.sqrt(2)) for value in z]
        sets = [s for s, k in zip(table.texts("dataset", ""), known) if k]
        return LinkResult(
            intercept=float(fit.coefficients[0]),
            slope=float(fit.coefficients[1]),
            se=(float(errors[0]), float(errors[1])),
            z=(float(z[0]), float(z[1])),
            p_published=(p[0], p[1]),
            log_likelihood=fit.log_likelihood,
            aic=fit.aic,
            bic=fit.bic,
            n=fit.n,
            over_stereotypes=clustered(fit, x[known], y[known], sets),
        )
