"""Label every line of a corpus once: which of four word sets does it touch?

    stereotypical = (T1 and A1) or (T2 and A2)        anti = (T1 and A2) or (T2 and A1)

(Kato and Miyao 2024, section 5.3, after Goldfarb-Tarrant et al. 2021.) The flags, one byte per
line, are all that later steps need: no copy of the corpus is ever made.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import map_array, save_array
from evenhand.corpora.files import Corpus, open_corpus
from evenhand.corpora.matching import Matcher
from evenhand.errors import DataError, SpecError
from evenhand.opening import decoded, read_object
from evenhand.runner.progress import Progress, Silent
from evenhand.words.lexicons.word_sets import WordSets, named_sets
from evenhand.writing import write_bytes

T1, T2, A1, A2 = 1, 2, 4, 8
FORMAT = 1


@dataclass(frozen=True)
class Labels:
    """Flags of every line of a corpus: bits 1, 2 for T1, T2 and 4, 8 for A1, A2.

    >>> found = Labels(np.array([5, 9, 13, 0], np.uint8), open_corpus(__file__), {})
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
        """Lines that touch all the sets given."""
        wanted = np.uint8(sum(bits))
        return np.asarray((self.flags & wanted) == wanted)

    @property
    def stereotypical(self) -> npt.NDArray[np.bool_]:
        """(T1 and A1) or (T2 and A2), by line."""
        return self.has(T1, A1) | self.has(T2, A2)

    @property
    def anti(self) -> npt.NDArray[np.bool_]:
        """(T1 and A2) or (T2 and A1), by line."""
        return self.has(T1, A2) | self.has(T2, A1)

    def counts(self) -> dict[str, int]:
        """Lines in all, by set, by pattern; `both` are lines with the two patterns at once."""
        found = {"lines": len(self.flags)}
        found |= {k: int(self.has(b).sum()) for k, b in zip(("t1", "t2", "a1", "a2"), (1, 2, 4, 8))}
        one, two = self.stereotypical, self.anti
        found |= {"stereotypical": int(one.sum()), "anti": int(two.sum())}
        found["both"] = int((one & two).sum())
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Every line's number, from 1, and flags."""
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
) -> Labels:
    """Label every line of a corpus in one pass; memory is one byte per line and a few blocks.

    Args:
        corpus: from `open_corpus`, cleaned: tokens stand between spaces.
        sets: targets x (T1), y (T2) and attributes a (A1), b (A2); words are lower-cased, and a
            word of several tokens matches where the tokens follow each other.
        fold: lower-case the text too (slower; for corpora that keep capitals).
        progress: told about megabytes read.

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
        raise DataError(_nothing(corpus, sets, len(flags), fold))
    return Labels(flags, corpus, named, corpus.fingerprint, fold)


def read_labels(folder: str | Path, *, corpus: Corpus | None = None) -> Labels:
    """Open labels that were saved; the flags are memory-mapped.

    Args:
        folder: where `save` put them.
        corpus: the labelled files, when they have moved since.

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
    return Labels(flags, corpus, card["sets"], card["corpus_fingerprint"], card["fold"])


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
) -> Labels:
    """Labels from a folder that holds them, or made from text and the word sets of that name."""
    if sets is not None:
        return label_corpus(open_corpus(paths), choose_sets(sets), fold=fold, progress=progress)
    if len(paths) == 1 and paths[0].is_dir() and (paths[0] / "labels.json").exists():
        return read_labels(paths[0])
    raise SpecError(
        f"{paths[0]}: balancing needs word sets. Pass --sets TEST (evenhand ls tests), or a "
        "folder made by: evenhand corpus label"
    )


def choose_sets(name: str | Path) -> WordSets:
    """Word sets by the name of a packaged test, or a .toml or .json file with one test.

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
    """Tells whole megabytes to a progress listener."""

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


def _nothing(corpus: Corpus, sets: WordSets, lines: int, fold: bool) -> str:
    words = ", ".join(repr(w) for w in (*sets.x[:2], *sets.a[:2]))
    hint = "" if fold else " If its text keeps capitals, clean it (evenhand corpus clean) or pass"
    return (
        f"{corpus.paths[0]}: none of {lines} lines holds a word of {sets.name!r} ({words}, "
        f"...).{hint}{' --fold.' if hint else ''} Tokens must be separated by spaces."
    )
