"""Documents as arrays for the coreference network.

Nothing here depends on word vectors, so one set of batches serves any number of embeddings.
A batch holds B pieces of documents of at most T tokens, as S sentences of at most L tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.words.conll import Document, sentence_bounds

Ints = npt.NDArray[np.int64]
CHARACTERS = 16


@dataclass
class Words:
    """Distinct spellings seen, numbered from 1; 0 is padding."""

    index: dict[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        return self.index.setdefault(word, len(self.index) + 1)

    def spellings(self) -> list[str]:
        return list(self.index)


@dataclass(frozen=True)
class Piece:
    """Consecutive sentences of one document, with the document's own token positions."""

    document: int
    start: int
    words: Ints
    sentences: list[tuple[int, int]]
    gold: list[tuple[int, int, int]]
    speakers: Ints
    genre: str


@dataclass(frozen=True)
class Batch:
    """Arrays of one batch and where its rows come from (document, first token)."""

    arrays: dict[str, npt.NDArray[Any]]
    origin: list[tuple[int, int]]


def cut(
    documents: Sequence[Document], words: Words, *, longest: int | None, rng: Any = None
) -> list[Piece]:
    """Documents as pieces of whole sentences; with `rng` the first piece has a random length.

    Args:
        words: numbers for the spellings, extended in place.
        longest: tokens per piece; None keeps documents whole.
        rng: a numpy generator, so that repeated calls cut in other places.
    """
    out: list[Piece] = []
    for number, document in enumerate(documents):
        bounds = sentence_bounds(document)
        first = longest if longest is None or rng is None else int(rng.integers(1, longest + 1))
        group: list[tuple[int, int]] = []
        limit = first
        for low, high in bounds:
            if group and limit is not None and high - group[0][0] > limit:
                out.append(_piece(document, number, group, words))
                group, limit = [], longest
            group.append((low, high))
        if group:
            out.append(_piece(document, number, group, words))
    return out


def _piece(document: Document, number: int, group: list[tuple[int, int]], words: Words) -> Piece:
    start, stop = group[0][0], group[-1][1]
    gold = []
    for entity, cluster in enumerate(document.clusters):
        label = entity + 1 if len(cluster) > 1 else -1
        gold += [(a - start, b - start, label) for a, b in cluster if a >= start and b <= stop]
    speakers = document.speakers[start:stop] or ("",) * (stop - start)
    numbers = {name: k for k, name in enumerate(dict.fromkeys(("", *speakers)))}
    return Piece(
        number,
        start,
        np.asarray([words.number(t) for t in document.tokens[start:stop]], np.int64),
        [(a - start, b - start) for a, b in group],
        gold,
        np.asarray([numbers[s] for s in speakers], np.int64),
        document.genre,
    )


def batches(
    pieces: Sequence[Piece],
    words: Words,
    *,
    tokens: int,
    width: int,
    genres: Sequence[str],
    rng: Any = None,
) -> list[Batch]:
    """Pieces of like length together, at most `tokens` positions a batch, padding counted."""
    noise = np.zeros(len(pieces)) if rng is None else rng.uniform(-40, 40, len(pieces))
    order = np.argsort([len(p.words) for p in pieces] + noise, kind="stable")[::-1]
    spellings = words.spellings()
    out: list[Batch] = []
    group: list[Piece] = []
    longest = 0
    for at in order:
        size = max(longest, len(pieces[at].words))
        if group and size * (len(group) + 1) > tokens:
            out.append(collate(group, spellings, width, genres))
            group, size = [], len(pieces[at].words)
        group.append(pieces[at])
        longest = size
    if group:
        out.append(collate(group, spellings, width, genres))
    return out


def collate(
    pieces: Sequence[Piece], spellings: Sequence[str], width: int, genres: Sequence[str]
) -> Batch:
    """Arrays of some pieces.

    Of U distinct words: `types` [U], `characters` [U, 16] their bytes, `lower` [U] equal for words
    that are equal in lower case. Of S sentences, longest first: `sentences` [S, L] places in types,
    `lengths` [S]. Of B pieces: `at` [B, T] the place of a token among S x L, `size` [B],
    `sentence` [B, T] its number, `speaker` [B, T], `genre` [B], `gold` [B, T, width] the cluster of
    the span of that width that starts there (0 none, -1 a singleton).
    """
    longest = max(len(p.words) for p in pieces)
    lengths = np.asarray([b - a for p in pieces for a, b in p.sentences], np.int64)
    places = np.argsort(np.argsort(-lengths, kind="stable"))
    wide = int(lengths.max())
    types, inverse = np.unique(np.concatenate([p.words for p in pieces]), return_inverse=True)
    shape = (len(pieces), longest)
    at, sentence = np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    speaker, gold = np.zeros(shape, np.int64), np.zeros((*shape, width), np.int64)
    rows = np.zeros((len(lengths), wide), np.int64)
    line, seen = 0, 0
    for b, piece in enumerate(pieces):
        for low, high in piece.sentences:
            rows[places[line], : high - low] = inverse[seen + low : seen + high]
            at[b, low:high] = places[line] * wide + np.arange(high - low)
            sentence[b, low:high] = line
            line += 1
        seen += len(piece.words)
        speaker[b, : len(piece.words)] = piece.speakers
        for low, high, label in piece.gold:
            if high - low <= width:
                gold[b, low, high - low - 1] = label
    known = {name: k + 1 for k, name in enumerate(genres)}
    texts = [spellings[t - 1] for t in types]
    arrays = {
        "types": types,
        "characters": _characters(texts),
        "lower": np.unique([t.lower() for t in texts], return_inverse=True)[1] + 1,
        "sentences": rows,
        "lengths": -np.sort(-lengths),
        "at": at,
        "size": np.asarray([len(p.words) for p in pieces], np.int64),
        "sentence": sentence,
        "gold": gold,
        "speaker": speaker,
        "genre": np.asarray([known.get(p.genre, 0) for p in pieces], np.int64),
    }
    return Batch(arrays, [(p.document, p.start) for p in pieces])


def _characters(words: Sequence[str]) -> Ints:
    """First bytes of each word, numbered from 1; 0 is padding."""
    out = np.zeros((len(words), CHARACTERS), np.int64)
    for row, word in enumerate(words):
        raw = np.frombuffer(word.encode("utf-8", "replace")[:CHARACTERS], np.uint8)
        out[row, : len(raw)] = raw.astype(np.int64) + 1
    return out
