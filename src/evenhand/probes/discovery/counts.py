"""From shown distractors to counts: how often each word was shown and won, by name and context.

Ten million shown distractors become counts in well under a minute: distinct texts are split once,
rows are counted in blocks of bounded memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import save_array
from evenhand.confined import own_folder
from evenhand.corpora.tables import Table
from evenhand.metrics.sodapop import Floats, Tokens, tokens, usable_word
from evenhand.opening import lines

Codes = NDArray[np.int64]
BLOCK = 1_000_000


@dataclass(frozen=True)
class Shown:
    """Distractors shown, coded: row k showed `distractors[distractor[k]]` in `context[k]` with
    `names[name[k]]` in it, and it won with share `success[k]`. `groups[n]` is name n's group."""

    groups: tuple[str, ...]
    names: tuple[str, ...]
    contexts: tuple[str, ...]
    distractors: Sequence[str]
    name: Codes
    context: Codes
    distractor: Codes
    success: Floats

    def __len__(self) -> int:
        return len(self.success)

    def only(self, groups: Sequence[str]) -> Shown:
        """The rows of these groups; names by group as given, each group's in their own order."""
        known = [n for n, group in enumerate(self.groups) if group in groups]
        known.sort(key=lambda n: groups.index(self.groups[n]))
        place = np.full(len(self.names), -1, np.int64)
        place[known] = np.arange(len(known))
        rows = place[self.name] >= 0
        return replace(
            self.take(rows),
            name=place[self.name[rows]],
            groups=tuple(self.groups[n] for n in known),
            names=tuple(self.names[n] for n in known),
        )

    def take(self, rows: NDArray[Any]) -> Shown:
        """Some of the rows."""
        parts = {p: getattr(self, p)[rows] for p in ("name", "context", "distractor", "success")}
        return replace(self, **parts)

    def distinct(self) -> tuple[Shown, int]:
        """Each distractor once per name and context, and how many rows were merged.

        Eq. 1 speaks of sets; the released loader keeps a set per name and context, in which a
        distractor is successful if it won at least once. So the largest share is kept.
        """
        width = len(self.distractors)
        key = (self.name * len(self.contexts) + self.context) * width + self.distractor
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        first = np.flatnonzero(np.diff(ranked, prepend=-1))
        if len(first) == len(key):
            return self, 0
        success = np.maximum.reduceat(self.success[order], first)
        rows = order[first]
        back = np.argsort(rows, kind="stable")
        rows, success = rows[back], success[back]
        return replace(self.take(rows), success=success), len(key) - len(rows)


@dataclass(frozen=True)
class WordCounts:
    """Per name, context and word: how many distractors were shown, and how many of them won."""

    groups: tuple[str, ...]
    names: tuple[str, ...]
    contexts: tuple[str, ...]
    words: tuple[str, ...]
    shown: Floats
    won: Floats
    distinct_words: int
    """Words before the filter."""

    def of_names(self) -> tuple[Floats, Floats]:
        """Won and shown per name and word, contexts pooled as in Eq. 1."""
        return self.won.sum(axis=1), self.shown.sum(axis=1)


def count_words(
    shown: Shown,
    *,
    stop_words: Collection[str] = (),
    min_count: int = 50,
    count: str = "indicator",
    first_name_only: bool = False,
) -> WordCounts:
    """Count shown and won distractors by name, context and word, for the words that stay.

    A word stays when it is usable (`metrics.sodapop.usable_word`) and was shown at least
    `min_count` times with every name.

    Args:
        shown: the distractors; give distinct ones.
        min_count: least number of distractors (or occurrences) per name.
        count: `indicator` counts a distractor once per word, `occurrence` each repetition.
        first_name_only: consider only words of the first name, as the released code does
            (no difference unless `min_count` is 0).
    """
    split = tokens(shown.distractors)
    times = split.times if count == "occurrence" else np.ones_like(split.times)
    by_name = np.zeros(len(shown.names) * len(split.words))
    for rows, ids, at in _blocks(shown, split):
        cells = np.repeat(shown.name[rows], np.diff(at[1])) * len(split.words) + ids
        by_name += np.bincount(cells, weights=times[at[0]], minlength=len(by_name))
    least = by_name.reshape(len(shown.names), -1)
    enough = least.min(axis=0) >= min_count if len(least) else np.zeros(len(split.words), bool)
    if first_name_only and len(least):
        enough &= least[0] > 0
    kept = [i for i in np.flatnonzero(enough) if usable_word(split.words[i], stop_words)]
    place = np.full(len(split.words), -1, np.int64)
    place[kept] = np.arange(len(kept))
    shape = (len(shown.names), len(shown.contexts), len(kept))
    total, good = np.zeros(int(np.prod(shape))), np.zeros(int(np.prod(shape)))
    for rows, ids, at in _blocks(shown, split):
        size = np.diff(at[1])
        word = place[ids]
        use = word >= 0
        cell = np.repeat(shown.name[rows] * len(shown.contexts) + shown.context[rows], size)[use]
        flat = cell * len(kept) + word[use]
        weight = times[at[0]][use]
        total += np.bincount(flat, weights=weight, minlength=len(total))
        success = np.repeat(shown.success[rows], size)[use]
        good += np.bincount(flat, weights=weight * success, minlength=len(good))
    words = tuple(split.words[i] for i in kept)
    return WordCounts(
        shown.groups,
        shown.names,
        shown.contexts,
        words,
        total.reshape(shape),
        good.reshape(shape),
        len(split.words),
    )


def _blocks(
    shown: Shown, split: Tokens
) -> Iterator[tuple[slice, NDArray[np.int32], tuple[Codes, Codes]]]:
    """Blocks of rows with the word ids of their texts, and where those stand in `made`.

    The third value is (positions in split.ids, row borders within the block).
    """
    for begin in range(0, len(shown), BLOCK):
        rows = slice(begin, min(begin + BLOCK, len(shown)))
        low = split.start[shown.distractor[rows]]
        size = split.start[shown.distractor[rows] + 1] - low
        borders = np.concatenate([[0], np.cumsum(size)])
        positions = np.arange(borders[-1]) + np.repeat(low - borders[:-1], size)
        yield rows, split.ids[positions], (positions, borders)


class CountSums:
    """Counts added context by context, of some names at a time.

    Held: how often each word was shown with each name, which decides about the words that stay.
    The counts by context wait in a temporary file until that is known.
    """

    def __init__(self, groups: Sequence[str], names: Sequence[str]) -> None:
        self.groups, self.names = tuple(groups), tuple(names)
        self._contexts: list[str] = []
        self._places: dict[str, int] = {}
        self._total = np.zeros((len(names), 0))
        self._parts: list[tuple[int, int]] = []
        place = own_folder()
        self._file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 - lives until read back

    def __del__(self) -> None:
        self._file.close()

    def begin(self, context: str) -> None:
        """The next context."""
        self._contexts.append(context)

    def add(self, part: WordCounts, first: int) -> None:
        """Counts of the names from `first` on, in this context."""
        at = np.asarray([self._places.setdefault(w, len(self._places)) for w in part.words], int)
        lacking = len(self._places) - self._total.shape[1]
        if lacking > 0:
            room = max(lacking, self._total.shape[1] // 2)
            self._total = np.pad(self._total, ((0, 0), (0, room)))
        self._total[first : first + len(part.names), at] += part.shown[:, 0]
        self._parts.append((len(self._contexts) - 1, first))
        for values in (at, part.shown[:, 0], part.won[:, 0]):
            save_array(self._file, np.ascontiguousarray(values))

    def counts(self, *, min_count: int, first_name_only: bool = False) -> WordCounts:
        """Everything, with the words that were shown often enough with every name."""
        total = self._total[:, : len(self._places)]
        enough = total.min(axis=0) >= min_count
        if first_name_only:
            enough &= total[0] > 0
        to = np.where(enough, np.cumsum(enough) - 1, -1)
        words = tuple(w for w, i in self._places.items() if enough[i])
        shape = (len(self.names), len(self._contexts), len(words))
        shown, won = np.zeros(shape), np.zeros(shape)
        self._file.seek(0)
        for context, first in self._parts:
            at, *both = (np.load(self._file, allow_pickle=False) for _ in range(3))
            kept = to[at] >= 0
            for target, values in zip((shown, won), both):
                target[first : first + len(values), context, to[at][kept]] = values[:, kept]
        return WordCounts(
            self.groups, self.names, tuple(self._contexts), words, shown, won, len(self._places)
        )


COLUMNS = ("group", "name", "context", "distractor", "success")
MIN_COUNT = 50
RELEASED_MIN_COUNT = 51  # released: more than 50


def shown_from(table: Table) -> Shown:
    """The rows of a table, coded; names in the order in which they first appear."""
    success = table.scores("success")
    group, name, context = (table.labels(c) for c in COLUMNS[:3])
    unit = group.codes * len(name.values) + name.codes
    found, first, inverse = np.unique(unit, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(found), np.int64)
    place[order] = np.arange(len(found))
    units = found[order]
    texts, codes = _texts(table)
    return Shown(
        tuple(group.values[u // len(name.values)] for u in units),
        tuple(name.values[u % len(name.values)] for u in units),
        context.values,
        texts,
        place[inverse.ravel()],
        context.codes,
        codes,
        success,
    )


def _texts(table: Table) -> tuple[list[str], Codes]:
    """The distractor column, coded; an empty distractor is allowed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.fill_null(table.columns["distractor"].cast(pa.string()), "").dictionary_encode()
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.unify_dictionaries().combine_chunks()
    return texts.dictionary.to_pylist(), np.asarray(texts.indices, np.int64)


def read_stop_words(which: str) -> Collection[str]:
    """`nltk`, `none`, or the words of a file, one per line; lines with # are notes."""
    if which == "none":
        return frozenset()
    if which == "nltk":
        from evenhand.words.lexicons import load

        return frozenset(load("stop_words").words("sets", "english"))
    expected = "nltk, none, or a text file with one word per line (--stop-words)"
    listed = lines(Path(which).expanduser(), expected)
    return frozenset(w.strip() for w in listed if w.strip() and not w.startswith("#"))


class Sample:
    """Some of a context's rows at random, for examples and for people to judge.

    Every row gets a random number, and those with the smallest stay, so that it does not matter
    how many come at a time.
    """

    def __init__(self, size: int, seed: Sequence[int]) -> None:
        self._size, self._seed = size, seed
        self._kept: list[tuple[np.ndarray, Shown]] = []

    def add(self, rows: Shown, first: int) -> None:
        """Rows of the names from `first` on."""
        counts = np.bincount(rows.name, minlength=len(rows.names))
        keys = np.concatenate(
            [
                np.random.default_rng([*self._seed, first + k]).random(n)
                for k, n in enumerate(counts.tolist())
            ]
        )
        self._kept.append((keys, rows))
        every = np.concatenate([k for k, _ in self._kept])
        if len(every) > self._size:
            limit = np.partition(every, self._size - 1)[self._size - 1]
            self._kept = [(k[k <= limit], _only(r, k <= limit)) for k, r in self._kept]

    def parts(self) -> list[Shown]:
        return [rows for _, rows in self._kept]


def _only(rows: Shown, kept: np.ndarray) -> Shown:
    """Some of the rows, with their own texts alone."""
    at = np.flatnonzero(kept)
    texts = [rows.distractors[i] for i in rows.distractor[at]]
    return replace(rows.take(at), distractors=texts, distractor=np.arange(len(at)))
