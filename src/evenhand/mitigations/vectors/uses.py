"""What word vectors are used for, before and after they were moved: similarity and analogies.

    similarity   Spearman correlation of cosines with what people say (as SimLex-999, WordSim-353)
    analogies    a is to b as c is to ?: the nearest word to b - a + c that is none of them

Both give one value per pair or question, whose mean is the usual number, so that before and after
are compared item by item.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.metrics.association import unit_rows
from evenhand.models.vectors.files import VectorTable
from evenhand.opening import lines
from evenhand.words.sets import nearest

Floats = npt.NDArray[np.float64]
FEWEST = 20
POINTS = 0.05
"""Margin: five points of a correlation, or five of 100 questions."""


def similarity(vectors: VectorTable, path: Path) -> Floats:
    """What each rated pair adds to the Spearman correlation; the mean is the correlation.

    rho = mean over pairs of z(rank of cosine) * z(rank of rating), z by the population deviation.

    Args:
        path: a table with word1, word2 and score; pairs with a missing word are left out.
    """
    table = read_table(path, text=("word1", "word2"), needed=("word1", "word2", "score"))
    pairs = list(zip(table.labels("word1"), table.labels("word2")))
    places = [vectors.places(pair) for pair in pairs]
    known = [k for k, two in enumerate(places) if all(two)]
    _enough(path, len(known), len(pairs), "pairs")
    ends = [
        unit_rows(np.array([vectors.matrix[list(places[k][side])].mean(axis=0) for k in known]))
        for side in (0, 1)
    ]
    return _z(np.sum(ends[0] * ends[1], axis=1)) * _z(table.numbers("score")[known])


def analogies(vectors: VectorTable, path: Path) -> Floats:
    """Whether each question is answered right (1) or not (0).

    Args:
        path: text, one question of four words a line; lines that begin with a colon are headings.
    """
    asked = [
        line.split()
        for line in lines(path, "analogies: four words a line")
        if line.strip() and not line.startswith(":")
    ]
    strange = next((words for words in asked if len(words) != 4), None)
    if strange is not None:
        raise DataError(f"{path}: '{' '.join(strange)[:60]}' has {len(strange)} words, expected 4.")
    found = [[place[0] if place else -1 for place in vectors.places(words)] for words in asked]
    rows = np.array([row for row in found if min(row) >= 0], np.int64).reshape(-1, 4)
    _enough(path, len(rows), len(asked), "questions")
    a, b, c = (unit_rows(vectors.matrix[rows[:, k]]) for k in range(3))
    near, _ = nearest(vectors, np.asarray(b - a + c, np.float32), 4)
    answers = [next((n for n in row if n not in set(q[:3])), -1) for row, q in zip(near, rows)]
    return np.asarray(np.array(answers) == rows[:, 3], np.float64)


def _enough(path: Path, known: int, all_of_them: int, what: str) -> None:
    if known < FEWEST:
        raise DataError(
            f"{path}: of {all_of_them} {what} {known} have all their words among the vectors. "
            f"Accepted: {FEWEST} or more."
        )


def _z(values: Floats) -> Floats:
    """Ranks (ties share their mean) in standard deviations."""
    from scipy.stats import rankdata

    ranks = rankdata(values)
    spread = ranks.std()
    return np.asarray((ranks - ranks.mean()) / (spread if spread else 1.0), np.float64)
