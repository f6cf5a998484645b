"""Gaps between groups: rates by hand, intervals and tests that behave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import DataError
from evenhand.metrics import gaps as metric


def rows(found: metric.GroupGaps) -> dict[str, metric.Gap]:
    return {row.metric: row for row in found.gaps}


def test_rates_by_hand() -> None:
    made = dict(zip(metric.RATES, metric.rates([6, 2, 3, 9])))
    assert made["precision"] == 6 / 8
    assert made["recall"] == 6 / 9
    assert made["f1"] == pytest.approx(12 / 17)
    assert made["fpr"] == 2 / 11
    assert made["fnr"] == 3 / 9


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30))
def test_rates_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import f1_score, precision_score, recall_score

    truth, said = np.asarray(pairs).T
    values = dict(zip(metric.RATES, metric.rates(metric.confusion(truth, said))))
    for name, oracle in (
        ("precision", precision_score),
        ("recall", recall_score),
        ("f1", f1_score),
    ):
        wanted = oracle(truth, said, zero_division=np.nan)
        assert values[name] == pytest.approx(wanted, nan_ok=True)


def test_a_real_gap_is_found_and_no_gap_is_not() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2_000)
    group = ["a", "b"] * 1_000
    noise = rng.random(2_000) < np.where(np.asarray(group) == "a", 0.1, 0.3)
    found = rows(metric.group_gaps(truth, truth ^ noise, group, "a", "b"))
    assert found["recall"].p < 0.01
    assert found["recall"].low < 0.2 < found["recall"].high
    even = rows(metric.group_gaps(truth, truth ^ (rng.random(2_000) < 0.2), group, "a", "b"))
    assert even["recall"].low < 0 < even["recall"].high
    assert even["recall"].p > 0.01


def test_swapping_the_groups_turns_the_sign() -> None:
    truth, said, group = [1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0], list("aabbab")
    ours, theirs = (rows(metric.group_gaps(truth, said, group, *g)) for g in ("ab", "ba"))
    assert ours["accuracy"].gap == -theirs["accuracy"].gap


def test_p_is_never_zero_and_the_null_is_the_label_shuffle() -> None:
    truth, said = [1] * 20 + [0] * 20, [1] * 20 + [0] * 20
    found = rows(metric.group_gaps(truth, said, ["a", "b"] * 20, "a", "b", resamples=100))
    assert found["f1"].p == 1.0


def test_a_group_of_one_class_has_a_reason() -> None:
    found = rows(metric.group_gaps([1, 1, 0, 1], [1, 0, 0, 1], list("aabb"), "a", "b"))
    assert np.isnan(found["fpr"].gap)
    assert found["fpr"].reason == "group 'a' has no negative example, so its fpr is undefined"


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="group names"):
        metric.group_gaps([1, 0], [1, 0], ["a"], "a", "b")
