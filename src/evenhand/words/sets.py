"""Make word sets: candidates by PMI, expansion by nearest neighbours, dialect labels of texts.

Pointwise mutual information of words and labels under Naive Bayes:

    PMI(l, w) = log2 theta[l, w] - log2( sum over l' of mu[l'] theta[l', w] )

mu[l] is the share of documents with label l, theta[l, w] the share of label l's tokens that are w
(Kato and Miyao 2024, section 4). Maximum likelihood without smoothing: a word that a label never
uses has no PMI for it. A word only one label uses has PMI = -log2 mu[l], the largest value.

Expansion (section 5.3 of the paper) adds the ten nearest strings of each word, to be cleaned up by
hand; in the paper, words added to two sets at once stay in both. Here such a clash is dropped by
default, and every candidate is listed with its status.

Dialect of a text by the mixed-membership model of Blodgett et al. (2016). Each token's group is
hidden; a text's group shares are found by CVB0 over its tokens:

    lik[i, k] = (N[w_i, k] + 1) / N[k]         Q_i ~ lik_i * (sum over j != i of Q_j + alpha)

one token after the other, four sweeps after Q_i ~ lik_i. Its authors vouch for the African American
and White shares only. The model describes language of neighbourhoods, not of persons.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.text import open_corpus
from evenhand.errors import DataError, SpecError, unknown
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.words.lexicons.files import WordSets
from evenhand.words.names import NameLabel, label_names

__all__ = [
    "DialectModel",
    "Expansion",
    "NameLabel",
    "PmiRow",
    "as_toml",
    "candidates_by_label",
    "expand",
    "expand_tests",
    "label_names",
    "nearest",
    "pmi_candidates",
    "pmi_ranking",
    "pmi_table",
    "read_dialect_model",
]

DIGITS = 12
"""PMIs that agree to so many decimals are ties."""


@dataclass(frozen=True, slots=True)
class PmiRow:
    """PMI of a word under a label; `count` (tokens) and `documents` are totals of all labels."""

    label: str
    word: str
    pmi: float
    count: int
    documents: int
    theta: tuple[float, ...]


def pmi_table(
    documents: Iterable[Sequence[str]], labels: Iterable[object], *, floor: int = 10
) -> list[PmiRow]:
    """Return the PMI of every label and word that occurs in at least `floor` documents.

    Args:
        labels: the label of each document; shown as text.
        floor: documents a word must occur in, whatever their label.

    Returns:
        Rows by label, then word; `theta` in the order of the labels' names.

    >>> rows = pmi_table([["a", "b"], ["a", "a"], ["b", "c"]], [1, 1, 0], floor=1)
    >>> [(r.label, r.word, round(r.pmi, 3)) for r in rows]
    [('0', 'b', 0.585), ('0', 'c', 1.585), ('1', 'a', 0.585), ('1', 'b', -0.415)]
    """
    tokens: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for document, given in zip(documents, labels, strict=True):
        if isinstance(document, str):
            raise SpecError(f"pmi: a document is the text {document[:30]!r}; pass its tokens.")
        label = str(given)
        sizes[label] += 1
        tokens.setdefault(label, Counter()).update(document)
        spread.update(set(document))
    _check_documents(sizes, tokens, floor)
    names = sorted(sizes)
    share = {name: sizes[name] / sizes.total() for name in names}
    totals = {name: tokens[name].total() for name in names}
    rows = []
    for word in sorted(w for w, n in spread.items() if n >= floor):
        theta = tuple(tokens[name][word] / totals[name] for name in names)
        mixed = math.log2(sum(share[name] * value for name, value in zip(names, theta)))
        count = sum(tokens[name][word] for name in names)
        rows += [
            PmiRow(name, word, math.log2(value) - mixed, count, spread[word], theta)
            for name, value in zip(names, theta)
            if value
        ]
    return sorted(rows, key=lambda row: (row.label, row.word))


def pmi_ranking(
    rows: Iterable[PmiRow], label: object, *, as_published: bool = False
) -> list[PmiRow]:
    """Return a label's words, highest PMI first; ties by frequency, then alphabetically.

    PMIs that agree to 12 decimals are ties. `as_published` compares the raw numbers, where the
    last bit decides between words of one label, and falls back to the reverse alphabet.
    """
    held = list(rows)
    own = [row for row in held if row.label == str(label)]
    if not own:
        known = sorted({row.label for row in held})
        raise SpecError(unknown("label", str(label), known, where="pmi"))
    if as_published:
        return sorted(own, key=lambda r: (r.pmi, r.count, r.word), reverse=True)
    return sorted(own, key=lambda r: (-round(r.pmi, DIGITS), -r.count, r.word))


def pmi_candidates(
    rows: Iterable[PmiRow], label: object, top: int = 40, *, as_published: bool = False
) -> list[str]:
    """Return the first `top` words, from which a set is chosen by hand.

    Markers (<URL>), numbers and bare punctuation are left out; `as_published` keeps them.

    >>> rows = pmi_table([["a", "<URL>", "7"], ["b"]], ["x", "y"], floor=1)
    >>> pmi_candidates(rows, "x"), pmi_candidates(rows, "x", as_published=True)
    (['a'], ['a', '<URL>', '7'])
    """
    ranked = [row.word for row in pmi_ranking(rows, label, as_published=as_published)]
    return [word for word in ranked if as_published or is_word(word)][:top]


def candidates_by_label(
    rows: Sequence[PmiRow], top: int = 40, *, as_published: bool = False
) -> dict[str, list[PmiRow]]:
    """Return the first `top` candidates of every label, with their numbers."""
    found = {}
    for label in sorted({row.label for row in rows}):
        ranked = {r.word: r for r in pmi_ranking(rows, label, as_published=as_published)}
        kept = pmi_candidates(rows, label, top, as_published=as_published)
        found[label] = [ranked[word] for word in kept]
    return found


def is_word(token: str) -> bool:
    """Return True if a token is a word or an emoji, no marker, number or punctuation."""
    if token.startswith("<") and token.endswith(">"):
        return False
    return any(c.isalpha() or ord(c) > 0x2190 for c in token)


def _check_documents(sizes: Counter[str], tokens: dict[str, Counter[str]], floor: int) -> None:
    if floor < 1:
        raise SpecError(f"pmi: floor {floor}. Accepted: 1 document or more.")
    if len(sizes) < 2:
        raise DataError(
            f"pmi: {len(sizes)} label(s) ({', '.join(sizes)}). It compares at least two labels."
        )
    for label, counted in tokens.items():
        if not counted:
            raise DataError(f"pmi: the documents of label {label!r} hold no token.")


_ROWS = 8192


def nearest(
    table: VectorTable, queries: npt.NDArray[np.float32], k: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Return rows and cosines [queries, k] of the k nearest vectors, best first, ties by row.

    One matrix product per block of the vocabulary; a block's cosines are compared with the k-th
    best so far, so that nearly nothing is sorted. Vectors of zeros are never near.
    """
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    k = min(k, len(table))
    best = np.full((len(queries), k), -np.inf, np.float32)
    rows = np.full((len(queries), k), len(table), np.intp)
    for low in range(0, len(table), _ROWS):
        block = np.asarray(table.matrix[low : low + _ROWS], np.float32)
        length = np.linalg.norm(block, axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = unit @ np.where(length > 0, block / length, np.nan).T
        _merge(best, rows, cosine, low)
    return rows, best


def _merge(
    best: npt.NDArray[np.float32],
    rows: npt.NDArray[np.intp],
    cosine: npt.NDArray[np.float32],
    low: int,
) -> None:
    """Put a block's improvements into the k best, in place."""
    k = best.shape[1]
    query, place = np.nonzero(cosine > best[:, -1:])
    bounds = np.searchsorted(query, np.arange(len(best) + 1))
    for q in np.unique(query):
        found = place[bounds[q] : bounds[q + 1]]
        values = np.concatenate([best[q], cosine[q, found]])
        names = np.concatenate([rows[q], found + low])
        if len(values) > 4 * k:
            few = np.argpartition(-values, k)[: k + 1]
            few = np.flatnonzero(values >= values[few].min())
            values, names = values[few], names[few]
        order = np.lexsort((names, -values))[:k]
        best[q], rows[q] = values[order], names[order]


CLASHES = ("drop", "nearest", "keep", "error")
SETS = ("x", "y", "a", "b")
Near = Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True)
class Expansion:
    """Association test with expanded sets, and the status of every candidate.

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
        """Return the expanded sets and the status of every candidate as JSON values."""
        sets = {s: getattr(self.test, s) for s in SETS}
        return {
            "sets": sets,
            "candidates": self.candidates,
            "missing": self.missing,
            "clashes": self.clashes,
        }

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the number of words before and after, by set."""
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
    start = _in_lower_case(test, strict=not as_published)
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
    lowered = [_in_lower_case(test, strict=False) for test in tests]
    near = neighbours_of(lowered, vectors, neighbours)
    return {
        test.name: expand(test, vectors, neighbours=neighbours, near=near, **options)
        for test in tests
    }


def neighbours_of(
    tests: Sequence[WordSets], vectors: VectorTable | str, k: int
) -> dict[str, list[tuple[str, float]]]:
    """Return nearest strings with cosines for all words of some tests, without the word itself."""
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


def _in_lower_case(test: WordSets, *, strict: bool) -> WordSets:
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
    """Return the sets that each added word ends in."""
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
    """Return the expanded tests as a lexicon file for commands with --sets or --tests."""
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


GROUPS = ("african_american", "hispanic", "asian", "white")
VOCABULARY = "model_vocab.txt"
COUNTS = "model_count_table.txt"
ALPHA = 1.0
"""Weight of the uniform prior."""
SWEEPS = 4
"""Passes after the first guess (the released code's `numpasses` minus one)."""
LEAST_KNOWN = 0.2
"""Minimum share of a text's tokens in the table."""
_BATCH = 4096


@dataclass(frozen=True)
class DialectModel:
    """Count table of words by group that labels texts; read it with `read_dialect_model`."""

    words: dict[str, int] = field(repr=False)
    likelihood: npt.NDArray[np.float64] = field(repr=False)

    def shares(self, texts: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
        """Return group shares [texts, 4] in the order of `GROUPS`; NaN if too few words are known.

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
        """Return the group with the largest share of each text, or None below `least`."""
        shares = self.shares(texts)
        found: list[str | None] = []
        for row in shares:
            best = None if np.isnan(row[0]) else int(row.argmax())
            found.append(None if best is None or row[best] < least else GROUPS[best])
        return found

    def _solve(self, ids: list[list[int]]) -> npt.NDArray[np.float64]:
        """Run CVB0 for all texts at once, one token position after the other."""
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
    words = _read_vocabulary(_table_file(place, VOCABULARY))
    path = _table_file(place, COUNTS)
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


def _read_vocabulary(path: Path) -> list[str]:
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


def _table_file(folder: Path, name: str) -> Path:
    for suffix in ("", ".xz", ".gz", ".bz2", ".zst"):
        if (path := folder / (name + suffix)).is_file():
            return path
    raise DataError(
        f"{folder}: no {name} (plain, .xz or .gz) in this folder. Expected the model of "
        f"slanglab/twitteraae: {VOCABULARY} and {COUNTS}."
    )
