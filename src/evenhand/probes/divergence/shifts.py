"""How far the odds between two sides of a list of next words shift with the group.

With y(t, w) the log-probability of word w after a text with term t, the value of a term is

    z(t) = mean over first words of y(t, w) - mean over second words of y(t, w)

in nats: how much more it expects the first side. A word's own probability cancels between terms.
The shift of a group is the mean over its terms against the other groups', row by row,

    shift = sum_g a_g mean over rows r of z(r, g),       sum_g a_g = 0

Every term and every word has effects of its own, also in a model that has none of the group. Its
variance has two parts:

    terms   sum a^2 / R * s_z^2,    s_z: spread of terms within rows, groups' and controls'
    words   (1/n1 + 1/n2) * v_w,    v_w: variance over words of their own shift, less its noise

where the noise is what term-by-word residuals s_e leave in a word's shift, sum a^2 / R * s_e^2:
the variance of a crossed table (MS_T + MS_W - MS_E), with the degrees of freedom of Satterthwaite.
Words of both sides are asked after the same openings, so what a text does to all words cancels in
z; it is taken out of v_w and s_e too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.compare.items import Floats
from evenhand.probes.base import Placebo
from evenhand.stats.estimate import NAN, Estimate, estimate

ALARM = 0.05
SPLITS = 100
TINY = 1e-9  # nats: below it differences are the order of additions


@dataclass(frozen=True)
class Spread:
    """Mean squares and their degrees of freedom: of terms within rows, and of terms by words.

    Rows differ in how far their terms lie apart, so a mean of their squares has fewer degrees of
    freedom than terms: (sum S_i)^2 / sum S_i^2 / (f_i + 2), which is sum f_i when they are alike.
    """

    terms: float
    terms_freedom: float
    noise: float
    noise_freedom: int


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of one list: group terms [rows, groups, words], control rows [k, words].

    The first `first` words are one side of the list, the others the other; `frames` tells the
    opening of each word (none: one for all).
    """

    groups: Floats
    controls: tuple[Floats, ...]
    first: int
    frames: tuple[int, ...] = ()

    def known(self) -> Scores:
        """Without the words that some term has no score for."""
        every = np.concatenate(
            [self.groups.reshape(-1, self.groups.shape[-1]), *self.controls], axis=0
        )
        kept = np.isfinite(every).all(axis=0)
        return Scores(
            self.groups[..., kept],
            tuple(c[:, kept] for c in self.controls),
            int(kept[: self.first].sum()),
            tuple(f for f, k in zip(self.frames, kept) if k),
        )

    @cached_property
    def residual(self) -> tuple[Floats, int]:
        """What takes openings and sides out of values by word, and the freedom that is left."""
        width = self.groups.shape[-1]
        side = np.arange(width) < self.first
        codes = np.asarray(self.frames or np.zeros(width), np.int64)
        fixed = np.column_stack([codes[:, None] == np.unique(codes), side]).astype(np.float64)
        return np.eye(width) - fixed @ np.linalg.pinv(fixed), width - np.linalg.matrix_rank(fixed)

    @property
    def words(self) -> tuple[int, int]:
        """How many words either side has."""
        return self.first, self.groups.shape[-1] - self.first

    def values(self, scores: Floats) -> Floats:
        """z of terms [..., words] -> [...]."""
        sides = scores[..., : self.first].mean(axis=-1), scores[..., self.first :].mean(axis=-1)
        return np.asarray(sides[0] - sides[1], np.float64)

    @cached_property
    def spread(self) -> Spread:
        """Spread of terms within rows; what group (and group by word) does is taken out.

        >>> y = np.array([[0.0, 1.0], [2.0, 1.0]])           # one row of two controls, two words
        >>> Scores(np.zeros((1, 2, 2)), (y,), 1).spread.terms   # z = -1 and 1
        2.0
        """
        group = self.groups - self.groups.mean(axis=1, keepdims=True)
        group = group - group.mean(axis=0, keepdims=True)
        rows, groups, words = self.groups.shape
        parts = [group.reshape(-1, words), *(c - c.mean(axis=0) for c in self.controls)]
        each = np.asarray([(rows - 1) * (groups - 1), *(len(c) - 1 for c in self.controls)])
        freedom = int(each.sum())
        if not freedom:
            return Spread(NAN, 0.0, 0.0, 0)
        squares = np.asarray([(self.values(part) ** 2).sum() for part in parts])
        uneven = float((squares**2 / (each + 2)).sum())
        alike = float(squares.sum()) ** 2 / uneven if uneven else freedom
        alone, left = self.residual
        noise = float(((np.concatenate(parts) @ alone) ** 2).sum())
        return Spread(
            float(squares.sum()) / freedom,
            min(float(freedom), max(1.0, alike)),
            noise / (freedom * left) if left else 0.0,
            freedom * left,
        )


def comparisons(groups: int) -> Floats:
    """Weights of the groups in each shift: two are subtracted, of more each meets the others' mean.

    >>> comparisons(2).tolist(), comparisons(3)[0].tolist()
    ([[1.0, -1.0]], [1.0, -0.5, -0.5])
    """
    if groups == 2:
        return np.array([[1.0, -1.0]])
    others = -np.ones((groups, groups)) / (groups - 1)
    np.fill_diagonal(others, 1.0)
    return others


def shift(scores: Scores, weights: Floats, *, family: int = 1, rate: float = ALARM) -> Estimate:
    """Estimate the shift of groups with these weights; it generalises over terms and words."""
    rows, groups, _ = scores.groups.shape
    n1, n2 = scores.words
    if not (n1 and n2):
        reason = "a side of the list has no word that was scored after every term"
        return Estimate(NAN, reason=reason)
    if not scores.spread.terms_freedom:
        reason = "one row of terms and no control rows: no spread of terms can be seen"
        return Estimate(NAN, reason=reason)
    by_word, each = weights @ scores.groups.mean(axis=0), 1 / n1 + 1 / n2
    alone, left = scores.residual
    value = float(scores.values(by_word))
    of_words = each * float(((alone @ by_word) ** 2).sum()) / left if left else 0.0
    share = float((weights**2).sum()) / rows
    error, freedom = _combined(share, each, of_words, left, scores.spread)
    if error < TINY:
        error, value = 0.0, value if abs(value) > TINY else 0.0
    return estimate(value, error, freedom, units=rows * groups, family=family, rate=rate)


def _combined(
    share: float, each: float, of_words: float, words_freedom: int, spread: Spread
) -> tuple[float, float]:
    """Standard error and degrees of freedom from the mean squares of terms, words and noise."""
    of_terms, noise = share * spread.terms, each * share * spread.noise
    if of_words <= noise:
        return float(np.sqrt(of_terms)), float(spread.terms_freedom)
    if of_terms <= noise:
        return float(np.sqrt(of_words)), float(words_freedom)
    variance = of_terms + of_words - noise
    parts = of_terms**2 / spread.terms_freedom + of_words**2 / words_freedom
    if spread.noise_freedom:
        parts += noise**2 / spread.noise_freedom
    return float(np.sqrt(variance)), float(max(1.0, variance**2 / parts))


def neutral_reach(scores: Scores, weights: Floats, level: float = 0.95) -> float:
    """Return how large a shift between as many control terms would be in 95 of 100 draws."""
    from scipy.special import stdtrit

    t = float(stdtrit(max(1, scores.spread.terms_freedom), 0.5 + level / 2))
    return t * float(np.sqrt((weights**2).sum() / len(scores.groups) * scores.spread.terms))


def row_shifts(scores: Scores, weights: Floats) -> Floats:
    """Return the shift in each row of terms."""
    return np.asarray(scores.values(scores.groups) @ weights, np.float64)


def neutral_swaps(scores: Scores, what: str, seed: Sequence[int], splits: int = SPLITS) -> Placebo:
    """Put control terms in place of the groups' at random: there is no true difference.

    As many control rows as the groups have become the rows of groups without a meaning, the others
    stay controls; the test is that of the findings.
    """
    rows, groups, _ = scores.groups.shape
    able = [c for c in scores.controls if len(c) >= groups]
    size = min(rows, len(able) - 2)
    if size < 2 or not min(scores.words):
        return Placebo(what, 0, 0, "too few control terms to stand in for the groups' terms")
    rng, weights, alarms = np.random.default_rng([*seed, 11]), comparisons(groups), 0
    for _ in range(splits):
        order = rng.permutation(len(able))
        drawn = [rng.permutation(able[i])[:groups] for i in order[:size]]
        rest = tuple(able[i] for i in order[size:])
        neutral = replace(scores, groups=np.stack(drawn), controls=rest)
        alarms += sum(shift(neutral, weight).p <= ALARM for weight in weights)
    return Placebo(what, splits * len(weights), alarms)
