"""Effect sizes that reach beyond the words at hand, and what random attribute words would give.

A permutation of target words asks whether *these* targets differ on *these* attributes. Attribute
words were drawn as much as target words were, so the verdict is about both: the effect size with
the two-way variance of `stats.crossed`. Beside it stands the rank of the effect among random
attribute words, for which there is nothing to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.metrics.association import effect_size
from evenhand.probes.base import Placebo
from evenhand.runs.wording import people
from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]

OVER = ("target words", "attribute words")
"""What the verdicts generalise over."""
METHOD = "t with the two-way variance of target words and attribute words"
DRAWS = 200
"""Random attribute sets of a test."""
ALARM = 0.05
UNFAVOURABLE = frozenset({"unpleasant", "hateful"})
"""What the attribute is called that it is worse to be near to."""


def word_effect(
    x: Floats, y: Floats, a: Floats, b: Floats, *, size: float | None = None, **options: Any
) -> Estimate:
    """The effect size d of one test over sampled target and attribute words.

        theta = mean over x of s - mean over y of s,   s(w) = mean cos(w, a) - mean cos(w, b)
        d = theta / (sd of s over x and y)

    Error and interval of theta are divided by the same deviation, so p and interval agree; they
    may reach beyond 2, which d cannot.

    Args:
        x, y, a, b: unit vectors of the words (or means of those of a word's sentences).
        size: d where it is known to the last digit already.

    >>> rng = np.random.default_rng(0)
    >>> x, y, a, b = (rng.normal(side, 1, (8, 3)) for side in (1, -1, 1, -1))
    >>> found = word_effect(x, y, a, b)
    >>> round(found.value, 2), found.p < 0.01, found.low > 0, found.units
    (1.65, True, True, 8)
    """
    cosines = np.concatenate([x, y]) @ np.concatenate([a, b]).T
    lean = cosines[:, : len(a)].mean(axis=1) - cosines[:, len(a) :].mean(axis=1)
    found = crossed_contrasts(cosines[None], len(x), len(a))[0]
    if size is None:
        size = effect_size(lean[: len(x)], lean[len(x) :])
    return standardised(found, size, float(lean.std()), len(x) / len(lean), **options)


def standardised(
    theta: Estimate, size: float, spread: float, share: float, **options: Any
) -> Estimate:
    """The estimate of theta in standard deviations.

    A true theta adds share * (1 - share) * theta^2 to the variance of s over both sets of targets,
    so what is detectable in d is less than what is detectable in deviations within the sets.

    Args:
        theta: difference of the mean associations.
        spread: the deviation that theta is divided by.
        share: of the first set among all targets.
    """
    if math.isnan(size):
        return Estimate(size, units=theta.units, reason="all words have the same association")
    if theta.reason:
        why = "a set has one word: no interval" if theta.units < 2 else theta.reason
        return Estimate(size, units=theta.units, reason=why)
    if not theta.error:
        return replace(theta, value=size, low=size, high=size)
    found = estimate(size, theta.error / spread, theta.freedom, units=theta.units, **options)
    mixed = share * (1 - share)
    within = math.sqrt(max(0.0, 1 - mixed * (theta.value / spread) ** 2))
    both = math.hypot(within, math.sqrt(mixed) * found.detectable)
    return replace(found, detectable=found.detectable / both if both else 0.0)


@dataclass(frozen=True)
class Random:
    """An effect among those of random attribute words.

    Attributes:
        percentile: of 100 random sets, how many have a smaller effect size (without its sign);
            NaN where the test's own attribute words were mixed for want of others.
        n_random, random_alarms: random sets, and those with p <= 0.05.
    """

    percentile: float = math.nan
    n_random: int = 0
    random_alarms: int = 0


def among_random(
    x: Floats,
    y: Floats,
    pool: Floats,
    sets: tuple[Floats, Floats],
    size: float,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Random:
    """Where an effect size stands among those of random attribute words, for the same targets.

    Args:
        x, y: unit vectors of the target words.
        pool: those of words that are no part of the test. Where there are too few of them, half of
            one attribute set with half of the other meets the remaining halves.
        sets: unit vectors of the two attribute sets.
    """
    n, sizes = len(x), [len(part) for part in sets]
    needed = sum(sizes)
    if min(n, len(y), *sizes) < 2 or not draws or math.isnan(size):
        return Random()
    rng = np.random.default_rng(seed)
    mixed = len(pool) < 2 * needed
    if mixed:
        pool, half = np.concatenate(sets), [k // 2 for k in sizes]
        orders = [[rng.permutation(k) for k in sizes] for _ in range(draws)]
        picked = np.stack(
            [
                np.concatenate(
                    [
                        a[: half[0]],
                        sizes[0] + b[: half[1]],
                        a[half[0] : 2 * half[0]],
                        sizes[0] + b[half[1] : 2 * half[1]],
                    ]
                )
                for a, b in orders
            ]
        )
        sizes = [sum(half)] * 2
    else:
        picked = np.stack([rng.permutation(len(pool))[:needed] for _ in range(draws)])
    cosines = np.moveaxis((np.concatenate([x, y]) @ pool.T)[:, picked], 0, 1)
    found = crossed_contrasts(cosines, n, sizes[0])
    alarms = sum(e.p <= ALARM for e in found)
    if mixed:
        return Random(math.nan, draws, alarms)
    lean = cosines[..., : sizes[0]].mean(axis=2) - cosines[..., sizes[0] :].mean(axis=2)
    made = (lean[:, :n].mean(axis=1) - lean[:, n:].mean(axis=1)) / lean.std(axis=1)
    below = float(np.mean(np.abs(made) < abs(size)))
    return Random(100 * below, draws, alarms)


class Placed(Protocol):
    """A measured test that was set among random attribute words."""

    @property
    def percentile(self) -> float: ...

    @property
    def n_random(self) -> int: ...

    @property
    def random_alarms(self) -> int: ...


def placebos(rows: Sequence[Placed]) -> tuple[Placebo, ...]:
    """The random attribute words of all tests as placebos of a run."""
    out = []
    for what, mixed in (("random attribute words", False), ("attribute words of both sets", True)):
        kept = [r for r in rows if math.isnan(r.percentile) is mixed]
        tests, alarms = sum(r.n_random for r in kept), sum(r.random_alarms for r in kept)
        if tests:
            out.append(Placebo(what, tests, alarms))
    none = Placebo("random attribute words", 0, 0, "no test has a verdict over words")
    return tuple(out) or (none,)


def said(
    found: Estimate, test: str, what: str, labels: Sequence[str], *, people_are_targets: bool = True
) -> dict[str, str]:
    """Return the sentences of a test: its claim, who is worse off or what differs, and what is said
    when nothing is detected.

    Somebody is worse off only where the targets are people and one attribute is worse to be near
    to: being near to family, to arts or to a gender is no harm by itself.

    Args:
        found: the effect; without p there is no verdict, and no direction is spoken of.
        what: what the targets are ("words for", "sentences about").
        labels: of x, y, a and b.
        people_are_targets: whether x and y are social groups.

    >>> labels = ("men", "women", "career", "family")
    >>> said(Estimate(1.2, p=0.01), "weat6", "words for", labels)["sentence"]
    'Words for men lie nearer to career than to family, compared with words for women.'
    """
    x, y, a, b = labels
    both = f"Between {what} {x} and {what} {y}"
    if math.isnan(found.value):
        return {"sentence": f"{test} could not be computed.", "otherwise": ""}
    if math.isnan(found.p):
        unknown = f"{both} no verdict is possible on how near they lie to {a} and to {b}"
        return {"sentence": f"{unknown}: {found.reason}.", "otherwise": ""}
    near, far = (b, a) if found.value < 0 else (a, b)
    to_a, to_b = (y, x) if found.value < 0 else (x, y)
    bad = next((label for label in (a, b) if label.lower() in UNFAVOURABLE), "")
    harm = ""
    if bad and people_are_targets:
        worse, better = (to_a, to_b) if bad == a else (to_b, to_a)
        harm = f"{people(worse)}: placed nearer to {bad} words than {people(better)}"
    return {
        "harm": harm,
        "difference": f"{what} {to_a} lie nearer to {a}, and {what} {to_b} to {b}",
        "sentence": f"{what.capitalize()} {x} lie nearer to {near} than to {far}, compared with "
        f"{what} {y}.",
        "otherwise": f"{both} no difference was detected in how near they lie to {a} and to {b}.",
    }
