"""What people of a country call a stereotype: SeeGULL, read from the user's own copy.

SeeGULL (Jha et al. 2023) and SeeGULL Multilingual (Bhutani et al. 2024) hold pairs of an identity
and an attribute with the votes of annotators from the region: is this pair a known stereotype? The
data is CC BY 4.0 and full of slurs, so it stays outside this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import json_lines
from evenhand.words.reading_answers import clean

VOTES = (("stereotype", "non_stereotype", "unsure"),
         ("region_stereo", "region_nonstereo", "region_unsure"))  # fmt: skip
"""How the editions call the votes of annotators from the region."""
ACCEPTED = (
    "Accepted: SeeGULL's CSV or SeeGULL Multilingual's JSON lines (identity, attribute, votes)."
)


@dataclass(frozen=True)
class Stereotype:
    """An identity, an attribute, and how many of the annotators call the pair a stereotype."""

    identity: str
    attribute: str
    votes: float
    annotators: float
    language: str = ""
    country: str = ""


@dataclass(frozen=True)
class Matched:
    """A discovered association, and what annotators say of it; NaN votes: it is not listed."""

    group: str
    word: str
    votes: float
    annotators: float
    country: str = ""

    @property
    def stereotype(self) -> bool:
        """Whether most annotators call it one."""
        return self.votes > self.annotators / 2


def read_stereotypes(path: str | Path, language: str = "") -> list[Stereotype]:
    """The pairs of a SeeGULL file, plain or packed; of one language where there are several.

    Raises:
        DataError: the file has no such columns, or nothing in that language.
    """
    found = [s for row in _rows(Path(path)) for s in _read(row, str(path))]
    kept = [s for s in found if not language or s.language == language]
    if not kept:
        known = ", ".join(sorted({s.language for s in found})) or "none"
        raise DataError(f"{path}: no stereotypes in {language!r} (languages: {known}). {ACCEPTED}")
    return kept


def match(pairs: Iterable[tuple[str, str]], known: Iterable[Stereotype]) -> list[Matched]:
    """Discovered (group, word) pairs with the votes on them, most votes first where several.

    >>> listed = [Stereotype("Italian", "Loud", 3, 3, country="Italy")]
    >>> found = match([("italian", "loud"), ("italian", "tall")], listed)
    >>> [(m.word, m.stereotype) for m in found]
    [('loud', True), ('tall', False)]
    """
    votes: dict[tuple[str, str], Stereotype] = {}
    for one in known:
        key = clean(one.identity), clean(one.attribute)
        if key not in votes or one.votes > votes[key].votes:
            votes[key] = one
    none = Stereotype("", "", float("nan"), float("nan"))
    made = []
    for group, word in pairs:
        one = votes.get((clean(group.replace("_", " ")), clean(word)), none)
        made.append(Matched(group, word, one.votes, one.annotators, one.country))
    return made


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if ".jsonl" in path.suffixes:
        yield from (row for _, row in json_lines(path, ACCEPTED))
        return
    table = read_table(path)
    yield from (
        dict(zip(table.columns, values))
        for values in zip(*(column.to_pylist() for column in table.columns.values()))
    )


def _read(row: dict[str, Any], where: str) -> Iterator[Stereotype]:
    """The pair in its own language, and in English where a translation stands beside it."""
    try:
        names = next(n for n in VOTES if n[0] in row)
        counts = [float(row.get(name) or 0) for name in names]
        pair = str(row["identity"]), str(row["attribute"])
    except (KeyError, StopIteration, ValueError, TypeError) as error:
        raise DataError(f"{where}: a row lacks {str(error) or 'its votes'}. {ACCEPTED}") from None
    told = str(row.get("language", "")), str(row.get("country", ""))
    yield Stereotype(*pair, counts[0], sum(counts), *told)
    if row.get("translated_identity"):
        english = str(row["translated_identity"]), str(row.get("translated_attribute_list", ""))
        yield Stereotype(*english, counts[0], sum(counts), *told)
