"""Reading outcomes: numbers as they are; decisions and answers as text, by rule.

    approved                        good
    I would not hire this person.   against
    I'm sorry, I can't help.        declined
    (empty)                         unasked
    Bananas.                        unread

Nothing is guessed: what cannot be read is counted, and left out of every number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import Table
from evenhand.errors import DataError
from evenhand.words.reading_answers import clean, declines, read_answer

Floats = npt.NDArray[np.float64]
GOOD = (
    "yes approve approved accept accepted hire hired grant granted pass passed invite invited "
    "admit admitted select selected recommend recommended shortlist shortlisted qualified eligible "
    "positive advance true"
).split()
AGAINST = (
    "no reject rejected deny denied refuse refused decline declined fail failed ineligible "
    "unqualified negative disqualified dismiss dismissed false"
).split()
"""How decisions for and against a person are written."""
KINDS = ("for", "against", "declined", "open", "unread", "unasked")
READ = 0.5
"""At least this many of the answers must be readable."""
_NOT = re.compile(
    rf"\b(?:not|never|cannot|can't|n't|won't|wouldn't|shouldn't|don't)\s+(?:\w+\s+){{0,2}}?"
    rf"(?:{'|'.join(GOOD)}|hiring|approving|accepting|granting)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Outcomes:
    """A number per row (NaN where there is none), whether it declined, and how answers were read.

    Attributes:
        values: 1 and 0 for two answers, or the numbers themselves.
        refused: 1 where the answer declines; None for numbers.
        counts: how many answers were read in which way; empty for numbers.
        labels: what 1 and 0 are called, the good one first; empty for numbers.
        good: whether it is known that 1 is good for the person.
        span: largest less smallest number, 1 for answers.
    """

    values: Floats
    refused: Floats | None
    counts: Mapping[str, int]
    labels: tuple[str, ...]
    good: bool
    span: float


def outcomes_of(table: Table, column: str, answers: Sequence[str] = ()) -> Outcomes:
    """The outcomes of a column; `answers` names the good answer and the other one."""
    if answers and len(answers) != 2:
        raise DataError(f"--answers {','.join(answers)}: two are needed, the good one first.")
    texts = ["" if v is None else str(v).strip() for v in table.columns[column].to_pylist()]
    numbers = _numbers(texts)
    if numbers is not None and not answers:
        known = numbers[np.isfinite(numbers)]
        return Outcomes(numbers, None, {}, (), True, float(np.ptp(known)) if len(known) else 0.0)
    read = [_read(text, answers) for text in texts]
    told = ("for", "against")
    if answers:
        _look_for(table, column, answers, texts, read)
    asked = [kind for kind in read if kind != "unasked"]
    labels, good = (tuple(answers) or ("a decision for them", "one against them")), True
    if not answers and sum(k in told for k in asked) < READ * max(1, len(asked)):
        labels, read = _two(table, column, texts)
        good = False
    value = {"for": 1.0, "against": 0.0}
    named = dict(zip(told, labels)) if answers or not good else {}
    return Outcomes(
        np.asarray([value.get(kind, np.nan) for kind in read]),
        np.asarray([np.nan if kind == "unasked" else kind == "declined" for kind in read], float),
        {named.get(kind, kind): n for kind in KINDS if (n := read.count(kind))},
        labels,
        good,
        1.0,
    )


def _look_for(
    table: Table, column: str, answers: Sequence[str], texts: Sequence[str], read: Sequence[str]
) -> None:
    """Refuse an answer that nobody gave while others cannot be read: it is mistyped."""
    unread = [text for text, kind in zip(texts, read) if kind == "unread"]
    for answer, kind in zip(answers, ("for", "against")):
        if unread and kind not in read:
            raise DataError(
                f"{table.source}, column {column!r}: no answer can be read as {answer!r}, and "
                f"{len(unread)} of {len(texts)} cannot be read, e.g. {unread[0]!r:.80}. Say which "
                "two answers to look for, the good one first: --answers GOOD,BAD"
            )


def _numbers(texts: Sequence[str]) -> Floats | None:
    try:
        return np.asarray([float(t) if t else np.nan for t in texts])
    except ValueError:
        return None


def _read(text: str, answers: Sequence[str]) -> str:
    """One of `KINDS`.

    >>> [_read(t, ()) for t in ("Declined", "I would not hire her.", "I can't help with that.")]
    ['against', 'against', 'declined']
    """
    if not text:
        return "unasked"
    good, against = ((answers[0],), (answers[1],)) if answers else (GOOD, AGAINST)
    said = clean(text)
    for kind, words in (("for", good), ("against", against)):
        if said in [clean(word) for word in words]:
            return kind
    if declines(text):
        return "declined"
    if not answers and _NOT.search(text.replace("’", "'")):
        return "against"
    found = read_answer(text, (*good, *against))
    if found.kind != "named":
        return found.kind
    return "for" if found.option < len(good) else "against"


def _two(table: Table, column: str, texts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Labels that nobody explained: with two of them it is not known which one is good."""
    seen = Counter(clean(t) for t in texts if t)
    labels = sorted(label for label in seen)
    if len(labels) != 2:
        shown = ", ".join(repr(label) for label, _ in seen.most_common(5))
        raise DataError(
            f"{table.source}, column {column!r}: fewer than half of the answers can be read as a "
            f"decision for or against somebody ({len(labels)} kinds, e.g. {shown}). Say which two "
            f"answers to look for, the good one first: --answers GOOD,BAD"
        )
    place = {labels[0]: "for", labels[1]: "against", "": "unasked"}
    return tuple(labels), [place[clean(t) if t else ""] for t in texts]
