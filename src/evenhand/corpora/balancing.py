"""Dataset balancing: leave out a share of the lines that carry, or contradict, a stereotype.

    reduce(p):   keep each stereotypical line with probability p, keep all other lines
    increase(p): keep each anti-stereotypical line with probability p, keep all other lines

(Kato and Miyao 2024, section 5.3, who call these two directions by the verbs quoted in
docs/papers/kato-miyao.md.) One number u in [0, 1) belongs to every line, and an affected line is
kept when u < p: samples are nested in p, and a line meets the same u in both directions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.files import Corpus, sentences
from evenhand.corpora.labels import Labels
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import decoded
from evenhand.writing import packed_writer

DIRECTIONS = ("reduce", "increase")
SHARES = tuple(k / 10 for k in range(10))
PUBLISHED_SEED = 20230220
_BLOCK = 1 << 16


@dataclass(frozen=True)
class BalancedView:
    """A corpus read through a sample of its lines. Iterating gives tokens, as often as you like.

    Nothing is copied: the files are read again and lines that are left out are skipped.
    """

    labels: Labels
    direction: str
    share: float
    seed: int = 0
    as_published: bool = False
    keep_both: bool = False

    @property
    def corpus(self) -> Corpus:
        """The files behind the view."""
        return self.labels.corpus

    def kept(self) -> npt.NDArray[np.bool_]:
        """Which lines stay, by line."""
        affected = affected_lines(self.labels, self.direction, keep_both=self.keep_both)
        if self.as_published:
            mask = ~affected
            mask[affected] = published_draws(int(affected.sum()), self.seed) < self.share
            return mask
        return np.concatenate(
            [
                ~affected[low : low + _BLOCK] | (draws(low, len(affected), self.seed) < self.share)
                for low in range(0, len(affected), _BLOCK)
            ]
        )

    def lines(self) -> Iterator[str]:
        """The lines that stay, without their line feed."""
        mask, at = self.kept(), 0
        for path, block in self.corpus.blocks():
            found = decoded(block, path).split("\n")[:-1]
            if at + len(found) > len(mask):
                break
            yield from compress(found, mask[at : at + len(found)].tolist())
            at += len(found)
        else:
            if at == len(mask):
                return
        raise DataError(
            f"{self.corpus.paths[0]}: the corpus does not have the {len(mask)} lines that were "
            "labelled. Label it again with: evenhand corpus label"
        )

    def __iter__(self) -> Iterator[list[str]]:
        return sentences(self.lines())

    def describe(self) -> dict[str, Any]:
        """What a vectors file should remember about its text."""
        return {
            "direction": self.direction,
            "share": self.share,
            "seed": self.seed,
            "as_published": self.as_published,
            "keep_both": self.keep_both,
            "lines_kept": int(self.kept().sum()),
            **self.labels.counts(),
            "sets": {name: list(words) for name, words in self.labels.sets.items()},
        }

    def write(self, path: str | Path) -> int:
        """Write the lines that stay (packed as the name ends) and give their number."""
        number = 0
        with packed_writer(Path(path)) as out:
            for line in self.lines():
                out.write(line + "\n")
                number += 1
        return number


def balanced(
    labels: Labels,
    direction: str,
    share: float,
    *,
    seed: int = 0,
    as_published: bool = False,
    keep_both: bool = False,
) -> BalancedView:
    """A view of a labelled corpus that keeps a share of the stereotypical (or anti) lines.

    Args:
        labels: from `label_corpus` or `read_labels`.
        direction: "reduce" thins stereotypical lines out, "increase" anti-stereotypical ones.
        share: probability p that an affected line stays; 1 keeps everything.
        seed: same seed, same lines; a line's number u depends on nothing but seed and place.
        as_published: draw from Python's own generator, once per affected line, in order
            (the released code's seed is 20230220).
        keep_both: leave lines alone that are stereotypical and anti at once. The paper's rule
            treats them as affected in both directions.

    Raises:
        DataError: no line is affected. SpecError: a direction or share that does not exist.

    >>> import tempfile, pathlib
    >>> from evenhand.corpora import WordSets, label_corpus, open_corpus
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_text("the nurse lost her hat\\nthe nurse lost his hat\\nrain\\n")
    >>> test = WordSets("t", x=("driver",), y=("nurse",), a=("his",), b=("her",))
    >>> labels = label_corpus(open_corpus(file), test)
    >>> list(balanced(labels, "reduce", 0.0).lines())
    ['the nurse lost his hat', 'rain']
    >>> list(balanced(labels, "increase", 0.0).lines())
    ['the nurse lost her hat', 'rain']
    """
    if direction not in DIRECTIONS:
        raise SpecError(unknown("direction", direction, DIRECTIONS, where="balance"))
    if not 0 <= share <= 1:
        raise SpecError(f"share: {share!r}. Accepted: a probability from 0 to 1.")
    if seed < 0:
        raise SpecError(f"seed: {seed}. Accepted: 0 or more.")
    if not affected_lines(labels, direction, keep_both=keep_both).any():
        name, pairs = _PATTERN[direction]
        raise DataError(
            f"{labels.corpus.paths[0]}: none of {len(labels)} lines is {name} (holds words of "
            f"{pairs}), so there is nothing to leave out. See the counts with: "
            "evenhand corpus label"
        )
    return BalancedView(labels, direction, share, seed, as_published, keep_both)


_PATTERN = {
    "reduce": ("stereotypical", "T1 and A1, or T2 and A2"),
    "increase": ("anti-stereotypical", "T1 and A2, or T2 and A1"),
}


def affected_lines(
    labels: Labels, direction: str, *, keep_both: bool = False
) -> npt.NDArray[np.bool_]:
    """Lines of which only a share is kept, by line."""
    one, other = labels.stereotypical, labels.anti
    if direction == "increase":
        one, other = other, one
    return one & ~other if keep_both else one


def plan(
    labels: Labels,
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    as_published: bool = False,
    keep_both: bool = False,
) -> list[dict[str, Any]]:
    """Sizes of every sample in both directions: direction, share, affected, affected_kept, lines.

    Raises:
        DataError: no line is affected in either direction.
    """
    rows = []
    if not (labels.stereotypical | labels.anti).any():
        raise DataError(
            f"{labels.corpus.paths[0]}: no line holds words of a target and of an attribute set "
            f"together ({labels.counts()}), so there is nothing to balance. Use larger sets "
            "(evenhand words expand) or more text."
        )
    for direction in DIRECTIONS:
        affected = affected_lines(labels, direction, keep_both=keep_both)
        numbers = _numbers(affected, seed, as_published)
        for share in shares:
            stay = int((numbers < share).sum())
            rows.append(
                {
                    "direction": direction,
                    "share": share,
                    "affected": len(numbers),
                    "affected_kept": stay,
                    "lines": len(labels) - len(numbers) + stay,
                }
            )
    return rows


def _numbers(affected: npt.NDArray[np.bool_], seed: int, as_published: bool) -> Any:
    """The number u of every affected line, in order."""
    if as_published:
        return published_draws(int(affected.sum()), seed)
    return np.concatenate(
        [
            draws(low, len(affected), seed)[affected[low : low + _BLOCK]]
            for low in range(0, len(affected), _BLOCK)
        ]
    )


def draws(low: int, lines: int, seed: int) -> npt.NDArray[np.float64]:
    """The numbers u of up to 65,536 lines from line `low` (a multiple of 65,536) on.

    A counter-based generator keyed by seed and block: any block can be drawn on its own.
    """
    stream = np.random.Generator(np.random.Philox(key=[seed, low // _BLOCK]))
    return stream.random(min(_BLOCK, lines - low))


def published_draws(n: int, seed: int = PUBLISHED_SEED) -> npt.NDArray[np.float64]:
    """n numbers of Python's `random.seed(seed); random.random()`, as the released code draws.

    >>> random.seed(20230220)
    >>> [random.random() for _ in range(3)] == published_draws(3).tolist()
    True
    """
    state = random.Random(seed).getstate()[1]
    stream = np.random.RandomState()
    stream.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))
    return stream.random_sample(n)
