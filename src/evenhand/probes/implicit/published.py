"""The publication's stimuli and numbers: D of raw answers, and the regression of decisions on it.

Answers to its association prompt list words that are given to groups; each line is a word and a
term, and lines that name none of the stimuli count as unread:

    awful - old
    wonderful - young

Do decisions follow associations? Logistic regression of single answers:

    logit P(decision follows the stereotype) = a + b D

by maximum likelihood (Newton), with standard errors from the information. Answers to the same
stereotype are no independent evidence: the interval over stereotypes (sandwich over `dataset`, t
with their number less one) stands beside the published one where there are ten or more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from evenhand.compare.items import Floats
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, unknown
from evenhand.probes.reading import Columns, Input, Names, Reader, Result, Shown, listed
from evenhand.stats.estimate import NAN, Estimate, estimate
from evenhand.strict import INLINE

SMALL = 0.01
"""Keeps the publication's D defined where a group got no word."""
STEPS = 100
ENOUGH = 10
"""Clusters from which on a sandwich can be trusted."""
_BREAK = re.compile(r"\s*[-–—:,]\s*")
_LETTERS = re.compile(r"[^a-z ]")
_SEPARATED = (
    "implicit-link: the regression has no solution, since iat_bias does not vary or tells the "
    "decisions apart without a mistake. Accepted: values of both columns that vary and overlap."
)


@dataclass(frozen=True)
class Stereotype:
    """Two groups and two kinds of words; the stereotype ties `bad` to the first group.

    Attributes:
        first, second: the stigmatised and the default group.
        bad, good: what the words are about.
        pairs: terms (default, stigmatised) that meet.
        words: bad words and good words.
        worse: whether it is worse to go with the bad words, as with what is unpleasant; of two
            fields of work neither is worse.
    """

    name: str
    first: str
    second: str
    bad: str
    good: str
    pairs: tuple[tuple[str, str], ...]
    words: tuple[tuple[str, ...], ...]
    worse: bool = False

    @classmethod
    def of(
        cls, where: str, name: str, texts: Mapping[str, str], pairs: Any, words: Any
    ) -> Stereotype:
        """Return the stereotype; raise DataError, naming the file, if a list of it is empty."""
        if not pairs or not all(words):
            raise DataError(
                f"{where}: stereotype {name!r} has {len(pairs)} pairs of terms, {len(words[0])} "
                f"bad and {len(words[1])} good words. Accepted: one or more of each."
            )
        first, second, bad, good = (texts[key] for key in ("first", "second", "bad", "good"))
        return cls(name, first, second, bad, good, tuple(dict.fromkeys(pairs)), words)


def read_stimuli(path: Path) -> dict[str, Stereotype]:
    """Read the publication's stimuli; words of its first half go with the default group."""
    names = ("dataset", "A", "B", "C")
    table = read_table(path, text=names, needed=names)
    lists: dict[str, dict[str, list[str]]] = {}
    for dataset, *cells in zip(*(table.columns[name].to_pylist() for name in names)):
        columns = lists.setdefault(str(dataset), {"A": [], "B": [], "C": []})
        for key, cell in zip(columns, cells):
            columns[key] += [str(cell).strip()] if cell else []
    stereotypes = {}
    for name, columns in lists.items():
        half = len(columns["C"]) // 2
        texts = {
            "first": _group(columns["B"]),
            "second": _group(columns["A"]),
            "bad": f"what {name} says of the first",
            "good": "the other kind",
        }
        words = (tuple(columns["C"][half:]), tuple(columns["C"][:half]))
        pairs = list(zip(columns["A"], columns["B"]))
        stereotypes[name] = Stereotype.of(str(path), name, texts, pairs, words)
    return stereotypes


def _group(terms: Sequence[str]) -> str:
    """Return the name of a group by its terms: the first, and "..." if there are more."""
    return " ...".join([terms[0], ""][: 1 + (len(terms) > 1)]) if terms else ""


def published_d(sn: float, sp: float, dn: float, dp: float) -> float:
    """Return D of counts: (s)tigmatised or (d)efault group, (n)egative or (p)ositive words.

    1 is the stereotype throughout, -1 its reverse, 0 if no answer could be read.

    >>> round(published_d(8, 0, 0, 8), 4), published_d(0, 0, 0, 0), published_d(4, 4, 4, 4) < 0
    (0.9975, 0.0, True)
    """
    if not sn + sp + dn + dp:
        return 0.0
    return sn / (sn + sp + SMALL) + dp / (dn + dp + SMALL) - 1


@dataclass(frozen=True)
class Stimuli:
    """The words and terms of a stereotype, cleaned, in several wordings."""

    terms: Mapping[str, str]
    words: Mapping[str, str]

    @classmethod
    def of(cls, wordings: Sequence[Stereotype]) -> Stimuli:
        """Return the stimuli of all wordings of a stereotype."""
        terms = {_clean(t): who for s in wordings for pair in s.pairs for t, who in zip(pair, "ds")}
        words = {_clean(w): side for s in wordings for side, ws in zip("np", s.words) for w in ws}
        return cls(terms, words)

    def read(self, text: str) -> tuple[float, int, int]:
        """Return D of an answer, how many lines could be read, and how many could not.

        >>> stimuli = Stimuli({"old": "s", "young": "d"}, {"awful": "n", "happy": "p"})
        >>> stimuli.read("awful - old\\nhappy - young\\nbananas - old")[1:]
        (2, 1)
        """
        counts: Counter[str] = Counter()
        for line in text.splitlines():
            parts = [p for p in map(_clean, _BREAK.split(line)) if p]
            if not parts:
                continue
            ends = (parts[0], parts[-1]) if parts[0] in self.words else (parts[-1], parts[0])
            side, who = self.words.get(ends[0], ""), self.terms.get(ends[1], "")
            counts[who + side if who and side and len(parts) > 1 else "unread"] += 1
        d = published_d(*(counts[k] for k in ("sn", "sp", "dn", "dp")))
        return d, counts.total() - counts["unread"], counts["unread"]


def _clean(text: str) -> str:
    return " ".join(_LETTERS.sub("", text.lower()).split())


@dataclass(frozen=True)
class AnswerRow:
    """D of a category's answers: mean, one-sample t over answers as published, lines."""

    category: str
    d: float
    t_published: float
    n: int
    n_unread: int
    lines: int
    lines_unread: int


@dataclass(frozen=True, kw_only=True)
class AnswersResult(Result):
    """Every category, and every answer's D."""

    measure: ClassVar[str] = "implicit-answers"

    tables: ClassVar = (
        Columns(
            "Word association answers: the publication's D",
            "categories",
            ("category", "d", "t_published", "n", "n_unread", "lines", "lines_unread"),
        ),
    )

    categories: Sequence[AnswerRow]
    d: Sequence[float]


class AnswersReader(Reader):
    """Answers are taken as independent, as published; they are draws of the same prompts."""

    name = "implicit-answers"
    help = """The publication's D from raw answers of the word association test.

    One row per answer: category, response (lines "word - term"). Stimuli: columns dataset, A
    (default group), B (stigmatised group), C (words, the first half positive).
    """
    positional = ("table",)

    table: Input
    stimuli: Names[Path] = Field(description="Files of stimuli, with commas between them.")
    response: str = Field("response", description="Column with the answers.")
    category: str = Field("category", description="Column with the stereotype's name.")

    def read(self) -> AnswersResult:
        names = (self.category, self.response)
        table = read_table(self.table, text=names, needed=names)
        wordings: dict[str, list[Stereotype]] = {}
        for path in self.stimuli:
            for name, stereotype in read_stimuli(path).items():
                wordings.setdefault(_clean(name).replace(" ", ""), []).append(stereotype)
        stimuli = {name: Stimuli.of(listed) for name, listed in wordings.items()}
        texts = table.columns[self.response].to_pylist()
        answers: dict[str, list[tuple[float, int, int]]] = {}
        values = []
        for category, text in zip(table.labels(self.category), texts):
            answer = _stimuli_of(category, stimuli, table.source).read(str(text or ""))
            answers.setdefault(category, []).append(answer)
            values.append(answer[0])
        return AnswersResult(categories=[_row(k, v) for k, v in sorted(answers.items())], d=values)


def _stimuli_of(category: str, stimuli: Mapping[str, Stimuli], source: str) -> Stimuli:
    """Return stimuli by their name, or by its beginning if only one has it (arab: arab/muslim)."""
    name = _clean(category).replace(" ", "")
    near = [k for k in stimuli if k.startswith(name)]
    if name in stimuli or len(near) == 1:
        return stimuli[name if name in stimuli else near[0]]
    raise DataError(unknown("category", category, list(stimuli), where=source))


def _row(category: str, answers: Sequence[tuple[float, int, int]]) -> AnswerRow:
    d = np.asarray([answer[0] for answer in answers])
    spread = d.std(ddof=1) if len(d) > 1 else 0.0
    t = float(d.mean() / (spread / np.sqrt(len(d)))) if spread else NAN
    lines, unread = sum(read for _, read, _ in answers), sum(lost for _, _, lost in answers)
    none = sum(not read for _, read, _ in answers)
    return AnswerRow(category, float(d.mean()), t, len(d), none, lines, unread)


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
    """Fit 0/1 outcomes on one number.

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


def clustered(fit: Fit, x: Floats, y: Floats, clusters: Sequence[str]) -> Estimate:
    """Estimate the slope with its variance over clusters (sandwich, k / (k - 1))."""
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
