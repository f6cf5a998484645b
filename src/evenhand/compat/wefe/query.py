"""Input of WEFE's metrics: queries (lists of words with names) and models (named vectors)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.words.lexicons import WordSets


class Query:
    """Target sets and attribute sets with their names, as in WEFE.

    >>> query = Query([["he"], ["she"]], [["math"]], ["Male", "Female"], ["Math"])
    >>> query.template, query.query_name
    ((2, 1), 'Male and Female wrt Math')
    """

    def __init__(
        self,
        target_sets: Sequence[Sequence[str]],
        attribute_sets: Sequence[Sequence[str]],
        target_sets_names: Sequence[str] | None = None,
        attribute_sets_names: Sequence[str] | None = None,
    ) -> None:
        self.target_sets = _lists(target_sets, "target")
        self.attribute_sets = _lists(attribute_sets, "attribute")
        if not self.target_sets:
            raise SpecError("Query: no target set is given. Accepted: one list of words or more.")
        self.template = (len(self.target_sets), len(self.attribute_sets))
        self.target_sets_names = _names(target_sets_names, self.template[0], "Target")
        self.attribute_sets_names = _names(attribute_sets_names, self.template[1], "Attribute")
        self.query_name = _joined(self.target_sets_names)
        if self.attribute_sets_names:
            self.query_name += f" wrt {_joined(self.attribute_sets_names)}"

    @classmethod
    def of(cls, test: WordSets) -> Query:
        """Return an association test of evenhand as a query.

        >>> from evenhand.words.lexicons import weat
        >>> Query.of(weat("weat7")).query_name
        'math and arts wrt male terms and female terms'
        """
        return cls(
            [list(test.x), list(test.y)],
            [list(test.a), list(test.b)],
            [test.x_label, test.y_label],
            [test.a_label, test.b_label],
        )

    def get_subqueries(self, new_template: tuple[int | str, int | str]) -> list[Query]:
        """Return all queries of a smaller template over the sets of this query."""
        sizes = [
            own if wanted == "n" else int(wanted)
            for own, wanted in zip(self.template, new_template, strict=True)
        ]
        if any(want > own for own, want in zip(self.template, sizes, strict=True)):
            raise SpecError(
                f"Query {self.query_name!r}: template {self.template} has too few sets for "
                f"{tuple(new_template)}."
            )
        targets = list(combinations(range(self.template[0]), sizes[0]))
        attributes = list(combinations(range(self.template[1]), sizes[1]))
        return [
            Query(
                [self.target_sets[k] for k in some],
                [self.attribute_sets[k] for k in others],
                [self.target_sets_names[k] for k in some],
                [self.attribute_sets_names[k] for k in others],
            )
            for some in targets
            for others in attributes
        ]

    def dict(self) -> dict[str, Any]:
        """Return the query as plain lists."""
        return {
            "target_sets": self.target_sets,
            "attribute_sets": self.attribute_sets,
            "target_sets_names": self.target_sets_names,
            "attribute_sets_names": self.attribute_sets_names,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.dict() == other.dict()

    def __hash__(self) -> int:
        return hash(repr(self.dict()))

    def __repr__(self) -> str:
        return (
            f"<Query: {self.query_name}\n- Target sets: {self.target_sets}\n"
            f"- Attribute sets:{self.attribute_sets}>"
        )


def _lists(sets: Any, kind: str) -> list[list[str]]:
    if isinstance(sets, str) or not hasattr(sets, "__len__"):
        raise SpecError(f"Query: {kind}_sets is {type(sets).__name__}. Accepted: lists of words.")
    out = []
    for place, words in enumerate(sets):
        if isinstance(words, str) or not hasattr(words, "__len__"):
            raise SpecError(
                f"Query: {kind} set {place} is {type(words).__name__} {words!r}. "
                "Accepted: a list of words."
            )
        for word in words:
            if not isinstance(word, str):
                raise SpecError(f"Query: {kind} set {place}: {word!r} is not a word.")
        if not len(words):
            raise SpecError(f"Query: {kind} set {place} is empty. Accepted: one word or more.")
        out.append([str(word) for word in words])
    return out


def _names(names: Sequence[str] | None, count: int, kind: str) -> list[str]:
    if names is None:
        return [f"{kind} set {k}" for k in range(count)]
    if len(names) != count:
        raise SpecError(
            f"Query: {len(names)} names for {count} {kind.lower()} sets. Accepted: one name a set."
        )
    return [str(name) for name in names]


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


Floats = npt.NDArray[np.float64]
Preprocessor = Mapping[str, str | bool | Callable[[str], str]]


class Stacked(dict[str, Floats]):
    """Vectors by word, backed by one array with a row per word in the same order."""

    rows: Floats | None = None


class WordEmbeddingModel:
    """Word vectors with a name, looked up by WEFE's rules.

    Args:
        wv: gensim KeyedVectors, a table of evenhand, a vector file or folder, an alias such as
            "glove-6b-50d", or a mapping from words to vectors.
        name: how results call it.
        vocab_prefix: put before every word that is looked up (such as "/c/en/").

    >>> model = WordEmbeddingModel({"he": [1.0, 0.0], "she": [0.0, 1.0]}, "toy")
    >>> "he" in model, model["she"].tolist(), len(model)
    (True, [0.0, 1.0], 2)
    """

    def __init__(self, wv: Any, name: str | None = None, vocab_prefix: str | None = None) -> None:
        self.wv = wv
        self.vocab_prefix = vocab_prefix
        self._index, self._matrix = _opened(wv)
        self.name = name if name is not None else "Unnamed model"

    def __len__(self) -> int:
        return len(self._matrix)

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def __getitem__(self, key: str) -> Floats:
        if key not in self._index:
            raise KeyError(f"word {key!r} is not in the vocabulary of {self.name!r}.")
        return np.asarray(self._matrix[self._index[key]], np.float64)

    def get(self, word: str, default: Any = None) -> Any:
        """Return the vector of a word, or the default."""
        row = self._index.get(word)
        return default if row is None else np.asarray(self._matrix[row], np.float64)

    def __repr__(self) -> str:
        return f"<WordEmbeddingModel named {self.name!r}: {len(self)} words>"

    def find(
        self,
        words: Sequence[str],
        *,
        preprocessors: Sequence[Preprocessor] = ({},),
        strategy: str = "first",
    ) -> tuple[dict[str, Floats], list[str]]:
        """Return vectors by the spelling found, and the words without a vector, by WEFE's rules.

        Each word is tried through the preprocessors in order; "first" takes the first spelling
        found, "all" takes all. A term of several words that is not in the vocabulary is the mean
        of its words when it has them all (WEFE counts it as lost).
        """
        if strategy not in ("first", "all"):
            raise SpecError(f"strategy: {strategy!r}. Accepted: first, all.")
        if [dict(p) for p in preprocessors] == [{}]:
            return self._as_spelled(words)
        found: dict[str, Floats] = {}
        lost = []
        for word in words:
            hits = []
            for options in preprocessors:
                spelling = spelled(word, options)
                vector = self._vector(spelling)
                if vector is not None:
                    hits.append((spelling, vector))
                    if strategy == "first":
                        break
            found |= dict(hits)
            if not hits:
                lost.append(word)
        return found, lost

    def _as_spelled(self, words: Sequence[str]) -> tuple[dict[str, Floats], list[str]]:
        """Look up words without preprocessing: take all rows of the matrix in one call."""
        prefix, get = self.vocab_prefix or "", self._index.get
        places = [get(prefix + word) for word in words]
        rows = np.asarray(self._matrix[[k for k in places if k is not None]], np.float64)
        sound = np.logical_and(np.isfinite(rows).all(axis=1), rows.any(axis=1))
        if len(rows) == len(words) and sound.all():
            whole = Stacked(zip(words, rows, strict=True))
            whole.rows = rows if len(whole) == len(words) else None  # none: a word stands twice
            return whole, []
        good, each = iter(sound), iter(rows)
        found: dict[str, Floats] = {}
        lost = []
        for word, place in zip(words, places):
            vector = self._vector(word) if place is None else next(each)
            if vector is None or (place is not None and not next(good)):
                lost.append(word)
            else:
                found[word] = vector
        return found, lost

    def _vector(self, word: str) -> Floats | None:
        whole = self.get((self.vocab_prefix or "") + word)
        if whole is None and " " in word.strip():
            parts = [self.get((self.vocab_prefix or "") + part) for part in word.split()]
            whole = None if any(p is None for p in parts) else np.mean(parts, axis=0)
        # A vector of zeros has no direction.
        return whole if whole is not None and np.isfinite(whole).all() and whole.any() else None


def spelled(word: str, options: Preprocessor) -> str:
    """Preprocess a word as WEFE does.

    Options: lowercase, uppercase, titlecase, strip_accents, or a function under `preprocessor`.

    >>> spelled("Élan", {"lowercase": True, "strip_accents": True})
    'elan'
    """
    known = {"lowercase", "uppercase", "titlecase", "strip_accents", "preprocessor"}
    if unknown := set(options) - known:
        raise SpecError(
            f"preprocessors: {', '.join(map(repr, sorted(unknown)))} is unknown. Accepted: "
            f"{', '.join(sorted(known))}."
        )
    function = options.get("preprocessor")
    if callable(function):
        return str(function(word))
    if options.get("lowercase"):
        word = word.lower()
    elif options.get("uppercase"):
        word = word.upper()
    elif options.get("titlecase"):
        word = word.title()
    if options.get("strip_accents"):
        word = "".join(
            c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)
        )
        if options["strip_accents"] == "ascii":
            word = word.encode("ascii", "ignore").decode()
    return word


def _opened(wv: Any) -> tuple[Mapping[str, int], Any]:
    if isinstance(wv, Mapping):
        matrix = np.array(list(wv.values()), np.float64)
        if matrix.ndim != 2:
            raise SpecError("WordEmbeddingModel: vectors of the mapping have different lengths.")
        return {word: k for k, word in enumerate(wv)}, matrix
    if hasattr(wv, "key_to_index") and hasattr(wv, "vectors"):
        return wv.key_to_index, wv.vectors
    if isinstance(wv, str | Path):
        wv = open_vectors(resolve_vectors(wv))
    if isinstance(wv, VectorTable):
        return wv.index, wv.matrix
    raise SpecError(
        f"WordEmbeddingModel: {type(wv).__name__} is not a set of vectors. Accepted: gensim "
        "KeyedVectors, a vector file or folder, an alias such as 'glove-6b-50d', a mapping."
    )
