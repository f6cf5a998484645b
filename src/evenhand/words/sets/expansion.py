"""Larger word sets: add the nearest neighbours of every word, checking that sets do not clash.

Kato and Miyao (2024, section 5.3) add the ten nearest strings of each word and clean up by hand;
words added to two sets at once stay in both there. Here such a clash is dropped by default, and
every candidate is listed with what became of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import DataError, SpecError, unknown
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.words.lexicons.word_sets import WordSets
from evenhand.words.sets.neighbours import nearest

CLASHES = ("drop", "nearest", "keep", "error")
SETS = ("x", "y", "a", "b")
Near = Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True)
class Expansion:
    """A test with larger sets, and how they came about.

    `candidates` has one row per set, word and neighbour: `set, word, neighbour, cosine, status`
    with status "added", "already in a set", "clash", "no word" or "removed by hand". `missing`
    are words without a vector: they stay in their set and bring no neighbours.
    """

    test: WordSets
    original: WordSets
    candidates: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]
    clashes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The larger sets, and how they came about, as JSON values."""
        sets = {s: getattr(self.test, s) for s in SETS}
        return {
            "sets": sets,
            "candidates": self.candidates,
            "missing": self.missing,
            "clashes": self.clashes,
        }

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Words before and after, by set."""
        return {s: (len(getattr(self.original, s)), len(getattr(self.test, s))) for s in SETS}


def expand(
    test: WordSets,
    vectors: VectorTable | str,
    *,
    neighbours: int = 10,
    clashes: str = "drop",
    remove: Sequence[str] = (),
    as_published: bool = False,
    near: Near | None = None,
) -> Expansion:
    """Add to each set of a test the nearest neighbours of its words.

    Words come out in lower case, each once; the words given come first, in their order.

    Args:
        test: the four sets.
        vectors: a table, a vector file, or an alias such as "glove-6b-50d".
        neighbours: strings to consider per word, the word itself left out.
        clashes: a neighbour of two sets is put into none ("drop"), into that of the most similar
            word ("nearest"), into both ("keep"), or stops the work ("error").
        remove: words not to add, chosen by hand.
        as_published: clashes stay in both sets, and neighbours that are no words (numbers,
            punctuation) or only a part of the term itself are not left out.
        near: neighbours found before, by word (see `expand_tests`).

    Raises:
        DataError: a set has no word in the vectors, or two sets share a word.
        SpecError: an unknown way to treat clashes, or "error" was asked and there are clashes.
    """
    if clashes not in CLASHES:
        raise SpecError(unknown("way to treat clashes", clashes, CLASHES, where="--clashes"))
    if as_published:
        clashes = "keep"
    start = _lowered(test, strict=not as_published)
    if near is None:
        near = neighbours_of([start], vectors, neighbours)
    missing = _missing(start, near)
    rows = _candidates(start, near, neighbours, set(map(str.lower, remove)), as_published)
    taken: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["status"] == "added":
            best = taken.setdefault(row["neighbour"], {})
            best[row["set"]] = max(best.get(row["set"], -1.0), row["cosine"])
    shared = sorted(word for word, sides in taken.items() if len(sides) > 1)
    if shared and clashes == "error":
        raise SpecError(_clash_message(test.name, shared, taken))
    home = _homes(taken, clashes)
    for row in rows:
        if row["status"] == "added" and row["set"] not in home[row["neighbour"]]:
            row["status"] = "clash"
    grown = {s: tuple(dict.fromkeys([*getattr(start, s), *_added(rows, s)])) for s in SETS}
    return Expansion(
        replace(start, x=grown["x"], y=grown["y"], a=grown["a"], b=grown["b"]),
        start,
        tuple(rows),
        missing,
        tuple(shared),
    )


def expand_tests(
    tests: Sequence[WordSets], vectors: VectorTable | str, *, neighbours: int = 10, **options: Any
) -> dict[str, Expansion]:
    """Expand many tests with one pass over the vocabulary; options as for `expand`."""
    lowered = [_lowered(test, strict=False) for test in tests]
    near = neighbours_of(lowered, vectors, neighbours)
    return {
        test.name: expand(test, vectors, neighbours=neighbours, near=near, **options)
        for test in tests
    }


def neighbours_of(
    tests: Sequence[WordSets], vectors: VectorTable | str, k: int
) -> dict[str, list[tuple[str, float]]]:
    """Nearest strings and cosines of all words of some tests, the word itself left out."""
    if k < 1:
        raise SpecError(f"neighbours: {k}. Accepted: 1 or more.")
    if not isinstance(vectors, VectorTable):
        vectors = open_vectors(resolve_vectors(vectors))
    asked = list(dict.fromkeys(w for t in tests for s in SETS for w in getattr(t, s)))
    vectors.prefetch(asked)
    found = {word: vectors.find([word]) for word in asked}
    held = [word for word in asked if found[word].words]
    if not held:
        return {}
    queries = np.concatenate([found[word].rows for word in held])
    spare = 1 + max(len(word.split()) for word in held)
    rows, cosines = nearest(vectors, queries, k + spare)
    names = vectors.words.take(rows[rows < len(vectors)].ravel()).to_pylist()
    near, at = {}, 0
    for word, row, values in zip(held, rows, cosines.tolist()):
        size = int((row < len(vectors)).sum())
        strings = zip(names[at : at + size], values)
        near[word] = [(s, v) for s, v in strings if s.lower() != word]
        at += size
    return near


def _lowered(test: WordSets, *, strict: bool) -> WordSets:
    sets = {s: tuple(dict.fromkeys(w.lower() for w in getattr(test, s))) for s in SETS}
    for i, one in enumerate(SETS):
        for other in SETS[i + 1 :]:
            both = sorted(set(sets[one]) & set(sets[other]))
            if both and strict:
                raise DataError(
                    f"test {test.name!r}: {both[0]!r} is in set {one!r} and in set {other!r}. "
                    "Take it out of one of them before the sets are expanded."
                )
    return replace(test, x=sets["x"], y=sets["y"], a=sets["a"], b=sets["b"])


def _missing(test: WordSets, near: Near) -> tuple[str, ...]:
    for s in SETS:
        if not any(word in near for word in getattr(test, s)):
            raise DataError(
                f"test {test.name!r}: none of the words of set {s!r} has a vector "
                f"({', '.join(repr(w) for w in getattr(test, s)[:5])}). "
                "Pass vectors that know them, e.g. --vectors glove-6b-50d"
            )
    return tuple(dict.fromkeys(w for s in SETS for w in getattr(test, s) if w not in near))


def _candidates(
    test: WordSets, near: Near, k: int, removed: set[str], as_published: bool
) -> list[dict[str, Any]]:
    own = {word for s in SETS for word in getattr(test, s)}
    rows = []
    for s in SETS:
        for word in getattr(test, s):
            parts = set() if as_published else set(word.split())
            listed = [n for n in near.get(word, ()) if n[0].lower() not in parts][:k]
            for string, cosine in listed:
                name = string.lower()
                status = "added"
                if name in own:
                    status = "already in a set"
                elif name in removed:
                    status = "removed by hand"
                elif not as_published and not name.replace("-", "").replace("'", "").isalpha():
                    status = "no word"
                rows.append(
                    {
                        "set": s,
                        "word": word,
                        "neighbour": name,
                        "cosine": float(cosine),
                        "status": status,
                    }
                )
    return rows


def _homes(taken: Mapping[str, Mapping[str, float]], clashes: str) -> dict[str, set[str]]:
    """The sets each added word ends in."""
    found = {}
    for word, sides in taken.items():
        homes = set(sides)
        if len(sides) > 1 and clashes == "drop":
            homes = set()
        elif clashes == "nearest":
            homes = {max(sorted(sides), key=lambda s: sides[s])}
        found[word] = homes
    return found


def _added(rows: Sequence[Mapping[str, Any]], s: str) -> list[str]:
    return [row["neighbour"] for row in rows if row["set"] == s and row["status"] == "added"]


def _clash_message(name: str, shared: list[str], taken: Mapping[str, Mapping[str, float]]) -> str:
    word = shared[0]
    return (
        f"test {name!r}: {len(shared)} neighbours belong to more than one set, e.g. {word!r} to "
        f"{' and '.join(sorted(taken[word]))}. Use --clashes drop, nearest or keep, or take it "
        f"out with --remove {word}"
    )


def as_toml(expansions: Mapping[str, Expansion], vectors: str) -> str:
    """The expanded tests as a lexicon file that every command with --sets or --tests reads."""
    lines = [
        'title = "Expanded word sets"',
        'kind = "word_sets"',
        f"source = {json.dumps(f'evenhand words expand over {vectors}')}",
        'licence = "See the sets and vectors it was made from"',
        'caveats = ["Neighbours were added by cosine similarity and not chosen by hand."]',
    ]
    for name, made in expansions.items():
        lines += ["", f"[tests.{json.dumps(name)}]"]
        for key in ("measures", "social", "x_label", "y_label", "a_label", "b_label"):
            lines.append(f"{key} = {json.dumps(getattr(made.test, key), ensure_ascii=False)}")
        for s in SETS:
            lines.append(f"{s} = {json.dumps(getattr(made.test, s), ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
