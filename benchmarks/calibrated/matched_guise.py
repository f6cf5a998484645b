"""Matched guises: texts, features and questions move answers, guises do so on average not."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.probes.matched_guise.probe import ALL, Kind, MatchedGuise, Material
from evenhand.probes.matched_guise.published import ratio_tests

COVERS = ("evenhand.probes.matched_guise.probe", "evenhand.probes.matched_guise.published")


def compared(
    gap: np.ndarray, texts: list[str], features: list[str], kinds: list[str], questions: list[str],
    single: bool,
) -> list[Row]:  # fmt: skip
    """The rows of answers with these gaps: kinds of question, and single ones if they are meant."""
    names = (Kind(kind, "", "", single, ()) for kind in sorted(set(kinds)))
    items = Items(
        {
            "unit": texts,
            "feature": features,
            "kind": kinds,
            "question": questions,
            "worse_dialect": 0.5 + gap,
            "worse_standard": np.full(len(gap), 0.5),
        },
        about=Material(("", ""), "", (), tuple(names)),
    )
    return judge(MatchedGuise().declare(items))


def answered(
    rng: np.random.Generator, means: np.ndarray, features: int, texts: int, questions: int
) -> list[Row]:
    """Kinds with these mean gaps; features differ, texts of one more or less, questions too."""
    shape = (features, texts, len(means), questions)
    gap = means[:, None] + rng.normal(0, 0.03, (len(means), questions))
    if features > 1:  # one feature is no sample of features: the claim is about it
        gap = gap + rng.normal(0, 0.03, (features, 1, len(means), 1))
    gap = gap + rng.normal(0, 0.05, (features, texts, len(means), 1))
    gap = gap + rng.normal(0, 0.08, shape)
    at = np.indices(shape).reshape(4, -1)
    return compared(
        gap.ravel(),
        [f"{f} {t}" for f, t in zip(at[0], at[1])],
        [str(f) for f in at[0]],
        [str(k) for k in at[2]],
        [f"q{q}" for q in at[3]],
        single=False,
    )


def kinds(features: int, texts: int, questions: int) -> Path:
    """Three kinds of question; one of them leans."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        means = np.asarray([effect, 0.0, 0.0])
        rows = answered(rng, means, features, texts, questions)
        assert all(row["question"] == ALL for row in rows)
        return outcome([row.estimate for row in rows], means, np.asarray([row.q for row in rows]))

    several = f"{features} features of {texts} texts" if features > 1 else f"{texts} texts"
    return Path(f"matched-guise, kinds of {questions} questions, {several}", draw)


def single(features: int, texts: int) -> Path:
    """Single questions of one kind, which do not differ; one does."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        n = 12
        gap = rng.normal(0, 0.03, (features, 1, n)) + rng.normal(0, 0.08, (features, texts, n))
        gap[..., 0] += effect
        at = np.indices(gap.shape).reshape(3, -1)
        rows = compared(
            gap.ravel(),
            [f"{f} {t}" for f, t in zip(at[0], at[1])],
            [str(f) for f in at[0]],
            ["k"] * gap.size,
            [f"q{q:02d}" for q in at[2]],
            single=True,
        )
        truth = np.asarray([np.nan] + [effect] + [0.0] * (n - 1))
        q = np.asarray([row.q for row in rows])
        return outcome([row.estimate for row in rows], truth, q, planted=1)

    return Path(f"matched-guise, 12 single questions, {features} features of {texts} texts", draw)


def ratios(words: int, texts: int) -> Path:
    """Log ratios of words after three prompts: texts and prompts move all words, none on average;
    one word is likelier after the dialect."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        log10 = rng.normal(0, 0.2, (words, texts, 1)) + rng.normal(0, 0.1, (words, texts, 3))
        log10[0] += effect
        at = np.indices(log10.shape).reshape(3, -1)
        names, units = [f"w{w:02d}" for w in at[0]], [str(t) for t in at[1]]
        rows = judge(ratio_tests(log10.ravel(), names, units))
        rows.sort(key=lambda row: str(row["word"]))
        truth = np.asarray([effect] + [0.0] * (words - 1))
        return outcome([row.estimate for row in rows], truth, np.asarray([row.q for row in rows]))

    return Path(f"matched-guise, ratios of {words} words, {texts} texts", draw)


PATHS = [kinds(8, 4, 12), kinds(1, 40, 8), single(8, 4), ratios(20, 40)]
