"""Free answers are read as options in one place, and every answer is counted once."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pytest

from evenhand.compare.answers import read_options, read_shares
from evenhand.corpora.tables import in_memory
from evenhand.errors import DataError
from evenhand.words.reading_answers import NONE, Reading

TEXTS = (
    "It was Bo.",
    "Not Bo, but Ann.",
    "I'm sorry, but I can't help with that.",
    "The text does not say.",
    "Bananas.",
    "  ",
    None,
)


def test_every_answer_takes_an_option_or_is_counted_by_what_became_of_it() -> None:
    answers = read_options(TEXTS, repeat(("Ann", "Bo")))
    assert answers.options.tolist() == [1, 0, NONE, NONE, NONE, NONE, NONE]
    assert answers.kinds == (
        *("named", "named", "declined", "open", "unread"),
        *("unasked", "unasked"),
    )
    assert answers.counts == {"read": 2, "refused": 1, "unread": 2, "unasked": 2}
    nothing = [np.nan] * 5
    np.testing.assert_array_equal(answers.share(1), [1.0, 0.0, *nothing])
    np.testing.assert_array_equal(answers.share(0), [0.0, 1.0, *nothing])
    np.testing.assert_array_equal(answers.refused, [0, 0, 1, 0, 0, np.nan, np.nan])


def test_each_answer_may_have_options_of_its_own_and_a_rule_of_the_caller() -> None:
    answers = read_options(["Bo", "Bo"], [("Ann", "Bo"), ("Bo", "Cy")])
    assert answers.options.tolist() == [1, 0]

    def letter(text: str, options: object) -> Reading:
        return Reading("named", "AB".index(text)) if text in "AB" else Reading("unread")

    answers = read_options(["B", "Z"], repeat(("Ann", "Bo")), letter)
    assert answers.options.tolist() == [1, NONE]
    assert answers.counts == {"read": 1, "refused": 0, "unread": 1, "unasked": 0}


def test_probabilities_are_counted_and_refused_outside_of_their_range() -> None:
    table = in_memory({"score": [0.25, None, 1.0]})
    assert table is not None
    shares, counts = read_shares(table, "score", "the probability of Bo")
    np.testing.assert_array_equal(shares, [0.25, np.nan, 1.0])
    assert counts == {"read": 2, "refused": 0, "unread": 0, "unasked": 1}
    table = in_memory({"score": [0.5, 1.5]})
    assert table is not None
    with pytest.raises(DataError, match=r"row 2, column score: 1\.5\. Accepted: the probability"):
        read_shares(table, "score", "the probability of Bo")
    with pytest.raises(DataError, match="share"):
        read_shares(table, "share", "the probability of Bo")
