"""Dialect of a text by the mixed-membership model of Blodgett et al. (2016).

Each token's group is hidden; a text's group shares are found by CVB0 over its tokens:

    lik[i, k] = (N[w_i, k] + 1) / N[k]         Q_i ~ lik_i * (sum over j != i of Q_j + alpha)

one token after the other, four sweeps after Q_i ~ lik_i. Its authors vouch for the African
American and White shares only. The model describes language of neighbourhoods, not of persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.corpora.text import open_corpus
from evenhand.errors import DataError

GROUPS = ("african_american", "hispanic", "asian", "white")
VOCABULARY = "model_vocab.txt"
COUNTS = "model_count_table.txt"
ALPHA = 1.0
"""Weight of the even prior."""
SWEEPS = 4
"""Passes after the first guess (the released code's `numpasses` minus one)."""
LEAST_KNOWN = 0.2
"""Share of a text's tokens that the table must know."""
_BATCH = 4096


@dataclass(frozen=True)
class DialectModel:
    """Count table of words by group, ready to label texts. Read it with `read_dialect_model`."""

    words: dict[str, int] = field(repr=False)
    likelihood: npt.NDArray[np.float64] = field(repr=False)

    def shares(self, texts: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
        """Group shares [texts, 4] in the order of `GROUPS`; NaN where too few words are known.

        Tokens are lower-cased; those the table lacks are left out.
        """
        known = [
            [self.words[t] for token in text if (t := token.lower()) in self.words]
            for text in texts
        ]
        out = np.full((len(known), len(GROUPS)), np.nan)
        usable = [
            i for i, ids in enumerate(known) if ids and len(ids) / len(texts[i]) >= LEAST_KNOWN
        ]
        usable.sort(key=lambda i: len(known[i]))
        for low in range(0, len(usable), _BATCH):
            rows = usable[low : low + _BATCH]
            out[rows] = self._solve([known[i] for i in rows])
        return out

    def labels(self, texts: Sequence[Sequence[str]], *, least: float = 0.0) -> list[str | None]:
        """The group with the largest share of each text; None when unknown or below `least`."""
        shares = self.shares(texts)
        found: list[str | None] = []
        for row in shares:
            best = None if np.isnan(row[0]) else int(row.argmax())
            found.append(None if best is None or row[best] < least else GROUPS[best])
        return found

    def _solve(self, ids: list[list[int]]) -> npt.NDArray[np.float64]:
        """All texts at once, token place by token place."""
        length = np.array([len(row) for row in ids])
        padded = np.zeros((len(ids), length.max()), np.intp)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
        lik = self.likelihood[padded]
        lik[np.arange(padded.shape[1]) >= length[:, None]] = 0.0
        q = lik / np.maximum(lik.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        totals = q.sum(axis=1)
        for _ in range(SWEEPS):
            for place in range(padded.shape[1]):
                live = np.flatnonzero(length > place)
                totals[live] -= q[live, place]
                fresh = lik[live, place] * (totals[live] + ALPHA)
                q[live, place] = fresh / fresh.sum(axis=1, keepdims=True)
                totals[live] += q[live, place]
        result: npt.NDArray[np.float64] = totals / totals.sum(axis=1, keepdims=True)
        return result


def read_dialect_model(folder: str | Path) -> DialectModel:
    """Read the published table: `model_vocab.txt` (count TAB word) and `model_count_table.txt`.

    Both may be packed (.xz, .gz, ...); rows belong together by position.

    Raises:
        DataError: a file or a column is missing, or the two do not fit together.
    """
    place = Path(folder)
    words = _words(_file(place, VOCABULARY))
    path = _file(place, COUNTS)
    rows = []
    for number, line in enumerate(filter(None, open_corpus(path).lines()), start=1):
        rows.append(line.split("\t"))
        if len(rows[-1]) != len(GROUPS):
            raise DataError(
                f"{path}, line {number}: {len(rows[-1])} columns. Accepted: {len(GROUPS)} counts "
                f"between tabs ({', '.join(GROUPS)})."
            )
    if len(rows) != len(words):
        raise DataError(f"{path}: {len(rows)} rows of counts for {len(words)} words.")
    try:
        counts = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{path}: a count is not a number ({error}).") from error
    if not np.isfinite(counts).all() or (counts < 0).any() or not counts.sum(axis=0).all():
        raise DataError(f"{path}: counts must be 0 or more, and every group needs some.")
    return DialectModel({w: i for i, w in enumerate(words)}, (counts + 1) / counts.sum(axis=0))


def _words(path: Path) -> list[str]:
    found = []
    for number, line in enumerate(open_corpus(path).lines(), start=1):
        if not line:
            continue
        _, tab, word = line.partition("\t")
        if not tab or not word:
            raise DataError(
                f"{path}, line {number}: {line[:40]!r} lacks a column. Accepted: count TAB word."
            )
        found.append(word)
    return found


def _file(folder: Path, name: str) -> Path:
    for suffix in ("", ".xz", ".gz", ".bz2", ".zst"):
        if (path := folder / (name + suffix)).is_file():
            return path
    raise DataError(
        f"{folder}: no {name} (plain, .xz or .gz) in this folder. Expected the model of "
        f"slanglab/twitteraae: {VOCABULARY} and {COUNTS}."
    )
