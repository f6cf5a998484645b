"""The example of a claim is the median item among those that go its way."""

from __future__ import annotations

import numpy as np

from evenhand.compare.examples import Example, median_example

VALUES = [0.3, -0.2, np.nan, 0.1, 0.4, 0.2, -0.1, -0.3]


def test_the_median_of_those_that_go_the_way_of_the_claim() -> None:
    assert median_example(VALUES, 0.5) == Example(5, 4, 7)
    assert median_example(VALUES, 0.5, upper=True) == Example(0, 4, 7)
    assert median_example(VALUES, -0.5) == Example(1, 3, 7)
    assert median_example(VALUES, -0.5, upper=True) == Example(1, 3, 7)


def test_none_without_an_item_that_agrees_and_no_way_means_down() -> None:
    assert median_example([0.0, -0.1, np.nan], 1.0) is None
    assert median_example([], 1.0) is None
    for way in (0.0, float("nan")):
        assert median_example(VALUES, way) == median_example(VALUES, -1.0)


def test_ties_are_in_their_own_order_or_in_that_of_the_caller() -> None:
    values = [0.1, 0.1, 0.1]
    assert median_example(values, 1.0, ties="cab") == Example(2, 3, 3)
    assert median_example(values, 1.0) == Example(1, 3, 3)
