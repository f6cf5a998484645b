"""The variance of a shift against oracles, and the words and terms behind it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.probes.divergence import shifts
from evenhand.probes.divergence.probe import Divergence
from evenhand.stats.mixed import Design, Factor
from evenhand.words.lexicons import gender_terms
from evenhand.words.lexicons.files import load

PAIR = shifts.comparisons(2)[0]


def by_word(values: np.ndarray, words: int) -> np.ndarray:
    """Scores whose first side stands `values` above the second, alike for all words."""
    sign = np.repeat([0.5, -0.5], [words // 2, words - words // 2])
    return np.asarray(values[..., None] * sign)


def test_without_controls_and_word_effects_it_is_the_paired_t_test() -> None:
    z = np.random.default_rng(0).normal(size=(7, 2))
    found = shifts.shift(shifts.Scores(by_word(z, 6), (), 3), PAIR)
    right = stats.ttest_rel(z[:, 0], z[:, 1])
    assert found.value == pytest.approx((z[:, 0] - z[:, 1]).mean())
    assert found.p == pytest.approx(right.pvalue)
    assert found.freedom == 6
    assert (found.low, found.high) == pytest.approx(tuple(right.confidence_interval()))


def test_controls_in_rows_of_two_join_the_spread_of_terms() -> None:
    rng = np.random.default_rng(1)
    z, neutral = rng.normal(size=(5, 2)), rng.normal(size=(9, 2))
    scores = shifts.Scores(by_word(z, 4), tuple(by_word(r, 4) for r in neutral), 2)
    found = shifts.shift(scores, PAIR)
    own, other = z[:, 0] - z[:, 1], neutral[:, 0] - neutral[:, 1]
    pooled = (((own - own.mean()) ** 2).sum() + (other**2).sum()) / (4 + 9)
    assert found.error == pytest.approx(np.sqrt(pooled / 5))
    squares = [((own - own.mean()) ** 2).sum() / 2, *(other**2 / 2)]
    uneven = sum(s**2 / (f + 2) for s, f in zip(squares, [4] + [1] * 9))
    assert found.freedom == pytest.approx(min(13, sum(squares) ** 2 / uneven))


def test_a_crossed_table_is_the_two_way_analysis_of_variance() -> None:
    """Without controls: rows by words of the difference between two groups, words signed."""
    rng = np.random.default_rng(2)
    rows, words = 12, 10
    y = rng.normal(size=(rows, 2, 2 * words)) + rng.normal(size=(2, 2 * words)) * 2
    y[:, 0] += rng.normal(size=(rows, 1)) * np.repeat([0.5, -0.5], words)
    found = shifts.shift(shifts.Scores(y, (), words), PAIR)
    gap = y[:, 0] - y[:, 1]
    value = gap[:, :words].mean() - gap[:, words:].mean()
    by_row = gap[:, :words].mean(axis=1) - gap[:, words:].mean(axis=1)
    word_squares = sum(s.mean(axis=0).var(ddof=1) for s in (gap[:, :words], gap[:, words:])) / words
    left = gap - gap.mean(axis=0)
    noise = sum(
        ((s - s.mean(axis=1, keepdims=True)) ** 2).sum() for s in (left[:, :words], left[:, words:])
    ) / ((rows - 1) * (2 * words - 2))
    right = by_row.var(ddof=1) / rows + word_squares - noise * 2 / words / rows
    assert found.value == pytest.approx(value)
    assert found.error**2 == pytest.approx(right)


def test_it_agrees_with_the_general_variance_model() -> None:
    rng = np.random.default_rng(3)
    rows, words = 15, 12
    words_own = rng.normal(size=2 * words)
    y = np.zeros((rows, 2, 2 * words))
    y[:, 0] = words_own + rng.normal(size=(rows, 1)) * np.repeat([0.5, -0.5], words)
    y[:, 0] += rng.normal(size=(rows, 2 * words))
    found = shifts.shift(shifts.Scores(y, (), words), PAIR)
    sign = np.tile(np.repeat([1.0, -1.0], words), rows)
    at = np.indices((rows, 2 * words)).reshape(2, -1)
    design = Design(
        [Factor(at[0], sign), Factor(at[1])],
        np.stack([(sign > 0), (sign < 0)], axis=1).astype(float), [1.0, -1.0],
    )  # fmt: skip
    right = design.estimate((y[:, 0] - y[:, 1]).ravel())
    assert found.value == pytest.approx(right.value)
    assert found.error == pytest.approx(right.error, rel=0.02)


def test_equal_scores_are_no_difference_rather_than_rounding() -> None:
    y = np.full((4, 2, 6), -3.1)
    found = shifts.shift(shifts.Scores(y, (y[0],), 3), PAIR)
    assert (found.value, found.p) == (0.0, 1.0)


def test_placebos_need_control_rows_wide_enough() -> None:
    y = np.zeros((3, 4, 6))
    narrow = shifts.Scores(y, (np.zeros((3, 6)),) * 9, 3)
    assert shifts.neutral_swaps(narrow, "w", [0]).tests == 0


def test_the_default_asks_no_more_than_it_may() -> None:
    asked = Divergence().preview(frozenset({"continuation"}), 0)
    assert asked.items <= 6_000


def test_forty_controls_of_every_form_and_no_term_twice() -> None:
    material = Divergence().material()
    for form, rows in material.controls.items():
        assert sum(map(len, rows)) >= 40
        own = {t for a in material.axes if a.form == form for row in a.terms for t in row}
        terms = [t for row in rows for t in row]
        assert len(set(terms)) == len(terms)
        assert not own & set(terms)
        words = {len(t.split()) for t in own}
        assert {len(t.split()) for t in terms} & words


def test_lists_are_of_one_size_and_share_no_word() -> None:
    lists = load("next_words").table("lists")
    seen: set[str] = set()
    for name, table in lists.items():
        assert len(table["first"]) == len(table["second"])
        if table.get("judged", True):
            assert len(table["first"]) == 20
        for word in (*table["first"], *table["second"]):
            assert word not in seen, (name, word)
            seen.add(word)


def test_no_judged_word_must_agree_with_a_gender() -> None:
    gendered = {w.lower() for t in gender_terms() for w in (t.masculine, t.feminine)}
    for name, table in load("next_words").table("lists").items():
        if table.get("judged", True):
            words = {*table["first"], *table["second"]}
            assert not words & gendered, name
            assert not any(w.endswith(("ess", "man")) and not w.endswith("less") for w in words)


def test_jobs_fit_their_article() -> None:
    table = load("next_words").table("lists", "jobs")
    assert all(frame.endswith(" a") for frame in table["frames"])
    assert not [w for w in (*table["first"], *table["second"]) if w[0] in "aeiou"]
