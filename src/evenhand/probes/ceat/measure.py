"""CEAT: associations of words in context, combined over contexts (Guo and Caliskan 2021).

A word has as many vectors as contexts. Each draw takes one context per word and gives one effect
size; the draws are combined by random-effects meta-analysis (`metrics.meta`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.corpora.tables import read_table
from evenhand.metrics.association import effect_size, unit_rows
from evenhand.metrics.meta import Combined, effect_variance, random_effects
from evenhand.opening import lines
from evenhand.probes.base import Measured
from evenhand.probes.reading import Claims, Input, Reader, Result, Shown, listed
from evenhand.probes.shared.word_effects import among_random
from evenhand.probes.shared.word_tests import SetsRow
from evenhand.runs.finding import Finding
from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.estimate import Estimate, estimate
from evenhand.stats.permutation import two_sample
from evenhand.stats.power import detectable_effect
from evenhand.words.lexicons import WordSets

Floats = npt.NDArray[np.float64]
SETS = ("x", "y", "a", "b")


def find_contexts(
    words: Sequence[str], lines: Sequence[str], *, window: int = 9, most: int = 50, seed: int = 0
) -> dict[str, list[str]]:
    """Up to `most` contexts of every word: the word with at most `window` words to each side.

    Case counts ("Will" is a name, "will" is not); words without a context map to no contexts.

    >>> find_contexts(["art"], ["He said that art is long."], window=2)
    {'art': ['said that art is long.']}
    """
    single = {w: w.split() for w in words}
    first: dict[str, list[str]] = {}
    for word, parts in single.items():
        first.setdefault(parts[0], []).append(word)
    found: dict[str, list[str]] = {w: [] for w in words}
    for line in lines:
        tokens = line.split()
        bare = [re.sub(r"^\W+|\W+$", "", t) for t in tokens]
        for at, token in enumerate(bare):
            for word in first.get(token, ()):
                size = len(single[word])
                if bare[at : at + size] == single[word]:
                    kept = tokens[max(0, at - window) : at + size + window]
                    found[word].append(" ".join(kept))
    rng = np.random.default_rng(seed)
    return {
        word: [texts[i] for i in np.sort(rng.permutation(len(texts))[:most])]
        for word, texts in ((w, list(dict.fromkeys(t))) for w, t in found.items())
    }


def read_lines(path: str | Path) -> list[str]:
    """Lines of a text corpus that hold something (packed files are unpacked)."""
    return [line.strip() for line in lines(path, "a text corpus") if line.strip()]


@dataclass(frozen=True)
class Drawn:
    """Draws of contexts: how far apart the targets' mean associations lay in each, and the variance
    of the associations within the sets, both as in the effect size (ddof 1)."""

    apart: Floats
    within: Floats
    n_x: int
    n_y: int

    def sizes(self, shift: float = 0.0) -> Floats:
        """The effect size of each draw, had the sets lain further apart by `shift`."""
        n, apart = self.n_x + self.n_y, self.apart + shift
        between = self.n_x * self.n_y / (n * (n - 1))
        return np.asarray(apart / np.sqrt(self.within + between * apart**2), np.float64)

    def combined(self, shift: float = 0.0) -> Combined:
        """These sizes combined."""
        sizes = self.sizes(shift)
        return random_effects(sizes, effect_variance(sizes, self.n_x, self.n_y))

    def scale(self, theta: float) -> float:
        """What a unit of theta, the difference of the sets, is in combined effect sizes.

        The effect size of a draw grows less than its difference does (both sets' spread is in the
        denominator), so a mean over draws is less than theta over a mean spread. Taken from the
        combined sizes at theta and at -theta, which are known however near to 0 theta is.
        """
        far = max(abs(theta), 1e-3 * float(np.sqrt(self.within.mean())))
        ends = [self.combined(way * far - theta).effect for way in (1, -1)]
        return (ends[0] - ends[1]) / (2 * far)

    def left_open(self) -> float:
        """The variance that so many draws leave in the combined size of all contexts."""
        sizes = self.sizes()
        return float(sizes.var(ddof=1) / len(sizes)) if len(sizes) > 1 else 0.0


def drawn_contexts(
    units: Mapping[str, Sequence[Floats]], draws: int, rng: np.random.Generator
) -> Drawn | None:
    """Draw one context per word, `draws` times; None when no draw has an effect size."""
    apart, within = [], []
    n_x, n_y = len(units["x"]), len(units["y"])
    for _ in range(draws):
        rows = {
            key: np.stack([v[rng.integers(len(v))] for v in words]) for key, words in units.items()
        }
        direction = rows["a"].mean(axis=0) - rows["b"].mean(axis=0)
        s_x, s_y = rows["x"] @ direction, rows["y"] @ direction
        if math.isfinite(effect_size(s_x, s_y, ddof=1)):
            apart.append(float(s_x.mean() - s_y.mean()))
            squares = ((s_x - s_x.mean()) ** 2).sum() + ((s_y - s_y.mean()) ** 2).sum()
            within.append(float(squares / (n_x + n_y - 1)))
    return Drawn(np.asarray(apart), np.asarray(within), n_x, n_y) if apart else None


@dataclass(frozen=True, kw_only=True)
class CeatRow(SetsRow):
    """One test, combined over draws of contexts."""

    tau2: float = math.nan
    n: int
    n_missing: int
    reason: str | None = None
    words_missing: Sequence[str]
    draws: int
    q: float = math.nan


def score_test(
    test: WordSets,
    vectors: Mapping[str, Sequence[Floats]],
    *,
    max_missing: float = 0.2,
    draws: int = 1_000,
    as_published: bool = False,
    seed: int = 0,
    family: int = 1,
    rate: float = 0.05,
) -> CeatRow:
    """Combined effect size of one test; positive: x leans to a; ideal 0.

    Its error is that of the difference of the words' mean associations over target and attribute
    words like these, in the deviations of the draws; p, interval and detectable effect follow
    from it, however many contexts are drawn. As published, they come from the meta-analysis, which
    takes draws for independent studies and makes p as small as one has patience to draw.

    Args:
        vectors: word -> its vectors, one per context; those of other words are random attributes.
    """
    known = {k: [w for w in getattr(test, k) if len(vectors.get(w, ()))] for k in SETS}
    missing = [w for k in SETS for w in getattr(test, k) if not len(vectors.get(w, ()))]
    row = CeatRow(
        test=test.name,
        **{f"{key}_label": getattr(test, f"{key}_label") for key in SETS},
        n=sum(map(len, known.values())),
        n_missing=len(missing),
        words_missing=missing,
        draws=draws,
    )
    for key in SETS:
        listed = len(getattr(test, key))
        if len(known[key]) < 2 or listed - len(known[key]) > max_missing * listed + 1e-9:
            reason = (
                f"set {key}: {listed - len(known[key])} of {listed} words occur in no context; "
                "give a larger corpus, or raise max_missing"
            )
            return replace(row, reason=reason)
    units = {k: [unit_rows(np.stack(list(vectors[w]))) for w in known[k]] for k in SETS}
    rng = np.random.default_rng(seed)
    found = drawn_contexts(units, draws, rng)
    if found is None:
        return replace(row, reason="all words have the same association in every draw")
    made = found.combined()
    size, published = made.effect, made.error
    row = replace(row, value=size, tau2=made.tau2)
    if as_published:
        room = 1.96 * published
        return replace(
            row,
            low=size - room,
            high=size + room,
            p=made.p,
            detectable=detectable_effect(published, rate / max(1, family)),
        )
    x, y, a, b = (np.stack([v.mean(axis=0) for v in units[k]]) for k in SETS)
    cosines = np.concatenate([x, y]) @ np.concatenate([a, b]).T
    theta = crossed_contrasts(cosines[None], len(x), len(a))[0]
    effect = _in_sizes(theta, size, found, family=family, rate=rate)
    lean = cosines[:, : len(a)].mean(axis=1) - cosines[:, len(a) :].mean(axis=1)
    chance = two_sample(lean[: len(x)], lean[len(x) :], seed=seed, statistic="mean-difference")
    used = {w for k in SETS for w in getattr(test, k)}
    other = [
        unit_rows(np.stack(list(v))).mean(axis=0)
        for w, v in vectors.items()
        if w not in used and len(v)
    ]
    mean_size = effect_size(lean[: len(x)], lean[len(x) :])
    around = np.stack(other) if other else x[:0]
    placed = among_random(x, y, around, (a, b), mean_size, seed=seed)
    return replace(
        row,
        low=effect.low,
        high=effect.high,
        p=effect.p,
        error=effect.error,
        freedom=effect.freedom,
        detectable=effect.detectable,
        p_words=chance.p_two_sided,
        **vars(placed),
    )


def _in_sizes(theta: Estimate, size: float, found: Drawn, **options: Any) -> Estimate:
    """The estimate of theta in combined effect sizes.

    What is detectable is what the same draws would combine to, were the sets as far apart as is
    detectable of theta.
    """
    if theta.reason or not theta.error:
        return replace(theta, value=size, low=size, high=size) if not theta.reason else theta
    scale = found.scale(theta.value)
    error = math.hypot(theta.error * scale, math.sqrt(found.left_open()))
    made = estimate(size, error, theta.freedom, units=theta.units, **options)
    far = made.detectable / scale
    ends = [found.combined(way * far - theta.value).effect for way in (1, -1)]
    return replace(made, detectable=(ends[0] - ends[1]) / 2)


@dataclass(frozen=True)
class CombinedEffect:
    """Effect sizes of one test, combined by random effects."""

    test: str
    ces: float
    standard_error: float
    p: float
    low: float
    high: float
    q_between: float
    tau2: float
    n: int
    n_missing: int
    reason: str | None


@dataclass(frozen=True)
class CeatResult(Result):
    """One combined effect size per test."""

    measure: ClassVar[str] = "ceat"

    tests: Sequence[CombinedEffect]

    def shown(self) -> Iterator[Shown]:
        yield listed("CEAT", self.tests, [f.name for f in fields(CombinedEffect)])


class CeatReader(Reader):
    name = "ceat"
    help = """CEAT: combine effect sizes by random effects.

    One row per draw: effect_size, variance; optional test.
    """
    positional = ("table",)

    table: Input

    def read(self) -> CeatResult:
        table = read_table(self.table, text=("test",), needed=("effect_size", "variance"))
        names = table.texts("test", "all")
        effects, variances = table.numbers("effect_size"), table.numbers("variance")
        rows = []
        for name in sorted(set(names)):
            keep = np.asarray([n == name for n in names]) & np.isfinite(effects)
            keep &= np.isfinite(variances)
            found = random_effects(effects[keep], variances[keep])
            room = 1.96 * found.error
            rows.append(
                CombinedEffect(
                    name,
                    found.effect,
                    found.error,
                    found.p,
                    found.effect - room,
                    found.effect + room,
                    found.q,
                    found.tau2,
                    found.n,
                    names.count(name) - found.n,
                    None if found.n else "no effect size is a number",
                )
            )
        items = pa.table({"test": names, "effect_size": effects, "variance": variances})
        return CeatResult(rows).telling(lambda: self._claims(rows, items, table.source))

    def _claims(self, rows: Sequence[CombinedEffect], items: pa.Table, source: str) -> Claims:
        """Sizes without a verdict: draws share their words, so many draws are no evidence."""
        from evenhand.probes.ceat.probe import Ceat

        findings = [
            Finding(
                f"ceat/{row.test}",
                "ceat",
                "combined_effect_size",
                row.ces,
                low=row.low,
                high=row.high,
                n=row.n,
                error=row.standard_error,
                details={"p_of_draws": row.p},
                sentence=_said(row),
                units="draws",
                attribute=row.test,
                as_published=True,
                reason=row.reason or "",
                method="random effects over draws",
                coverage=row.n / (row.n + row.n_missing),
            )
            for row in rows
        ]
        lost = sum(row.n_missing for row in rows)
        probe = Ceat.model_validate({"as_published": True})
        found = Measured(findings, items, {}, {"tests": len(rows)})
        return Claims.of(probe, self, source, found, without_a_number=lost)


def _said(row: CombinedEffect) -> str:
    if math.isnan(row.ces):
        return f"{row.test} in context: the lean of the first targets over draws."
    return (
        f"{row.test} in context: over {row.n} draws the first targets lean "
        f"{'to' if row.ces > 0 else 'away from'} the first attribute by {abs(row.ces):.2f} "
        f"standard deviations; whether other words would, draws cannot tell."
    )


READERS = (CeatReader,)
