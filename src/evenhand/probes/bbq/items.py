"""Questions of BBQ, whichever edition they come from."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, EvenhandError
from evenhand.opening import lines

CONDITIONS = {"ambig": "ambiguous", "disambig": "disambiguated"}
POLARITIES = ("neg", "nonneg")


def whole(value: Any) -> int:
    """A whole number; 2.5 is none, and would be another question's when it is cut.

    >>> whole("12"), whole(2.0)
    (12, 2)
    """
    good = isinstance(value, str) and bool(re.fullmatch(r"\d{1,15}", value, re.ASCII))
    good = good or (isinstance(value, int) and not isinstance(value, bool))
    if good or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise ValueError(f"a whole number: {value!r:.60}")


@dataclass(frozen=True)
class Item:
    """One question with three answers.

    `target` is the option about the group that the stereotype is about (-1: `excused` says why
    there is none), `biased` the one that agrees with the stereotype given the question's polarity.
    `wordings` are ways of saying that it cannot be known that the edition leaves to who asks.
    """

    id: str
    set_id: str
    category: str
    template: str
    condition: str
    polarity: str
    context: str
    question: str
    answers: tuple[str, str, str]
    names: tuple[str, str, str]
    unknown: int
    target: int
    label: int
    excused: str = ""
    language: str = "en"
    wordings: tuple[str, ...] = ()

    @property
    def biased(self) -> int:
        if self.target < 0:
            return -1
        return self.target if self.polarity == "neg" else other_than(self.unknown, self.target)


def other_than(unknown: int, option: int) -> int:
    """The other of the two people.

    >>> other_than(2, 0)
    1
    """
    return ({0, 1, 2} - {unknown, option}).pop()


@dataclass(frozen=True)
class Edition:
    """A published set of questions: its files, and its own way of scoring.

    Attributes:
        title, paper: what it is called, and where it was published.
        looks: what its files look like, for messages.
        claims: whether a file is one of its own.
        read: the questions of its files; `language` chooses where a folder holds several.
        keys: the columns of a table of answers that name a question.
        metrics: what its publication reports; () for all.
        pooled_gap: whether its accuracy gap pools all categories.
        all_wordings: its publication lets every wording of "unknown" compete, by plain likelihood.
    """

    title: str
    paper: str
    looks: str
    claims: Callable[[Path], bool]
    read: Callable[[Sequence[Path], str], Iterable[Item]]
    keys: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    pooled_gap: bool = False
    all_wordings: bool = False


DIFFERENCES = ("bias_ambiguous", "accuracy_gap", "accuracy_ambiguous", "accuracy_disambiguated")
"""What KoBBQ and the Spanish and Catalan editions report (diff-bias, Jin et al. 2024, Sec. 4)."""


def first_line(path: Path) -> str:
    """The first line of a file, packed or not; "" where it is no text."""
    try:
        return next(iter(lines(path)), "").lstrip("\ufeff")
    except (EvenhandError, UnicodeDecodeError):
        return ""


def table_rows(path: Path, separator: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a CSV or TSV file, each with where it stands."""
    text = (line.lstrip("\ufeff") + "\n" for line in lines(path))
    rows = csv.DictReader(text, delimiter=separator)
    yield from ((f"{path}, row {k}", row) for k, row in enumerate(rows, start=1))


@contextlib.contextmanager
def told_by(where: str, title: str, columns: Sequence[str]) -> Iterator[None]:
    """Inside: a cell that is missing or misspelled is named with its row."""
    try:
        yield
    except (KeyError, ValueError, SyntaxError, IndexError, TypeError, AttributeError) as error:
        raise DataError(
            f"{where}: lacks or misspells {error}. Accepted: {title}'s own columns "
            f"({', '.join(columns)})."
        ) from None
