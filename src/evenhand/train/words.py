"""Word vectors from a corpus: skip-gram word2vec and fastText, through gensim.

Defaults are those of Kato and Miyao (2024): 300 dimensions, window 5, words that occur at least 5
times, 5 negative samples, 5 epochs. With one worker the same corpus, recipe and seed give the same
bytes; with more workers training is faster and no two runs agree (the original used nine).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from evenhand.arrays import save_array
from evenhand.corpora.balancing import BalancedView
from evenhand.corpora.text import Corpus
from evenhand.errors import DataError, SpecError, need
from evenhand.models.loading.saved import TRAINED
from evenhand.models.vectors.files import write_words
from evenhand.runner.progress import Progress, Silent
from evenhand.seals import digests, write_sealed
from evenhand.train.common import Training, require_known, require_new
from evenhand.writing import drafted, replacing

ALGORITHMS = ("word2vec", "fasttext")
FORMATS = {"text": "vectors.txt", "binary": "vectors.bin", "glove": "vectors.glove.txt"}
_STEP = 1_000


class WordTraining(Training):
    """Settings of the training. `shortest`, `longest` and `buckets` are fastText's n-grams."""

    algorithm: str = Field(default="word2vec", description="word2vec or fasttext.")
    dimensions: int = Field(default=300, ge=1)
    window: int = Field(default=5, ge=1)
    min_count: int = Field(default=5, ge=1, description="Occurrences a word needs.")
    negative: int = Field(default=5, ge=1)
    epochs: int = Field(default=5, ge=1)
    alpha: float = Field(default=0.025, gt=0)
    sample: float = Field(default=1e-3, ge=0)
    shortest: int = Field(default=3, ge=1)
    longest: int = Field(default=6, ge=1)
    buckets: int = Field(default=2_000_000, ge=1, description="fastText's n-gram rows.")
    seed: int = Field(default=0, ge=0, le=2**32 - 1, description="Seed of vectors and sample.")
    workers: int = Field(default=1, ge=1, description="More than 1 is not reproducible.")

    @model_validator(mode="after")
    def _known(self) -> WordTraining:
        require_known("algorithm", self.algorithm, ALGORITHMS, "train words")
        return self


def train_words(
    text: Corpus | BalancedView,
    out: str | Path,
    recipe: WordTraining | None = None,
    *,
    formats: Sequence[str] = (),
    also: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train word vectors and write them to a folder that appears only when it is complete.

    The folder holds `vectors.npy` and `words.parquet` (open with `open_vectors`; most frequent
    word first), `training.json` (recipe, corpus, balancing, versions; no times, so equal work
    gives equal bytes) and the further formats asked for.

    Args:
        text: a corpus, or a balanced view of one; it is read once per epoch and once for words.
        out: a new or empty folder.
        recipe: settings; default those of the paper.
        formats: any of "text" and "binary" (word2vec), "glove" (text without a header line).
        also: fastText only: words that need a vector even when the corpus lacks them; it is put
            together from their n-grams.

    Returns:
        What `training.json` says.

    Raises:
        DataError: no word occurs often enough, or the folder is not empty.
    """
    recipe = recipe or WordTraining()
    place = Path(out)
    require_new(place)
    for name in formats:
        require_known("format", name, tuple(FORMATS), "train words")
    if also and recipe.algorithm != "fasttext":
        raise SpecError("train words: 'also' needs fastText; word2vec has no n-grams.")
    model = _model(recipe)
    model.build_vocab(corpus_iterable=_Watched(text))
    if not len(model.wv):
        raise DataError(_no_words(text, recipe, model.corpus_count))
    watched = _Watched(text, progress or Silent(), model.corpus_count * recipe.epochs)
    model.train(watched, total_examples=model.corpus_count, epochs=recipe.epochs)
    watched.finish()
    words, rows, extra = _vectors(model, also)
    card = {
        "recipe": recipe.model_dump(),
        "reproducible": recipe.workers == 1,
        "words": len(words),
        "words_from_ngrams": extra,
        "lines": int(model.corpus_count),
        "tokens": int(model.corpus_total_words),
        "corpus": _origin(text),
        "trainer": {"gensim": _version()},
    }
    _write(place, words, rows, card, formats)
    return card


def _model(recipe: WordTraining) -> Any:
    models: Any = need("gensim.models", extra="train", what="training word vectors")
    settings: dict[str, Any] = {
        "vector_size": recipe.dimensions,
        "window": recipe.window,
        "min_count": recipe.min_count,
        "negative": recipe.negative,
        "epochs": recipe.epochs,
        "alpha": recipe.alpha,
        "sample": recipe.sample,
        "seed": recipe.seed,
        "workers": recipe.workers,
        "sg": 1,
    }
    if recipe.algorithm == "word2vec":
        return models.Word2Vec(**settings)
    return models.FastText(
        **settings, min_n=recipe.shortest, max_n=recipe.longest, bucket=recipe.buckets
    )


class _Watched:
    """Sentences that can be read again and again, counted for a progress listener."""

    def __init__(
        self, text: Iterable[list[str]], progress: Progress | None = None, total: int = 0
    ) -> None:
        self._text, self._progress, self._left = text, progress, total
        if progress:
            progress.start("train (lines)", total, 0)

    def __iter__(self) -> Iterator[list[str]]:
        seen = 0
        for sentence in self._text:
            yield sentence
            seen += 1
            if seen % _STEP == 0:
                self._advance(_STEP)
        self._advance(seen % _STEP)

    def _advance(self, lines: int) -> None:
        if self._progress:
            self._progress.advance(lines)

    def finish(self) -> None:
        if self._progress:
            self._progress.finish()


def _vectors(model: Any, also: Sequence[str]) -> tuple[list[str], npt.NDArray[np.float32], int]:
    words = list(model.wv.index_to_key)
    rows = np.ascontiguousarray(model.wv.vectors, dtype="<f4")
    missing = [word for word in dict.fromkeys(also) if word not in model.wv.key_to_index]
    made = []
    for word in missing:
        try:
            made.append((word, np.asarray(model.wv.get_vector(word), "<f4")))
        except KeyError:
            continue  # too short for a single n-gram: it stays missing
    if made:
        rows = np.concatenate([rows, np.stack([vector for _, vector in made])])
    return words + [word for word, _ in made], rows, len(made)


def _origin(text: Corpus | BalancedView) -> dict[str, Any]:
    corpus = text if isinstance(text, Corpus) else text.corpus
    found: dict[str, Any] = {
        "files": [os.path.basename(path) for path in corpus.paths],
        "fingerprint": corpus.fingerprint,
    }
    if isinstance(text, BalancedView):
        found["balance"] = text.describe()
    return found


def _write(
    place: Path,
    words: list[str],
    rows: npt.NDArray[np.float32],
    card: dict[str, Any],
    formats: Sequence[str],
) -> None:
    with drafted(place) as draft:
        save_array(draft / "vectors.npy", rows)
        write_words(draft / "words.parquet", words)
        for name in formats:
            write_vectors(draft / FORMATS[name], words, rows, name)
        write_sealed(draft / TRAINED, card, digests(draft))


def write_vectors(
    path: str | Path, words: Sequence[str], rows: npt.NDArray[np.float32], layout: str = "text"
) -> None:
    """Write vectors in a format that others read: "text", "binary" or "glove".

    Text carries nine significant digits, so that float32 numbers come back exactly.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "v.txt"
    >>> write_vectors(file, ["a"], np.array([[0.5, -1.0]], np.float32))
    >>> file.read_text()
    '1 2\\na 0.5 -1\\n'
    """
    n, dimensions = rows.shape
    pattern = " %.9g" * dimensions + "\n"
    with replacing(Path(path)) as out:
        if layout != "glove":
            out.write(f"{n} {dimensions}\n".encode())
        for word, row in zip(words, rows, strict=True):
            if layout == "binary":
                out.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
            else:
                out.write((word + pattern % tuple(row.tolist())).encode())


def _version() -> str:
    from importlib.metadata import version

    return version("gensim")


def _no_words(text: Corpus | BalancedView, recipe: WordTraining, lines: int) -> str:
    corpus = text if isinstance(text, Corpus) else text.corpus
    return (
        f"{corpus.paths[0]}: no word occurs {recipe.min_count} times in {lines} lines, so there "
        "is nothing to train. Pass more text, or a smaller --min-count."
    )
