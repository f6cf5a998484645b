"""What people of a country call a stereotype: SeeGULL, read from the user's own copy.

SeeGULL (Jha et al. 2023) and SeeGULL Multilingual (Bhutani et al. 2024) hold pairs of an identity
and an attribute with the votes of annotators from the region: is this pair a known stereotype? The
data is CC BY 4.0 and full of slurs, so it stays outside this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import json_lines
from evenhand.probes.base import Measured
from evenhand.probes.discovery.findings import table_of
from evenhand.runs.finding import Finding
from evenhand.strict import record
from evenhand.words.reading_answers import clean

VOTES = (
    ("stereotype", "non_stereotype", "unsure"),
    ("region_stereo", "region_nonstereo", "region_unsure"),
)
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

    @property
    def sentence(self) -> str:
        """What annotators say, to follow the sentence of a finding; "" when it is not listed."""
        if self.votes != self.votes:
            return ""
        where = f" ({self.country})" if self.country else ""
        return (
            f" {self.votes:.0f} of {self.annotators:.0f} annotators from the region{where} call "
            f"{self.word!r} a stereotype of this group."
        )


def read_stereotypes(path: str | Path, language: str = "") -> list[Stereotype]:
    """The pairs of a SeeGULL file, plain or packed; of one language where there are several.

    Raises:
        DataError: the file has no such columns, or nothing in that language.
    """
    listed = [s for row in _rows(Path(path)) for s in _read(row, str(path))]
    chosen = [s for s in listed if not language or s.language == language]
    if not chosen:
        known = ", ".join(sorted({s.language for s in listed})) or "none"
        raise DataError(f"{path}: no stereotypes in {language!r} (languages: {known}). {ACCEPTED}")
    return chosen


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


def with_votes(found: Measured, known: Iterable[Stereotype], rate: float) -> Measured:
    """What was discovered with what annotators say of it: in the findings, and as a table.

    Args:
        rate: the q value up to which a word counts as discovered.
    """
    tested = (r for r in found.tables["words"].to_pylist() if r["q"] is not None)
    rows = [r for r in tested if r["q"] <= rate]
    pairs = [(r["group_a"] if r["value"] > 0 else r["group_b"], r["word"]) for r in rows]
    matched = match(pairs, known)
    by: dict[tuple[str, ...], Matched] = {
        (r["group_a"], r["group_b"], r["word"]): m for r, m in zip(rows, matched)
    }
    listed = [m for m in matched if m.votes == m.votes]
    tally = {
        "discovered": len(matched),
        "listed": len(listed),
        "stereotypes": sum(m.stereotype for m in listed),
    }
    return replace(
        found,
        findings=[_carrying(f, by.get((*f.groups, f.attribute))) for f in found.findings],
        tables={**found.tables, "stereotypes": table_of([record(m) for m in matched])},
        summary={**found.summary, "stereotypes": tally},
    )


def _carrying(finding: Finding, matched: Matched | None) -> Finding:
    """The finding with the votes on it, where the association is listed."""
    if matched is None or not matched.sentence:
        return finding
    told = {"votes": matched.votes, "annotators": matched.annotators, "country": matched.country}
    return replace(
        finding,
        sentence=finding.sentence + matched.sentence,
        details={**finding.details, "stereotype": told},
    )


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
