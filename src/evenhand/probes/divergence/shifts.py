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

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import Placebo
from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]
ALARM = 0.05
SPLITS = 100
TINY = 1e-9  # nats: below it differences are the order of additions


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

    def leave(self) -> tuple[Floats, int]:
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


def spread_of(scores: Scores) -> Spread:
    """Terms within rows, what group (and group by word) does taken out.

    >>> y = np.array([[0.0, 1.0], [2.0, 1.0]])           # one row of two controls, two words
    >>> spread_of(Scores(np.zeros((1, 2, 2)), (y,), 1)).terms   # z = -1 and 1
    2.0
    """
    group = scores.groups - scores.groups.mean(axis=1, keepdims=True)
    group = group - group.mean(axis=0, keepdims=True)
    rows, groups, words = scores.groups.shape
    parts = [group.reshape(-1, words), *(c - c.mean(axis=0) for c in scores.controls)]
    each = np.asarray([(rows - 1) * (groups - 1), *(len(c) - 1 for c in scores.controls)])
    freedom = int(each.sum())
    if not freedom:
        return Spread(float("nan"), 0.0, 0.0, 0)
    squares = np.asarray([(scores.values(part) ** 2).sum() for part in parts])
    uneven = float((squares**2 / (each + 2)).sum())
    alike = float(squares.sum()) ** 2 / uneven if uneven else freedom
    alone, left = scores.leave()
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


def shifts(
    scores: Scores, weights: Floats, *, family: int = 1, rate: float = ALARM
) -> list[Estimate]:
    """One estimate per comparison of groups; generalises over terms and words."""
    rows, groups, _ = scores.groups.shape
    n1, n2 = scores.words
    if not (n1 and n2):
        reason = "a side of the list has no word that was scored after every term"
        return [Estimate(float("nan"), reason=reason)] * len(weights)
    spread = spread_of(scores)
    if not spread.terms_freedom:
        reason = "one row of terms and no control rows: no spread of terms can be seen"
        return [Estimate(float("nan"), reason=reason)] * len(weights)
    each = 1 / n1 + 1 / n2
    alone, left = scores.leave()
    out = []
    for by_word, share in zip(_by_word(scores, weights), _shares(weights, rows)):
        value = float(scores.values(by_word))
        of_words = each * float(((alone @ by_word) ** 2).sum()) / left if left else 0.0
        error, freedom = _combined(share, each, of_words, left, spread)
        if error < TINY:
            error, value = 0.0, value if abs(value) > TINY else 0.0
        out.append(estimate(value, error, freedom, units=rows * groups, family=family, rate=rate))
    return out


def _by_word(scores: Scores, weights: Floats) -> Floats:
    """Each word's own shift [comparisons, words]."""
    return np.asarray(weights @ scores.groups.mean(axis=0), np.float64)


def _shares(weights: Floats, rows: int) -> Floats:
    return np.asarray((weights**2).sum(axis=1) / rows, np.float64)


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


def neutral_reach(scores: Scores, weights: Floats, level: float = 0.95) -> Floats:
    """How large a shift between as many control terms would be in 95 of 100 draws."""
    from scipy.special import stdtrit

    spread = spread_of(scores)
    t = float(stdtrit(max(1, spread.terms_freedom), 0.5 + level / 2))
    return np.asarray(t * np.sqrt(_shares(weights, len(scores.groups)) * spread.terms), np.float64)


def row_shifts(scores: Scores, weights: Floats) -> Floats:
    """The shift in each row [comparisons, rows], for counting rows that agree."""
    return np.asarray(weights @ scores.values(scores.groups).T, np.float64)


def neutral_swaps(
    scores: Scores, weights: Floats, what: str, seed: Sequence[int], splits: int = SPLITS
) -> Placebo:
    """Control terms put in place of the groups' at random: there is nothing to find.

    As many control rows as the groups have become the rows of groups without a meaning, the others
    stay controls; the test is that of the findings.
    """
    rows, groups, _ = scores.groups.shape
    able = [c for c in scores.controls if len(c) >= groups]
    size = min(rows, len(able) - 2)
    if size < 2 or not min(scores.words):
        return Placebo(what, 0, 0, "too few control terms to stand in for the groups' terms")
    rng = np.random.default_rng([*seed, 11])
    alarms = 0
    for _ in range(splits):
        order = rng.permutation(len(able))
        drawn = [rng.permutation(able[i])[:groups] for i in order[:size]]
        rest = tuple(able[i] for i in order[size:])
        found = shifts(replace(scores, groups=np.stack(drawn), controls=rest), weights)
        alarms += sum(e.p <= ALARM for e in found)
    return Placebo(what, splits * len(weights), alarms)


def typical(values: Sequence[float] | Floats, sign: float) -> int:
    """Place of the median among the values that agree with the sign.

    >>> typical([0.1, 0.4, -0.2, 0.3], 1.0)
    3
    """
    agree = [i for i, v in enumerate(values) if v * sign > 0]
    agree.sort(key=lambda i: abs(values[i]))
    return agree[len(agree) // 2] if agree else 0
