"""Label the lines of a corpus by stereotype, and leave a share of some lines out.

Every line is labelled once: which of four word sets does it touch?

    stereotypical = (T1 and A1) or (T2 and A2)        anti = (T1 and A2) or (T2 and A1)

(Kato and Miyao 2024, section 5.3, after Goldfarb-Tarrant et al. 2021.) The flags, one byte per
line, are all that later steps need: no copy of the corpus is ever made.

    reduce(p):   keep each stereotypical line with probability p, keep all other lines
    increase(p): keep each anti-stereotypical line with probability p, keep all other lines

The paper's own verbs for the two directions are quoted in docs/papers/kato-miyao.md. Every line
has one number u in [0, 1), and an affected line is kept if u < p: samples are nested in p, and a
line has the same u in both directions.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import map_array, save_array
from evenhand.corpora.text import Corpus, open_corpus, sentences
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import decoded, read_object
from evenhand.runner.progress import Progress, Silent
from evenhand.words.lexicons.files import WordSets, named_sets
from evenhand.writing import packed_writer, write_bytes


class Matcher:
    """Finder of the words of up to eight sets; set number k is bit 1 << k of a line's flags.

    A word of several tokens ("construction worker") matches where its tokens follow each other.

    Args:
        sets: lists of words by name; the order gives the bits.
        lower: lower-case the words, as the corpora are.

    >>> find = Matcher({"jobs": ["nurse", "construction worker"], "she": ["she", "her"]})
    >>> find.flags(b"she is a nurse\\na worker\\nher construction worker\\n").tolist()
    [3, 0, 3]
    """

    def __init__(self, sets: Mapping[str, Sequence[str]], *, lower: bool = True) -> None:
        import pyarrow as pa

        if not 1 <= len(sets) <= 8:
            raise SpecError(f"{len(sets)} sets of words. Accepted: 1 to 8.")
        numbers: dict[str, int] = {}
        words: dict[tuple[int, ...], int] = {}
        for bit, (name, listed) in enumerate(sets.items()):
            if not listed:
                raise SpecError(f"set {name!r}: no words.")
            for word in listed:
                tokens = (word.lower() if lower else word).split()
                if not tokens:
                    raise SpecError(f"set {name!r}: {word!r} holds no token.")
                key = tuple(numbers.setdefault(token, len(numbers)) for token in tokens)
                words[key] = words.get(key, 0) | 1 << bit
        self._tokens = pa.array(list(numbers), pa.large_string())
        self._bits = np.zeros(len(numbers) + 1, np.uint8)  # the last one is that of other tokens
        for (number, *others), bits in words.items():
            if not others:
                self._bits[number] = bits
        self._phrases = {key: bits for key, bits in words.items() if len(key) > 1}

    def flags(self, block: bytes) -> npt.NDArray[np.uint8]:
        """Return one number per line of a UTF-8 block that ends in a line feed."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        bounds = np.concatenate([[0], ends]).astype(np.int64)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
        lines = pa.Array.from_buffers(pa.large_string(), len(ends), buffers)
        split = pc.utf8_split_whitespace(lines)
        numbers = pc.index_in(split.values, value_set=self._tokens)
        numbers = pc.fill_null(numbers, len(self._tokens)).to_numpy(zero_copy_only=False)
        starts = split.offsets.to_numpy()[:-1]  # no list is empty: each line holds its line feed
        flags = np.bitwise_or.reduceat(self._bits[numbers], starts)
        for phrase, bits in self._phrases.items():
            here = np.flatnonzero(numbers[: len(numbers) - len(phrase) + 1] == phrase[0])
            for step, token in enumerate(phrase[1:], start=1):
                here = here[numbers[here + step] == token]
            flags[np.searchsorted(starts, here, side="right") - 1] |= bits
        return flags


T1, T2, A1, A2 = 1, 2, 4, 8
FORMAT = 1


@dataclass(frozen=True)
class LineFlags:
    """One byte of flags for every line of a corpus: bits 1, 2 for T1, T2 and 4, 8 for A1, A2.

    >>> found = LineFlags(np.array([5, 9, 13, 0], np.uint8), open_corpus(__file__), {})
    >>> found.stereotypical.tolist(), found.anti.tolist()
    ([True, False, True, False], [False, True, True, False])
    """

    flags: npt.NDArray[np.uint8] = field(repr=False)
    corpus: Corpus
    sets: Mapping[str, Sequence[str]]
    corpus_fingerprint: str = ""
    fold: bool = False

    def __len__(self) -> int:
        return len(self.flags)

    def has(self, *bits: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the lines that touch all the sets."""
        wanted = np.uint8(sum(bits))
        return np.asarray((self.flags & wanted) == wanted)

    @property
    def stereotypical(self) -> npt.NDArray[np.bool_]:
        """A mask of the lines with (T1 and A1) or (T2 and A2)."""
        return self.has(T1, A1) | self.has(T2, A2)

    @property
    def anti(self) -> npt.NDArray[np.bool_]:
        """A mask of the lines with (T1 and A2) or (T2 and A1)."""
        return self.has(T1, A2) | self.has(T2, A1)

    def counts(self) -> dict[str, int]:
        """Count lines: all, by set, by pattern; `both` are lines with the two patterns at once."""
        found = {"lines": len(self.flags)}
        found |= {k: int(self.has(b).sum()) for k, b in zip(("t1", "t2", "a1", "a2"), (1, 2, 4, 8))}
        one, two = self.stereotypical, self.anti
        found |= {"stereotypical": int(one.sum()), "anti": int(two.sum())}
        found["both"] = int((one & two).sum())
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per line: its number, from 1, and its flags."""
        one, two = self.stereotypical.tolist(), self.anti.tolist()
        bits = {"t1": T1, "t2": T2, "a1": A1, "a2": A2}
        return [
            {
                "line": k + 1,
                **{name: bool(f & bit) for name, bit in bits.items()},
                "stereotypical": one[k],
                "anti": two[k],
            }
            for k, f in enumerate(self.flags.tolist())
        ]

    def save(self, folder: str | Path) -> Path:
        """Write `flags.npy` and `labels.json` into a folder; `read_labels` opens it."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        held = io.BytesIO()
        save_array(held, self.flags)
        write_bytes(place / "flags.npy", held.getvalue())
        card = {
            "format": FORMAT,
            "corpus": list(self.corpus.paths),
            "corpus_fingerprint": self.corpus_fingerprint,
            "fold": self.fold,
            "sets": {name: list(words) for name, words in self.sets.items()},
            "counts": self.counts(),
        }
        text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
        write_bytes(place / "labels.json", text.encode())
        return place


def label_corpus(
    corpus: Corpus,
    sets: WordSets,
    *,
    fold: bool = False,
    progress: Progress | None = None,
) -> LineFlags:
    """Label every line of a corpus in one pass; memory is one byte per line and a few blocks.

    Args:
        corpus: from `open_corpus`, cleaned: tokens stand between spaces.
        sets: targets x (T1), y (T2) and attributes a (A1), b (A2); words are lower-cased, and a
            word of several tokens matches where the tokens follow each other.
        fold: lower-case the text too (slower; for corpora that keep capitals).
        progress: is advanced by megabytes read.

    Raises:
        DataError: no line holds a word of any set, or the corpus cannot be read.
    """
    named = {"t1": sets.x, "t2": sets.y, "a1": sets.a, "a2": sets.b}
    find = Matcher(named)
    told = _Megabytes(progress or Silent(), corpus.bytes_on_disk)
    parts = []
    for path, block in corpus.blocks(watch=told.read):
        text = decoded(block, path)
        if fold:
            block = text.lower().encode()
        parts.append(find.flags(block))
    told.finish()
    flags = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
    if not flags.any():
        raise DataError(_no_match(corpus, sets, len(flags), fold))
    return LineFlags(flags, corpus, named, corpus.fingerprint, fold)


def read_labels(folder: str | Path, *, corpus: Corpus | None = None) -> LineFlags:
    """Open labels written by `LineFlags.save`; the flags are memory-mapped.

    Args:
        folder: where `save` wrote them.
        corpus: the labelled files, if they have moved since.

    Raises:
        DataError: not a folder of labels, or the corpus has changed since.
    """
    place = Path(folder)
    try:
        card = read_object(place / "labels.json")
        flags = map_array(place / "flags.npy")
    except DataError as error:
        raise DataError(
            f"{place}: no labels here ({error}) Make them with: "
            f"evenhand corpus label CORPUS --sets TEST --out {place}"
        ) from error
    if card.get("format") != FORMAT or flags.dtype != np.uint8 or flags.ndim != 1:
        raise DataError(f"{place}: labels of another format ({card.get('format')!r}).")
    _check_card(place, card)
    corpus = corpus or open_corpus(card["corpus"])
    if corpus.fingerprint != card["corpus_fingerprint"]:
        raise DataError(
            f"{place}: the corpus has changed since it was labelled. Label it again with: "
            f"evenhand corpus label {' '.join(card['corpus'][:3])} --sets TEST --out {place}"
        )
    return LineFlags(flags, corpus, card["sets"], card["corpus_fingerprint"], card["fold"])


def _check_card(place: Path, card: Mapping[str, Any]) -> None:
    sets, files = card.get("sets"), card.get("corpus")
    good = isinstance(sets, dict) and isinstance(files, list) and isinstance(card.get("fold"), bool)
    good = good and all(
        isinstance(f, str) for f in (*(files or ()), card.get("corpus_fingerprint"))
    )
    if not good or not all(isinstance(words, list) for words in (sets or {}).values()):
        raise DataError(
            f"{place}/labels.json: not as it was written. Label the corpus again with: evenhand "
            f"corpus label CORPUS --sets TEST --out DIR"
        )


def labels_of(
    paths: Sequence[Path],
    sets: str | None,
    *,
    fold: bool = False,
    progress: Progress | None = None,
) -> LineFlags:
    """Read labels from a folder, or label text with the word sets called `sets`."""
    if sets is not None:
        return label_corpus(open_corpus(paths), choose_sets(sets), fold=fold, progress=progress)
    if len(paths) == 1 and paths[0].is_dir() and (paths[0] / "labels.json").exists():
        return read_labels(paths[0])
    raise SpecError(
        f"{paths[0]}: balancing needs word sets. Pass --sets TEST (evenhand ls tests), or a "
        "folder made by: evenhand corpus label"
    )


def choose_sets(name: str | Path) -> WordSets:
    """Return the word sets of a packaged test, or of a .toml or .json file with one test.

    >>> choose_sets("kato_winobias").a
    ('he', 'him')
    """
    tests = named_sets(name)
    if len(tests) != 1:
        raise SpecError(
            f"{name}: {len(tests)} tests ({', '.join(t.name for t in tests)}). Expected one table "
            "with the lists x, y, a, b; balancing follows one test at a time."
        )
    return tests[0]


class _Megabytes:
    """Adapter that reports bytes to a progress listener as whole megabytes."""

    def __init__(self, progress: Progress, size: int) -> None:
        self._progress, self._seen, self._told = progress, 0, 0
        self._total = max(1, size >> 20)
        progress.start("labels (MB)", self._total, 0)

    def read(self, more: int) -> None:
        self._seen += more
        done = min(self._seen >> 20, self._total)
        self._progress.advance(done - self._told)
        self._told = done

    def finish(self) -> None:
        self._progress.advance(self._total - self._told)
        self._progress.finish()


def _no_match(corpus: Corpus, sets: WordSets, lines: int, fold: bool) -> str:
    words = ", ".join(repr(w) for w in (*sets.x[:2], *sets.a[:2]))
    hint = "" if fold else " If its text keeps capitals, clean it (evenhand corpus clean) or pass"
    return (
        f"{corpus.paths[0]}: none of {lines} lines holds a word of {sets.name!r} ({words}, "
        f"...).{hint}{' --fold.' if hint else ''} Tokens must be separated by spaces."
    )


DIRECTIONS = ("reduce", "increase")
SHARES = tuple(k / 10 for k in range(10))
PUBLISHED_SEED = 20230220
_BLOCK = 1 << 16


@dataclass(frozen=True)
class BalancedView:
    """Sample of the lines of a corpus. Iterating gives the tokens of each line, as often as needed.

    Nothing is copied: each pass reads the files again and skips lines outside the sample.
    """

    labels: LineFlags
    direction: str
    share: float
    seed: int = 0
    as_published: bool = False
    keep_both: bool = False

    @property
    def corpus(self) -> Corpus:
        """The files that the sample is taken from."""
        return self.labels.corpus

    def kept(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the lines in the sample."""
        affected = affected_lines(self.labels, self.direction, keep_both=self.keep_both)
        if self.as_published:
            mask = ~affected
            mask[affected] = published_uniforms(int(affected.sum()), self.seed) < self.share
            return mask
        return np.concatenate(
            [
                ~affected[low : low + _BLOCK]
                | (line_uniforms(low, len(affected), self.seed) < self.share)
                for low in range(0, len(affected), _BLOCK)
            ]
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines of the sample, without their line feed."""
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
        """Return the facts that a file of vectors records about its training text."""
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
        """Write the lines of the sample (packed as the name ends) and return their number."""
        number = 0
        with packed_writer(Path(path)) as out:
            for line in self.lines():
                out.write(line + "\n")
                number += 1
        return number


def balanced(
    labels: LineFlags,
    direction: str,
    share: float,
    *,
    seed: int = 0,
    as_published: bool = False,
    keep_both: bool = False,
) -> BalancedView:
    """Return a view of a labelled corpus that keeps a share of the stereotypical (or anti) lines.

    Args:
        labels: from `label_corpus` or `read_labels`.
        direction: "reduce" thins stereotypical lines out, "increase" anti-stereotypical ones.
        share: probability p that an affected line stays; 1 keeps everything.
        seed: same seed, same lines; a line's number u depends only on seed and place.
        as_published: draw from Python's own generator, once per affected line, in order
            (the released code's seed is 20230220).
        keep_both: keep lines that are stereotypical and anti at once. The paper's rule treats
            them as affected in both directions.

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
    labels: LineFlags, direction: str, *, keep_both: bool = False
) -> npt.NDArray[np.bool_]:
    """Return a mask of the lines of which only a share is kept."""
    one, other = labels.stereotypical, labels.anti
    if direction == "increase":
        one, other = other, one
    return one & ~other if keep_both else one


def plan(
    labels: LineFlags,
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    as_published: bool = False,
    keep_both: bool = False,
) -> list[dict[str, Any]]:
    """Return sizes of all samples: direction, share, affected, affected_kept, lines.

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
    """Return the number u of every affected line, in order."""
    if as_published:
        return published_uniforms(int(affected.sum()), seed)
    return np.concatenate(
        [
            line_uniforms(low, len(affected), seed)[affected[low : low + _BLOCK]]
            for low in range(0, len(affected), _BLOCK)
        ]
    )


def line_uniforms(low: int, lines: int, seed: int) -> npt.NDArray[np.float64]:
    """Return the numbers u of up to 65,536 lines from line `low` (a multiple of 65,536) on.

    The generator is counter-based and keyed by seed and block, so any block can be drawn alone.
    """
    stream = np.random.Generator(np.random.Philox(key=[seed, low // _BLOCK]))
    return stream.random(min(_BLOCK, lines - low))


def published_uniforms(n: int, seed: int = PUBLISHED_SEED) -> npt.NDArray[np.float64]:
    """Return n numbers of Python's `random.seed(seed); random.random()`, as the released code does.

    >>> random.seed(20230220)
    >>> [random.random() for _ in range(3)] == published_uniforms(3).tolist()
    True
    """
    state = random.Random(seed).getstate()[1]
    stream = np.random.RandomState()
    stream.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))
    return stream.random_sample(n)
