"""Which ABC traits might a discovered word belong to? Suggestions from word vectors for people.

    cosine(w, e) = <w, e> / (|w| |e|)     for each end e of the 16 traits ("cold", "warm", ...)

Each word gets the ends nearest to it. Opposites stand in the same sentences and so lie close
together in such vectors ("warm" is near "cold"): `margin` says how much nearer the word is to the
end than to its opposite, and below `UNCLEAR` the side is called unclear. A suggestion is no
verdict. The sheet that is written has an empty column `trait`; only what people write there
counts (`traits.read_alignments`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from evenhand.errors import SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.probes.discovery.traits import TRAITS, ends, words_of
from evenhand.probes.reading import Reader, Result, Shown, number
from evenhand.runs.finding import NAN
from evenhand.strict import OPTIONAL
from evenhand.writing import write_csv

UNCLEAR = 0.05
COLUMNS = ("word", "trait", "annotator", "suggestion", "cosine", "opposite", "margin", "note")


@dataclass(frozen=True)
class Suggestion:
    """An end of a trait that lies near a word, or why there is none."""

    word: str
    suggestion: str = ""
    cosine: float = NAN
    opposite: str = ""
    margin: float = NAN
    note: str = ""


def suggest(
    words: Sequence[str], vectors: VectorTable | str | Path, *, top: int = 3
) -> list[Suggestion]:
    """For each word the `top` nearest ends of traits, at most one end per trait.

    Words without a vector get one row with an empty suggestion and the reason. `margin` is in
    [-2, 2], positive by construction of the nearest end.

    >>> from evenhand.probes.association.score import table_of
    >>> table = table_of(["kind", "warm", "cold"], [[1.0, 0.2], [1.0, 0.0], [0.0, 1.0]])
    >>> row = suggest(["kind"], table, top=1)[0]
    >>> row.suggestion, round(row.cosine, 2), round(row.margin, 2)
    ('warm', 0.98, 0.78)
    """
    if top < 1:
        raise SpecError(f"top: {top}. Accepted: 1 to {len(TRAITS)}.")
    if not isinstance(vectors, VectorTable):
        vectors = open_vectors(resolve_vectors(vectors))
    both = [end for trait in TRAITS for end in ends(trait)]
    vectors.prefetch(
        [p for text in (*both, *words) for p in (text, *text.replace("-", " ").split())]
    )
    directions = {end: _unit(vectors, end) for end in both}
    rows: list[Suggestion] = []
    for word in dict.fromkeys(words):
        mine = _unit(vectors, word)
        if mine is None:
            rows.append(Suggestion(word, note="no vector for this word"))
            continue
        near = [r for t in TRAITS if (r := _nearer_end(word, mine, t, directions)) is not None]
        rows += sorted(near, key=lambda r: -r.cosine)[:top]
    return rows


def _nearer_end(
    word: str, mine: np.ndarray, trait: str, directions: dict[str, np.ndarray | None]
) -> Suggestion | None:
    """The end of a trait that lies nearer to a word; None when an end has no vector."""
    scored = []
    for end in ends(trait):
        other = directions[end]
        if other is None:
            return None
        scored.append((float(mine @ other), end))
    (far, opposite), (near, end) = sorted(scored)
    note = "" if near - far >= UNCLEAR else "unclear which end"
    return Suggestion(word, end, near, opposite, near - far, note)


def _unit(vectors: VectorTable, text: str) -> np.ndarray | None:
    """A word's vector of length 1; of several words, the mean of theirs."""
    found = vectors.find([text], multiword=False)
    if found.missing:
        found = vectors.find(text.replace("-", " ").split())
    if found.missing or not len(found.rows):
        return None
    rows = np.asarray(found.rows, np.float64)
    mean = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
    size = float(np.linalg.norm(mean))
    return mean / size if size > 0 else None


def write_sheet(rows: Sequence[Suggestion], path: Path) -> int:
    """Write the suggestions for people to decide on: the column `trait` is empty.

    Whoever agrees copies the suggestion (or writes another end) into `trait`; rows left empty
    count for nothing. Groups are left out, so that annotators are blind to them.
    """
    listed = []
    for r in sorted(rows, key=lambda row: (row.word, -np.nan_to_num(row.cosine, nan=-2.0))):
        cosine, margin = (f"{v:.3f}" if v == v else "" for v in (r.cosine, r.margin))
        listed.append([r.word, "", "1", r.suggestion, cosine, r.opposite, margin, r.note])
    write_csv(path, COLUMNS, listed)
    return len(rows)


@dataclass(frozen=True, kw_only=True)
class SuggestionsResult(Result):
    """Suggestions, said to be suggestions."""

    called: ClassVar[str] = "suggest-traits"

    verdict: bool = False
    vectors: str
    suggestions: Sequence[Suggestion]
    sheet: str | None = field(default=None, metadata=OPTIONAL)

    def shown(self) -> Iterator[Shown]:
        if self.sheet is not None:
            yield Shown(f"Written: {self.sheet} (people fill in trait; empty rows do not count)")
        if not self.suggestions:
            yield Shown("No word differs between these groups, so there is nothing to suggest.")
            return
        yield Shown(
            f"Suggestions from {self.vectors}: for people to accept or not, no verdicts",
            ["word", "perhaps", "cosine", "rather than", "margin", "note"],
            [
                [
                    r.word,
                    r.suggestion or "-",
                    number(r.cosine, ".2f"),
                    r.opposite or "-",
                    number(r.margin, ".2f"),
                    r.note,
                ]
                for r in self.suggestions
            ],
        )


class SuggestTraitsReader(Reader):
    name = "suggest-traits"
    help = """Suggest ABC traits for discovered words, by nearness in word vectors.

    Suggestions are not verdicts: the sheet's column `trait` is empty, and only what people write
    there counts in: evenhand measure traits RUN --words SHEET
    """
    positional = ("run",)

    run: Path = Field(description="A run with a discovery probe.")
    group_a: str = Field(description="The first group.")
    group_b: str = Field(description="The second group.")
    vectors: str = Field("glove-6b-50d", description="A vector file or folder.")
    top: int = Field(3, ge=1, le=16, description="Suggestions per word.")
    rate: float = Field(0.05, description="Words with q up to this.")
    sheet: Path | None = Field(None, description="Write a CSV for people to fill in.")

    def read(self) -> SuggestionsResult:
        sides = words_of(self.run, self.group_a, self.group_b, self.rate)
        found = suggest([w for side in sides for w in side], self.vectors, top=self.top)
        if self.sheet is not None:
            write_sheet(found, self.sheet)
        written = None if self.sheet is None else str(self.sheet)
        return SuggestionsResult(vectors=self.vectors, suggestions=found, sheet=written)
