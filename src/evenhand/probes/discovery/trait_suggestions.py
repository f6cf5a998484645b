"""Which ABC traits might a discovered word belong to? Suggestions from word vectors for people.

    cosine(w, e) = <w, e> / (|w| |e|)     for each end e of the 16 traits ("cold", "warm", ...)

Each word gets the ends nearest to it. Opposites stand in the same sentences and so lie close
together in such vectors ("warm" is near "cold"): `margin` says how much nearer the word is to the
end than to its opposite, and below `UNCLEAR` the side is called unclear. A suggestion is no
verdict. The sheet that is written has an empty column `trait`; only what people write there
counts (`traits.read_alignments`).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.probes.discovery.traits import TRAITS, ends

UNCLEAR = 0.05
COLUMNS = ("word", "trait", "annotator", "suggestion", "cosine", "opposite", "margin", "note")


def suggest(
    words: Sequence[str], vectors: VectorTable | str | Path, *, top: int = 3
) -> list[dict[str, Any]]:
    """For each word the `top` nearest ends of traits, at most one end per trait.

    Words without a vector get one row with an empty suggestion and the reason. `margin` is in
    [-2, 2], positive by construction of the nearest end.

    >>> from evenhand.probes.association.measure import table_of
    >>> table = table_of(["kind", "warm", "cold"], [[1.0, 0.2], [1.0, 0.0], [0.0, 1.0]])
    >>> row = suggest(["kind"], table, top=1)[0]
    >>> row["suggestion"], round(row["cosine"], 2), round(row["margin"], 2)
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
    rows: list[dict[str, Any]] = []
    for word in dict.fromkeys(words):
        mine = _unit(vectors, word)
        if mine is None:
            rows.append(_row(word, note="no vector for this word"))
            continue
        near = [r for t in TRAITS if (r := _nearer_end(word, mine, t, directions)) is not None]
        rows += sorted(near, key=lambda r: -r["cosine"])[:top]
    return rows


def _nearer_end(
    word: str, mine: np.ndarray, trait: str, directions: dict[str, np.ndarray | None]
) -> dict[str, Any] | None:
    """The end of a trait that lies nearer to a word; None when an end has no vector."""
    scored = []
    for end in ends(trait):
        other = directions[end]
        if other is None:
            return None
        scored.append((float(mine @ other), end))
    (far, opposite), (near, end) = sorted(scored)
    note = "" if near - far >= UNCLEAR else "unclear which end"
    return _row(word, end, near, opposite, near - far, note)


def _row(
    word: str,
    suggestion: str = "",
    cosine: float = float("nan"),
    opposite: str = "",
    margin: float = float("nan"),
    note: str = "",
) -> dict[str, Any]:
    return {"word": word, "suggestion": suggestion, "cosine": cosine, "opposite": opposite,
            "margin": margin, "note": note}  # fmt: skip


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


def write_sheet(rows: Sequence[dict[str, Any]], path: Path, annotator: str = "1") -> int:
    """Write the suggestions for people to decide on: the column `trait` is empty.

    Whoever agrees copies the suggestion (or writes another end) into `trait`; rows left empty
    count for nothing. Groups are left out, so that annotators are blind to them.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for r in sorted(rows, key=lambda row: (row["word"], -_known(row["cosine"]))):
            numbers = [f"{r[k]:.3f}" if r[k] == r[k] else "" for k in ("cosine", "margin")]
            writer.writerow(
                [r["word"], "", annotator, r["suggestion"], numbers[0], r["opposite"], numbers[1],
                 r["note"]]
            )  # fmt: skip
    return len(rows)


def _known(value: float) -> float:
    return value if value == value else -2.0
