"""Word vectors under WEFE's name, and its way of looking words up."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors

Floats = npt.NDArray[np.float64]
Preprocessor = Mapping[str, str | bool | Callable[[str], str]]


class Stacked(dict[str, Floats]):
    """Vectors by word that lie in one array, row by row in the order of the words."""

    rows: Floats | None = None


class WordEmbeddingModel:
    """Vectors with a name.

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
        """The vector of a word, or the default."""
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
        """Vectors by the spelling found, and the words lost, by WEFE's rules.

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
        """The same for words as they are: all rows are taken at once."""
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
    """A word after WEFE's preprocessing: lowercase, uppercase, titlecase, strip_accents, or a
    function under `preprocessor`.

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
