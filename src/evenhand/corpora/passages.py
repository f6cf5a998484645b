"""Passages of plain text: what methods are fitted, trained and measured on."""

from __future__ import annotations

from pathlib import Path

from evenhand.errors import DataError
from evenhand.opening import lines


def read_texts(path: Path, limit: int = 400, words: int = 80) -> list[str]:
    """Passages of a text file (one a line; packed too), each cut to `words` words.

    Those of fewer than 8 words are left out; of too many, evenly spaced ones are taken.
    """
    cut = [" ".join(line.split()[:words]) for line in lines(path, "plain text, one passage a line")]
    passages = [line for line in cut if len(line.split()) >= 8]
    if len(passages) < 20:
        raise DataError(
            f"{path}: {len(passages)} passages of 8 words or more. Accepted: 20 or more."
        )
    step = max(1, len(passages) // limit)
    return passages[::step][:limit]
