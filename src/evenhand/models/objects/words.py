"""Word vectors in memory: gensim's, spaCy's, or a mapping of words to vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.errors import DataError
from evenhand.models.adapters.vectors import HeldVectors
from evenhand.models.objects.recognised import is_a
from evenhand.models.protocol import Model
from evenhand.models.vectors.files import VectorTable

TRAINED = ("Word2Vec", "FastText", "Doc2Vec")


def taken(thing: Any) -> bool:
    return (
        is_a(thing, "gensim", "KeyedVectors", *TRAINED)
        or is_a(thing, "spacy", "Vectors", "BaseVectors", "Language", "Vocab")
        or isinstance(thing, Mapping)
    )


def model(thing: Any, name: str) -> Model:
    """The vectors as a model; a word that has none is missing, as in a file."""
    if isinstance(thing, Mapping):
        words, matrix = _mapped(thing)
    elif is_a(thing, "spacy", "Vectors", "BaseVectors", "Language", "Vocab"):
        words, matrix = _spacy(thing)
    else:
        keyed = thing.wv if is_a(thing, "gensim", *TRAINED) else thing
        words, matrix = list(keyed.index_to_key), keyed.vectors[: len(keyed.index_to_key)]
    called = name or ("vectors" if isinstance(thing, Mapping) else type(thing).__name__)
    kept = [k for k, word in enumerate(words) if isinstance(word, str)]
    if len(kept) < 2:
        raise DataError(f"{called}: words with a vector: {len(kept)}. Two or more are needed.")
    rows = matrix if len(kept) == len(words) else matrix[kept]
    table = VectorTable(pa.array([words[k] for k in kept]), np.asarray(rows, np.float32), called)
    return HeldVectors(table, called)


def _mapped(given: Mapping[Any, Any]) -> tuple[list[Any], Any]:
    """Words to vectors of one length."""
    rows = [_vector(word, row) for word, row in given.items()]
    sizes = sorted({row.shape for row in rows})
    if len(sizes) != 1 or len(sizes[0]) != 1:
        shown = ", ".join(map(str, sizes[:3])) or "none"
        raise DataError(f"a mapping of words: vectors of one length are expected, not {shown}.")
    return list(given), np.stack(rows)


def _vector(word: Any, row: Any) -> Any:
    try:
        return np.asarray(row, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a mapping of words: {word!r} has {type(row).__name__} where the numbers of its "
            f"vector are expected."
        ) from error


def _spacy(thing: Any) -> tuple[list[Any], Any]:
    """The rows of spaCy's table that have a word, by its text."""
    vocab = getattr(thing, "vocab", thing)
    vectors = getattr(vocab, "vectors", vocab)
    strings = getattr(vocab, "strings", None)
    strings = strings if strings is not None else getattr(vectors, "strings", None)
    held = [(key, row) for key, row in vectors.key2row.items() if row >= 0]
    if strings is None or not held:
        raise DataError(
            "spaCy vectors: there are no words with a row. Give the pipeline itself, "
            "spacy.load(...), of a package with vectors (md or lg)."
        )
    words = [strings[key] if key in strings else None for key, _ in held]  # noqa: SIM401
    data = vectors.data.get() if hasattr(vectors.data, "get") else vectors.data  # from a GPU
    return words, data[[row for _, row in held]]
