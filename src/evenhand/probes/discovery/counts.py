"""From shown distractors to counts: how often each word was shown and won, by name and context.

Ten million shown distractors become counts in well under a minute: distinct texts are split once,
rows are counted in blocks of bounded memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.metrics.sodapop import Floats, Tokens, tokens, usable_word

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

    def only(self, groups: Collection[str]) -> Shown:
        """The rows of these groups; names keep their order."""
        kept = [n for n, group in enumerate(self.groups) if group in groups]
        place = np.full(len(self.names), -1, np.int64)
        place[kept] = np.arange(len(kept))
        rows = place[self.name] >= 0
        return replace(self.take(rows), name=place[self.name[rows]],
                       groups=tuple(self.groups[n] for n in kept),
                       names=tuple(self.names[n] for n in kept))  # fmt: skip

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
    made = tokens(shown.distractors)
    times = made.times if count == "occurrence" else np.ones_like(made.times)
    by_name = np.zeros(len(shown.names) * len(made.words))
    for rows, ids, at in _blocks(shown, made):
        cells = np.repeat(shown.name[rows], np.diff(at[1])) * len(made.words) + ids
        by_name += np.bincount(cells, weights=times[at[0]], minlength=len(by_name))
    least = by_name.reshape(len(shown.names), -1)
    enough = least.min(axis=0) >= min_count if len(least) else np.zeros(len(made.words), bool)
    if first_name_only and len(least):
        enough &= least[0] > 0
    kept = [i for i in np.flatnonzero(enough) if usable_word(made.words[i], stop_words)]
    place = np.full(len(made.words), -1, np.int64)
    place[kept] = np.arange(len(kept))
    shape = (len(shown.names), len(shown.contexts), len(kept))
    total, good = np.zeros(int(np.prod(shape))), np.zeros(int(np.prod(shape)))
    for rows, ids, at in _blocks(shown, made):
        size = np.diff(at[1])
        word = place[ids]
        use = word >= 0
        cell = np.repeat(shown.name[rows] * len(shown.contexts) + shown.context[rows], size)[use]
        flat = cell * len(kept) + word[use]
        weight = times[at[0]][use]
        total += np.bincount(flat, weights=weight, minlength=len(total))
        success = np.repeat(shown.success[rows], size)[use]
        good += np.bincount(flat, weights=weight * success, minlength=len(good))
    words = tuple(made.words[i] for i in kept)
    return WordCounts(
        shown.groups, shown.names, shown.contexts, words,
        total.reshape(shape), good.reshape(shape), len(made.words),
    )  # fmt: skip


def _blocks(
    shown: Shown, made: Tokens
) -> Iterator[tuple[slice, NDArray[np.int32], tuple[Codes, Codes]]]:
    """Blocks of rows with the word ids of their texts, and where those stand in `made`.

    The third value is (positions in made.ids, row borders within the block).
    """
    for begin in range(0, len(shown), BLOCK):
        rows = slice(begin, min(begin + BLOCK, len(shown)))
        low = made.start[shown.distractor[rows]]
        size = made.start[shown.distractor[rows] + 1] - low
        borders = np.concatenate([[0], np.cumsum(size)])
        positions = np.arange(borders[-1]) + np.repeat(low - borders[:-1], size)
        yield rows, made.ids[positions], (positions, borders)


def merge(
    parts: Sequence[WordCounts], *, min_count: int, first_name_only: bool = False
) -> WordCounts:
    """Counts of single contexts put together, with the words that stay over all of them.

    Lets a run work context by context: what is kept per context are counts, not texts.
    """
    places: dict[str, int] = {}
    for part in parts:
        for word in part.words:
            places.setdefault(word, len(places))
    names = parts[0].names
    total = np.zeros((len(names), len(places)))
    for part in parts:
        total[:, [places[w] for w in part.words]] += part.shown.sum(axis=1)
    enough = total.min(axis=0) >= min_count
    if first_name_only:
        enough &= total[0] > 0
    words = [w for w, i in places.items() if enough[i]]
    position = {w: i for i, w in enumerate(words)}
    shape = (len(names), len(parts), len(words))
    shown, won = np.zeros(shape), np.zeros(shape)
    for number, part in enumerate(parts):
        at = [i for i, w in enumerate(part.words) if w in position]
        to = [position[part.words[i]] for i in at]
        shown[:, number, to] = part.shown[:, 0, at]
        won[:, number, to] = part.won[:, 0, at]
    contexts = tuple(part.contexts[0] for part in parts)
    return WordCounts(parts[0].groups, names, contexts, tuple(words), shown, won, len(places))
