"""Association tests: effects that reach beyond the words at hand, and random attribute words.

A permutation of target words asks whether *these* targets differ on *these* attributes. Attribute
words were drawn as much as target words were, so the verdict is about both: the effect size with
the two-way variance of `stats.crossed`. Beside it stands the rank of the effect among random
attribute words, for which there is nothing to find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.compare.items import Items
from evenhand.compare.rows import Reported, Row, Test, claim
from evenhand.metrics.association import effect_size
from evenhand.probes.base import Placebo, Probe
from evenhand.probes.shared.reach import short_sets
from evenhand.requests import Embed
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import people
from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.estimate import NAN, Estimate, estimate
from evenhand.words.lexicons import WordSets, weat, weat_tests
from evenhand.words.lexicons.files import WORD_SET_LEXICONS

Floats = npt.NDArray[np.float64]

SETS = ("x", "y", "a", "b")
"""Targets x and y, attributes a and b."""
OVER = ("target words", "attribute words")
"""What the verdicts generalise over."""
METHOD = "t with the two-way variance of target words and attribute words"
DRAWS = 200
"""Random attribute sets of a test."""
ALARM = 0.05
UNFAVOURABLE = frozenset({"unpleasant", "hateful"})
"""What the attribute is called that it is worse to be near to."""
NUMBERS = ("value", "low", "high", "p", "error", "freedom", "detectable")
EFFECT_SIZE = MetricCard(
    "effect_size",
    "effect size d",
    "from −2 to 2; 0: no association",
    low=-2,
    high=2,
    difference="words for {first} lie nearer to the first attribute, and words for {second} to the "
    "second",
    margin=0.5,
    margin_why="half a standard deviation, a medium effect by Cohen's convention",
    told=": {size} standard deviations apart (0.8 is called large, 2 is the most)",
    scale="{size} standard deviations",
)


class WordTests(Probe):
    """Base of probes that put named association tests to a model that embeds."""

    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)
    table: ClassVar[str] = "tests"

    def word_sets(self) -> Sequence[WordSets]:
        """The tests that these settings name."""
        raise NotImplementedError

    def finding(self, row: Row) -> Finding:
        """Say what one test shows."""
        raise NotImplementedError

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        yield self.finding(row)

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Words are the sample, in every set; a permutation of few words is one all the same."""
        if self.as_published:
            return ()
        sizes = ((t.name, [len(getattr(t, key)) for key in SETS]) for t in self.word_sets())
        return short_sets(sizes, self.rate)

    def checks(self, items: Items, rows: Sequence[Row], seed: int) -> tuple[Placebo, ...]:
        """Random attribute words, of tests with words to draw them from and of the others."""
        out = []
        for what, mixed in (
            ("random attribute words", False),
            ("attribute words of both sets", True),
        ):
            part = [row for row in rows if math.isnan(row["percentile"]) is mixed]
            sums = [sum(row[name] for row in part) for name in ("n_random", "random_alarms")]
            out.append(Placebo(what, *sums))
        none = Placebo("random attribute words", 0, 0, "no test has a verdict over words")
        return tuple(p for p in out if p.tests) or (none,)

    def beside(self, items: Items, rows: Sequence[Row], seed: int) -> tuple[Any, Any, Any]:
        """The record counts the tests; their rows are in the table."""
        return {}, {"tests": len(rows)}, ()

    @classmethod
    def is_control(cls, finding: Finding) -> bool:
        """Flowers and insects, say: tests whose lexicon names no side as social.

        >>> WordTests.is_control(Finding("seat/sent-weat1", "seat", "effect_size", 1.2, ""))
        True
        >>> WordTests.is_control(Finding("ceat/weat7", "ceat", "combined_effect_size", 1.2, ""))
        False
        """
        return social_side(finding.id.rpartition("/")[2]) == "none" or super().is_control(finding)


def social_side(name: str) -> str:
    """Return which side of a packaged test holds social groups, or "unknown" of another test.

    >>> social_side("sent-weat7"), social_side("mine")
    ('attributes', 'unknown')
    """
    test = name.removeprefix("sent-")
    return weat(test).social if test in weat_tests() else "unknown"


def lexicons_of(tests: Iterable[str]) -> list[str]:
    """Return the lexicons that hold these tests.

    >>> lexicons_of(["weat6", "weat7"])
    ['weat']
    """
    wanted = set(tests)
    return [name for name in WORD_SET_LEXICONS if wanted & set(weat_tests(name))]


def words_of(tests: Iterable[WordSets]) -> list[str]:
    """Return the words of all sets of tests, each once."""
    return list(dict.fromkeys(w for test in tests for key in SETS for w in getattr(test, key)))


def word_test(test: WordSets, metric: str, effect: Callable[..., Estimate]) -> Test:
    """Declare one association test, with the labels of its sets in its row."""
    labels = {f"{key}_label": getattr(test, f"{key}_label") for key in SETS}
    return Test(test.name, metric, {"test": test.name, **labels}, effect, about=test)


def report(effect: Estimate, units: int, columns: Mapping[str, Any]) -> Reported:
    """Return an effect with the columns that rows of these tests share, and further ones.

    Args:
        units: words or texts behind it.
        columns: in their order; "reason" is taken from the effect.
    """
    shared = {name: getattr(effect, name) for name in NUMBERS}
    shared |= {"p_words": NAN, **vars(Random()), **columns, "reason": effect.reason or None}
    return Reported(**vars(replace(effect, units=units)), columns=shared)


def word_effect(
    x: Floats, y: Floats, a: Floats, b: Floats, *, size: float | None = None, **options: Any
) -> Estimate:
    """Return the effect size d of one test over sampled target and attribute words.

        theta = mean over x of s - mean over y of s,   s(w) = mean cos(w, a) - mean cos(w, b)
        d = theta / (sd of s over x and y)

    Error and interval of theta are divided by the same deviation, so p and interval agree; they
    may reach beyond 2, which d cannot.

    Args:
        x, y, a, b: unit vectors of the words (or means of those of a word's sentences).
        size: d where it is known to the last digit already.

    >>> rng = np.random.default_rng(0)
    >>> x, y, a, b = (rng.normal(side, 1, (8, 3)) for side in (1, -1, 1, -1))
    >>> effect = word_effect(x, y, a, b)
    >>> round(effect.value, 2), effect.p < 0.01, effect.low > 0, effect.units
    (1.65, True, True, 8)
    """
    theta, lean = mean_difference(x, y, a, b)
    if size is None:
        size = effect_size(lean[: len(x)], lean[len(x) :])
    return standardised(theta, size, float(lean.std()), len(x) / len(lean), **options)


def mean_difference(x: Floats, y: Floats, a: Floats, b: Floats) -> tuple[Estimate, Floats]:
    """Return theta with its two-way variance, and the association s of every target word."""
    cosines = np.concatenate([x, y]) @ np.concatenate([a, b]).T
    lean = cosines[:, : len(a)].mean(axis=1) - cosines[:, len(a) :].mean(axis=1)
    return crossed_contrasts(cosines[None], len(x), len(a))[0], lean


def standardised(
    theta: Estimate, size: float, spread: float, share: float, **options: Any
) -> Estimate:
    """Return the estimate of theta in standard deviations.

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
    effect = estimate(size, theta.error / spread, theta.freedom, units=theta.units, **options)
    mixed = share * (1 - share)
    within = math.sqrt(max(0.0, 1 - mixed * (theta.value / spread) ** 2))
    both = math.hypot(within, math.sqrt(mixed) * effect.detectable)
    return replace(effect, detectable=effect.detectable / both if both else 0.0)


@dataclass(frozen=True)
class Random:
    """An effect among those of random attribute words.

    Attributes:
        percentile: of 100 random sets, how many have a smaller effect size (without its sign);
            NaN where the test's own attribute words were mixed for want of others.
        n_random, random_alarms: random sets, and those with p <= 0.05.
    """

    percentile: float = NAN
    n_random: int = 0
    random_alarms: int = 0


def among_random(
    x: Floats,
    y: Floats,
    pool: Floats | Sequence[Floats],
    sets: tuple[Floats, Floats],
    size: float,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Random:
    """Rank an effect size among those of random attribute words, for the same targets.

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
    cosines = np.moveaxis((np.concatenate([x, y]) @ np.asarray(pool).T)[:, picked], 0, 1)
    alarms = sum(e.p <= ALARM for e in crossed_contrasts(cosines, n, sizes[0]))
    if mixed:
        return Random(NAN, draws, alarms)
    lean = cosines[..., : sizes[0]].mean(axis=2) - cosines[..., sizes[0] :].mean(axis=2)
    others = (lean[:, :n].mean(axis=1) - lean[:, n:].mean(axis=1)) / lean.std(axis=1)
    below = float(np.mean(np.abs(others) < abs(size)))
    return Random(100 * below, draws, alarms)


def word_finding(
    row: Row, probe: str, *, what: str = "words for", head: str = "", **facts: Any
) -> Finding:
    """Say what the row of one test shows.

    Args:
        row: of a test that `word_test` declared.
        what: what the targets are ("words for", "sentences about").
        head: stands before the sentences.
        facts: other fields of the finding.
    """
    x, y, a, b = labels = [row[f"{key}_label"] for key in SETS]
    by_people = row.test.about.social in ("targets", "unknown")
    texts = word_sentences(row.estimate, row["test"], what, labels, people_are_targets=by_people)
    for kind in ("sentence", "otherwise") if head else ():
        texts[kind] = texts[kind] and f"{head}: {texts[kind]}"
    by_default = {"groups": (x, y), "attribute": f"{a} / {b}", "details": row.but("reason")}
    return claim(row, probe, **texts, **(by_default | facts))


def word_sentences(
    effect: Estimate,
    test: str,
    what: str,
    labels: Sequence[str],
    *,
    people_are_targets: bool = True,
) -> dict[str, str]:
    """Return the sentences of a test: its claim, who is worse off or what differs, and what is said
    when nothing is detected.

    Somebody is worse off only where the targets are people and one attribute is worse to be near
    to: being near to family, to arts or to a gender is no harm by itself.

    Args:
        effect: without p there is no verdict, and no direction is spoken of.
        what: what the targets are ("words for", "sentences about").
        labels: of x, y, a and b.
        people_are_targets: whether x and y are social groups.

    >>> labels = ("men", "women", "career", "family")
    >>> word_sentences(Estimate(1.2, p=0.01), "weat6", "words for", labels)["sentence"]
    'Words for men lie nearer to career than to family, compared with words for women.'
    """
    x, y, a, b = labels
    both = f"Between {what} {x} and {what} {y}"
    if math.isnan(effect.value):
        return {"sentence": f"{test} could not be computed.", "otherwise": ""}
    if math.isnan(effect.p):
        unknown = f"{both} no verdict is possible on how near they lie to {a} and to {b}"
        return {"sentence": f"{unknown}: {effect.reason}.", "otherwise": ""}
    near, far = (b, a) if effect.value < 0 else (a, b)
    to_a, to_b = (y, x) if effect.value < 0 else (x, y)
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
