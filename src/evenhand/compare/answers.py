"""Free answers as options: which one each answer takes, and what became of all answers.

    answers = read_options(texts, repeat(("Ann", "Bo")))
    answers.share(1)   1 where an answer takes Bo, 0 where it takes Ann, NaN where it takes neither
    answers.counts     {"read": 17, "refused": 1, "unread": 1, "unasked": 1}

Nothing is guessed: an answer that takes no option is counted, and left out of every share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np

from evenhand.compare.items import Floats, Integers
from evenhand.corpora.tables import Table
from evenhand.errors import DataError
from evenhand.words.reading_answers import NONE, Reading, read_answer

T = TypeVar("T")
UNASKED = "unasked"
BECAME = {"named": "read", "declined": "refused", UNASKED: UNASKED}
"""What a kind of answer counts as; all others are unread."""
COUNTED = ("read", "refused", "unread", UNASKED)


@dataclass(frozen=True)
class Answers:
    """Answers that were read, in their order.

    Attributes:
        kinds: `Reading.kind` of each, or `UNASKED`.
        options: the number of the option that each takes, `NONE` where it takes none.
    """

    kinds: tuple[str, ...]
    options: Integers

    def share(self, option: int) -> Floats:
        """Return 1 for answers that take the option, 0 for another option, NaN for none."""
        taken = (self.options == option).astype(np.float64)
        return np.where(self.options == NONE, np.nan, taken)

    @property
    def refused(self) -> Floats:
        """1 for answers that decline, 0 for others, NaN where nothing was asked."""
        value = {"declined": 1.0, UNASKED: np.nan}
        return np.asarray([value.get(kind, 0.0) for kind in self.kinds], np.float64)

    @property
    def counts(self) -> dict[str, int]:
        """How many were read, refused, not read, and not asked."""
        counts = dict.fromkeys(COUNTED, 0)
        for kind in self.kinds:
            counts[BECAME.get(kind, "unread")] += 1
        return counts


@overload
def read_options(texts: Iterable[object], options: Iterable[Sequence[str]]) -> Answers: ...


@overload
def read_options(
    texts: Iterable[object], options: Iterable[T], read: Callable[[str, T], Reading]
) -> Answers: ...


def read_options(
    texts: Iterable[object],
    options: Iterable[Any],
    read: Callable[[str, Any], Reading] = read_answer,
) -> Answers:
    """Read which option each free answer takes.

    Args:
        texts: the answers; None or a blank text was not asked.
        options: of each answer; `itertools.repeat` where all have the same.
        read: the rule for one answer; options may be whatever it takes.

    >>> answers = read_options(["It was Bo.", "Ann", "bananas", ""], [("Ann", "Bo")] * 4)
    >>> answers.share(1).tolist(), answers.counts["unread"]
    ([1.0, 0.0, nan, nan], 1)
    """
    readings = [
        read(str(text), row) if str("" if text is None else text).strip() else None
        for text, row in zip(texts, options)
    ]
    return Answers(
        tuple(UNASKED if reading is None else reading.kind for reading in readings),
        np.asarray([NONE if r is None else r.option for r in readings], np.int64),
    )


def read_shares(table: Table, column: str, what: str) -> tuple[Floats, dict[str, int]]:
    """Read a column of probabilities, and count its rows as `Answers.counts` does.

    Args:
        what: the probability in words, for the message about one outside 0 to 1.
    """
    table.require((column,))
    shares = table.numbers(column)
    wrong = np.flatnonzero((shares < 0) | (shares > 1))
    if len(wrong):
        raise DataError(
            f"{table.source}, row {wrong[0] + 1}, column {column}: {shares[wrong[0]]:g}. Accepted: "
            f"{what}, 0 to 1; empty where there is none."
        )
    known = int(np.isfinite(shares).sum())
    return shares, dict(zip(COUNTED, (known, 0, 0, len(shares) - known)))
