"""CEAT: associations of words in context, combined over contexts (Guo and Caliskan 2021).

A word has as many vectors as contexts. Each draw takes one context per word and gives one effect
size; the draws are combined by random-effects meta-analysis (`metrics.meta`).

Deviates: the vector is that of the context window (mean of its token vectors), not of the word's
own pieces inside it, which keeps the probe to requests that every encoder answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.charts.builders import NEARER, Ranked, sets_of
from evenhand.compare.items import Items
from evenhand.compare.rows import Reported, Row, Test, claim, judge
from evenhand.corpora.tables import find_data, read_table
from evenhand.errors import DataError
from evenhand.metrics.association import effect_size, unit_rows
from evenhand.metrics.meta import Combined, effect_variance, random_effects
from evenhand.opening import lines
from evenhand.probes.association.score import choose_tests
from evenhand.probes.base import Measured, Way
from evenhand.probes.reading import Claims, Columns, Input, Reader, Result
from evenhand.probes.shared.word_tests import (
    EFFECT_SIZE,
    METHOD,
    OVER,
    SETS,
    Floats,
    WordTests,
    among_random,
    lexicons_of,
    mean_difference,
    report,
    word_finding,
    word_test,
    words_of,
)
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import NAN, Estimate, estimate
from evenhand.stats.permutation import two_sample
from evenhand.stats.power import detectable_effect
from evenhand.words.lexicons import WordSets

METRIC = "combined_effect_size"
CARDS = (
    replace(
        EFFECT_SIZE,
        metric=METRIC,
        name="combined effect size",
        reads="0: no association",
        low=-math.inf,
        high=math.inf,
    ),
)
CHARTS = {
    "tests": Ranked("Word associations over contexts", "combined effect size", NEARER, sets_of),
}


class Ceat(WordTests):
    """Do words of a group, in their contexts, lie nearer to one attribute than to another?

    Args:
        data: a text corpus, one passage per line, in which the words are looked up.
        tests: packaged tests such as weat6, or a JSON or TOML file of word lists.
        window: words kept to each side (the paper: 9).
        contexts: at most this many contexts per word.
        draws: effect sizes combined.
    """

    name: ClassVar[str] = "ceat"
    title: ClassVar[str] = "Do a group's words, in context, lie nearer to one attribute?"
    paper: ClassVar[str] = "Guo and Caliskan 2021 (CEAT)"
    detects: ClassVar[str] = "contexts in which groups' words lie nearer to one attribute"
    bound: ClassVar[str] = "the occurrences drawn of each word of its tests"
    cards: ClassVar = CARDS
    hidden: ClassVar[tuple[str, ...]] = ("words_missing",)

    data: str = ""
    tests: tuple[str, ...] = ("weat6", "weat7", "weat8")
    window: int = Field(9, ge=0)
    contexts: int = Field(50, ge=1)
    draws: int = Field(1_000, ge=10)
    max_missing: float = Field(0.2, ge=0, le=1)

    def word_sets(self) -> list[WordSets]:
        return choose_tests(self.tests[0] if len(self.tests) == 1 else self.tests)

    def contexts_of(self, tests: Sequence[WordSets]) -> dict[str, list[str]]:
        """Look up the words of tests in the corpus."""
        corpus = read_lines(find_data(self.data, "CEAT (a text corpus, one passage per line)"))
        words = words_of(tests)
        contexts = find_contexts(words, corpus, window=self.window, most=self.contexts)
        if not any(contexts.values()):
            raise DataError(
                f"{self.data}: none of the {len(words)} words occurs in the text. Case counts; "
                "give a larger corpus with: --data FILE"
            )
        return contexts

    def lexicons(self) -> list[str]:
        return lexicons_of(self.tests)

    def gather(self, way: Way) -> Items:
        tests = self.word_sets()
        look_up = cache(partial(self.contexts_of, tests))  # limits need no corpus
        return Items({"test": [t.name for t in tests]}, about=(tests, look_up))

    def ask(self, items: Items, way: Way) -> Embed:
        _, look_up = items.about
        return Embed(_texts(look_up()))

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        tests, look_up = items.about
        contexts = look_up()
        texts = _texts(contexts)
        known = dict(zip(texts, answers.matrix("vector")))
        vectors = {
            word: [known[t] for t in rows if np.isfinite(known[t]).all()]
            for word, rows in contexts.items()
        }
        absent = sorted(word for word, rows in contexts.items() if not rows)
        columns = {
            "word": [word for word, rows in contexts.items() for _ in rows],
            "context": [text for rows in contexts.values() for text in rows],
        }
        facts = {"contexts": len(texts), "words_without_context": absent}
        return Items(columns, about=(tests, vectors), facts=facts)

    def declare(self, items: Items) -> Iterator[Test]:
        tests, vectors = items.about
        options = {name: getattr(self, name) for name in ("max_missing", "draws", "as_published")}
        for test in tests:
            score = partial(score_test, test, vectors, **options, seed=items.seed)
            yield word_test(test, METRIC, score)

    def finding(self, row: Row) -> Finding:
        published = self.as_published
        return word_finding(
            row,
            self.name,
            head=f"{row['test']} in context",
            units="words",
            over=() if published else OVER,
            method="random effects over draws" + ("" if published else f"; {METHOD}"),
            as_published=published,
            control=row.test.about.social == "none",
        )


def _texts(contexts: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for rows in contexts.values() for text in rows))


def find_contexts(
    words: Sequence[str], corpus: Sequence[str], *, window: int = 9, most: int = 50, seed: int = 0
) -> dict[str, list[str]]:
    """Find up to `most` contexts of every word: the word with at most `window` words to each side.

    Case counts ("Will" is a name, "will" is not); words without a context map to no contexts.

    >>> find_contexts(["art"], ["He said that art is long."], window=2)
    {'art': ['said that art is long.']}
    """
    single = {w: w.split() for w in words}
    first: dict[str, list[str]] = {}
    for word, parts in single.items():
        first.setdefault(parts[0], []).append(word)
    contexts: dict[str, list[str]] = {w: [] for w in words}
    for line in corpus:
        tokens = line.split()
        bare = [re.sub(r"^\W+|\W+$", "", t) for t in tokens]
        for at, token in enumerate(bare):
            for word in first.get(token, ()):
                size = len(single[word])
                if bare[at : at + size] == single[word]:
                    part = tokens[max(0, at - window) : at + size + window]
                    contexts[word].append(" ".join(part))
    rng = np.random.default_rng(seed)
    return {
        word: [texts[i] for i in np.sort(rng.permutation(len(texts))[:most])]
        for word, texts in ((w, list(dict.fromkeys(t))) for w, t in contexts.items())
    }


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a text corpus that hold something (packed files are unpacked)."""
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
) -> Reported:
    """Estimate the combined effect size of one test; positive: x leans to a; ideal 0.

    Its error is that of the difference of the words' mean associations over target and attribute
    words like these, in the deviations of the draws; p, interval and detectable effect follow
    from it, however many contexts are drawn. As published, they come from the meta-analysis, which
    takes draws for independent studies and makes p as small as one has patience to draw.

    Args:
        vectors: word -> its vectors, one per context; those of other words are random attributes.
    """
    known = {k: [w for w in getattr(test, k) if len(vectors.get(w, ()))] for k in SETS}
    missing = [w for k in SETS for w in getattr(test, k) if not len(vectors.get(w, ()))]
    n = sum(map(len, known.values()))
    columns: dict[str, Any] = {"tau2": NAN, "n": n, "n_missing": len(missing), "reason": None}
    columns |= {"words_missing": missing, "draws": draws}
    for key in SETS:
        listed = len(getattr(test, key))
        if len(known[key]) < 2 or listed - len(known[key]) > max_missing * listed + 1e-9:
            reason = (
                f"set {key}: {listed - len(known[key])} of {listed} words occur in no context; "
                "give a larger corpus, or raise max_missing"
            )
            return report(Estimate(NAN, reason=reason), n, columns)
    units = {k: [unit_rows(np.stack(list(vectors[w]))) for w in known[k]] for k in SETS}
    drawn = drawn_contexts(units, draws, np.random.default_rng(seed))
    if drawn is None:
        reason = "all words have the same association in every draw"
        return report(Estimate(NAN, reason=reason), n, columns)
    combined = drawn.combined()
    size, columns["tau2"] = combined.effect, combined.tau2
    if as_published:
        room = 1.96 * combined.error
        seen = detectable_effect(combined.error, rate / max(1, family))
        effect = Estimate(size, low=size - room, high=size + room, p=combined.p, detectable=seen)
        return report(effect, n, columns)
    x, y, a, b = (np.stack([v.mean(axis=0) for v in units[k]]) for k in SETS)
    theta, lean = mean_difference(x, y, a, b)
    effect = _in_sizes(theta, size, drawn, family=family, rate=rate)
    s_x, s_y = lean[: len(x)], lean[len(x) :]
    chance = two_sample(s_x, s_y, seed=seed, statistic="mean-difference")
    used = {w for k in SETS for w in getattr(test, k)}
    others = [
        unit_rows(np.stack(list(v))).mean(axis=0)
        for w, v in vectors.items()
        if w not in used and len(v)
    ]
    placed = among_random(x, y, others, (a, b), effect_size(s_x, s_y), seed=seed)
    return report(effect, n, {"p_words": chance.p_two_sided, **vars(placed), **columns})


def _in_sizes(theta: Estimate, size: float, drawn: Drawn, **options: Any) -> Estimate:
    """Return the estimate of theta in combined effect sizes.

    What is detectable is what the same draws would combine to, were the sets as far apart as is
    detectable of theta.
    """
    if theta.reason:
        return replace(theta, value=size)
    if not theta.error:
        return replace(theta, value=size, low=size, high=size)
    scale = drawn.scale(theta.value)
    error = math.hypot(theta.error * scale, math.sqrt(drawn.left_open()))
    effect = estimate(size, error, theta.freedom, units=theta.units, **options)
    far = effect.detectable / scale
    ends = [drawn.combined(way * far - theta.value).effect for way in (1, -1)]
    return replace(effect, detectable=(ends[0] - ends[1]) / 2)


@dataclass(frozen=True)
class CeatResult(Result):
    """One combined effect size per test."""

    measure: ClassVar[str] = "ceat"
    tables: ClassVar = (
        Columns(
            "CEAT",
            "tests",
            (
                *("test", "ces", "standard_error", "p", "low", "high"),
                *("q_between", "tau2", "n", "n_missing", "reason"),
            ),
        ),
    )

    tests: Sequence[Row]

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract, which has no q: draws give no verdict."""
        return {"measure": self.measure, "tests": [row.but("q") for row in self.tests]}


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
        draws = {name: np.asarray([n == name for n in names]) for name in sorted(set(names))}
        rows = judge(
            Test(
                name,
                METRIC,
                {"test": name},
                partial(_combine, effects[at], variances[at]),
                tested=False,
            )
            for name, at in draws.items()
        )
        items = pa.table({"test": names, "effect_size": effects, "variance": variances})
        return CeatResult(rows).telling(lambda: self._claims(rows, items, table.source))

    def _claims(self, rows: Sequence[Row], items: pa.Table, source: str) -> Claims:
        """Sizes without a verdict: draws share their words, so many draws are no evidence."""
        findings = [
            claim(
                row,
                "ceat",
                sentence=_sentence(row),
                units="draws",
                attribute=row["test"],
                as_published=True,
                method="random effects over draws",
                details={"p_of_draws": row["p"]},
            )
            for row in rows
        ]
        probe = Ceat.model_validate({"as_published": True})
        measured = Measured(findings, items, {}, {"tests": len(rows)})
        lost = sum(row.missing for row in rows)
        return Claims.of(probe, self, source, measured, without_a_number=lost)


def _combine(effects: Floats, variances: Floats, **how: Any) -> Reported:
    """Combine the draws of one test by random effects."""
    known = np.isfinite(effects) & np.isfinite(variances)
    size = random_effects(effects[known], variances[known])
    room = 1.96 * size.error
    low, high = size.effect - room, size.effect + room
    reason = "" if size.n else "no effect size is a number"
    columns = {
        "ces": size.effect,
        "standard_error": size.error,
        "p": size.p,
        "low": low,
        "high": high,
        "q_between": size.q,
        "tau2": size.tau2,
        "n": size.n,
        "n_missing": len(effects) - size.n,
        "reason": reason or None,
    }
    return Reported(
        size.effect, size.error, low=low, high=high, units=size.n, reason=reason, columns=columns
    )


def _sentence(row: Row) -> str:
    if math.isnan(row.value):
        return f"{row['test']} in context: the lean of the first targets over draws."
    return (
        f"{row['test']} in context: over {row.n} draws the first targets lean "
        f"{'to' if row.value > 0 else 'away from'} the first attribute by {abs(row.value):.2f} "
        f"standard deviations; whether other words would, draws cannot tell."
    )


READERS = (CeatReader,)
