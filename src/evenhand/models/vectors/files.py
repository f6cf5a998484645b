"""Tables of word vectors, opened from any of the usual files without running code from them.

`open_vectors` takes GloVe text, word2vec text or binary, fastText .vec (each also .gz or .xz), the
packaged GloVe folder, or a folder in evenhand's own layout:

    vectors.npy      float32 [words, dimensions], memory-mapped when read
    words.parquet    one text column, row k names vector k

Large text files are converted to that layout once and read from the cache afterwards.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import map_array, read_parquet
from evenhand.errors import DataError, ModelError
from evenhand.models.loading.cache import cache_folder, writable
from evenhand.models.loading.saved import check_whole
from evenhand.models.vectors import formats

ALIASES = ("glove-6b-50d",)
LARGE = 64 << 20
SAMPLED = 4096
"""Vectors that are looked at to see whether a table has content."""


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of the words that a table holds, and what became of the others.

    `rows` [found, dimensions] belongs to `words`, in the order asked, repeats left out; `lowered`
    are the words found only in lower case; `missing` those without a vector.
    """

    words: tuple[str, ...]
    rows: npt.NDArray[np.float32]
    missing: tuple[str, ...]
    lowered: tuple[str, ...]


@dataclass(frozen=True)
class VectorTable:
    """Word vectors: `words` (a pyarrow array of text) names the rows of `matrix` [n, d]."""

    words: Any
    matrix: npt.NDArray[np.float32]
    source: str = "vectors"
    duplicates: int = 0
    _places: dict[str, int | None] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def dimensions(self) -> int:
        """Numbers in one vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> row. Built on first use; `find` does without it."""
        return {word: row for row, word in enumerate(self.words.to_pylist())}

    def find(self, words: Sequence[str], *, multiword: bool = True) -> Found:
        """Look words up: as they are, then in lower case, then as the mean of their tokens.

        Tokens are split at spaces; a term of several tokens needs all of them. A vector of zeros
        (or with a NaN) has no direction and counts as missing.

        Args:
            words: the words, in any case.
            multiword: whether "construction worker" may be the mean of its two tokens.
        """
        asked = list(dict.fromkeys(words))
        parts = {w: w.split() for w in asked if multiword and len(w.split()) > 1}
        at = self._positions(_spellings(asked))
        kept: dict[Any, tuple[str, npt.NDArray[np.float32]]] = {}
        missing, lowered = [], []
        for word in asked:
            rows, folded = _rows_of(word, parts.get(word), at)
            vector = self.matrix[list(rows)].mean(axis=0) if rows else None
            if vector is None or not np.isfinite(vector).all() or not vector.any():
                missing.append(word)
                continue
            if rows not in kept:
                kept[rows] = (word, vector)
            if folded:
                lowered.append(word)
        stacked = [vector for _, vector in kept.values()]
        matrix = np.stack(stacked) if stacked else np.empty((0, self.dimensions), np.float32)
        names = tuple(word for word, _ in kept.values())
        return Found(names, matrix, tuple(missing), tuple(lowered))

    def places(self, words: Sequence[str], *, multiword: bool = True) -> list[tuple[int, ...]]:
        """The rows that `find` would average for each word; empty where the word is missing."""
        at = self._positions(_spellings(words))
        tokens = [w.split() if multiword and len(w.split()) > 1 else None for w in words]
        found = [_rows_of(word, parts, at)[0] for word, parts in zip(words, tokens, strict=True)]
        return [rows if rows and self._points(rows) else () for rows in found]

    def _points(self, rows: tuple[int, ...]) -> bool:
        """Whether the mean of these rows has a direction."""
        vector = self.matrix[list(rows)].mean(axis=0)
        return bool(np.isfinite(vector).all() and vector.any())

    def prefetch(self, words: Sequence[str]) -> None:
        """Look up many words in one pass over the vocabulary, for many calls of `find`."""
        self._positions(_spellings(words))

    def _positions(self, words: Sequence[str]) -> dict[str, int | None]:
        """Rows of exact spellings. One pass over the vocabulary serves all that are new."""
        import pyarrow as pa
        import pyarrow.compute as pc

        new = sorted({word for word in words if word not in self._places})
        if new:
            places = pc.index_in(pa.array(new, self.words.type), value_set=self.words)
            self._places.update(zip(new, places.to_pylist(), strict=True))
        return self._places


def _spellings(words: Sequence[str]) -> list[str]:
    """Every spelling that `find` may try for the words: whole and by token, lower case too."""
    tried = {form for word in words for form in (word, *word.split())}
    return sorted(tried | {form.lower() for form in tried})


def _rows_of(
    word: str, tokens: list[str] | None, at: dict[str, int | None]
) -> tuple[tuple[int, ...], bool]:
    """Rows to average for a word (none: missing), and whether lower case was needed."""
    for candidate in (word, word.lower()):
        row = at[candidate]
        if row is not None:
            return (row,), candidate != word
    exact = [at[token] for token in tokens or ()]
    found = [
        at[t.lower()] if row is None else row for t, row in zip(tokens or (), exact, strict=True)
    ]
    rows = tuple(row for row in found if row is not None)
    return (rows, None in exact) if len(rows) == len(found) else ((), False)


def resolve_vectors(name: str | Path) -> Path:
    """The file or folder that a name stands for: a local path first, then a fetched alias.

    Raises:
        DataError: the name is a path and nothing is there.
        ModelError: the name is an alias that has not been fetched, or unknown.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    text = str(name)
    cached = cache_folder() / text
    if text in ALIASES:
        if cached.is_dir():
            return cached
        raise ModelError(
            f"vectors '{text}': not in the cache ({cached}). Get them with: evenhand fetch {text}"
        )
    if path.suffix or len(path.parts) > 1:
        raise DataError(f"{text}: no such file or folder. Pass a vector file, or: {ALIASES[0]}")
    raise ModelError(
        f"vectors: '{text}' is neither a file nor a known name. Known: {', '.join(ALIASES)}. "
        f"Get them with: evenhand fetch {ALIASES[0]}"
    )


def open_vectors(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    cache_dir: str | Path | None = None,
    large: int = LARGE,
) -> VectorTable:
    """Open a vector file or folder; the format is found from its content.

    Args:
        path: a file, or a folder holding an .npy matrix and a .parquet list of words.
        encoding: how the words of a text or binary file are encoded.
        cache_dir: where files larger than `large` bytes are converted once (default: the
            `vectors` folder of the evenhand cache).
        large: size in bytes from which a file is converted rather than held in memory.
    """
    path = Path(path).expanduser()
    table = _open(path, encoding, cache_dir, large)
    _require_content(path, table.matrix)
    return table


def _require_content(path: Path, matrix: npt.NDArray[np.float32]) -> None:
    """Refuse a table of equal vectors or mostly of zeros, which an interrupted download leaves."""
    rows = matrix[:: max(1, len(matrix) // SAMPLED)]
    zeros = float((~rows.any(axis=1)).mean()) if len(rows) else 0.0
    alike = len(rows) > 1 and bool((rows == rows[0]).all())
    if alike or zeros > 0.5:
        what = (
            f"about {100 * zeros:.0f} % of its vectors are 0" if zeros else "all vectors are equal"
        )
        raise DataError(
            f"{path}: {what}. An interrupted download leaves such files. Download it again, or "
            "copy it from where it is whole."
        )


def _open(path: Path, encoding: str, cache_dir: str | Path | None, large: int) -> VectorTable:
    if path.is_dir():
        return _open_folder(path)
    if not path.exists():
        raise DataError(f"{path}: no such file. Pass a vector file or folder, or: {ALIASES[0]}")
    head = formats.read_head(path)
    if head[:6] == b"\x93NUMPY":
        return _open_folder(path.parent, matrix=path)
    formats.refuse_unsafe(path, head)
    layout = formats.detect(path, head)
    if path.stat().st_size < large:
        return _in_memory(path, layout, encoding)
    root = Path(cache_dir) if cache_dir is not None else cache_folder() / "vectors"
    folder = writable(root / _cache_key(path, head, encoding))
    if not (folder / "words.parquet").exists():
        convert(path, folder, encoding=encoding)
    table = _open_folder(folder)
    return VectorTable(table.words, table.matrix, str(path))


def convert(path: str | Path, folder: str | Path, *, encoding: str = "utf-8") -> int:
    """Write a vector file in the cache layout and give the number of repeated words dropped.

    The folder appears only when it is complete; a stopped conversion leaves nothing behind.
    """
    path, folder = Path(path), Path(folder)
    head = formats.read_head(path)
    formats.refuse_unsafe(path, head)
    layout = formats.detect(path, head)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        words: dict[str, None] = {}
        dropped = 0
        with (draft / "vectors.npy").open("wb") as out:
            _npy_header(out, 0, layout.dimensions)
            for names, rows in formats.read_blocks(path, layout, encoding):
                fresh = _fresh(names, words)
                dropped += len(names) - len(fresh)
                out.write((rows if len(fresh) == len(names) else rows[fresh]).tobytes())
            out.seek(0)
            _npy_header(out, len(words), layout.dimensions)
        write_words(draft / "words.parquet", list(words))
        _put_in_place(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    _report_duplicates(path, dropped)
    return dropped


def write_words(path: Path, words: Sequence[str]) -> None:
    """Write the list of words beside a matrix."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"word": pa.array(words, pa.string())}), path)


def _put_in_place(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        # Another process was first: its folder holds the same bytes.
        if not (folder / "words.parquet").exists():
            raise


def _npy_header(out: Any, n: int, dimensions: int) -> None:
    # numpy pads the header for a growing first axis, so a later count overwrites it in place.
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, dimensions)}
    np.lib.format.write_array_header_1_0(out, header)


def _fresh(names: list[str], seen: dict[str, None]) -> list[int]:
    """Positions of the words not seen before; they are marked as seen."""
    fresh = []
    for position, name in enumerate(names):
        if name not in seen:
            seen[name] = None
            fresh.append(position)
    return fresh


def _report_duplicates(path: Path, dropped: int) -> None:
    if dropped:
        warnings.warn(
            f"{path}: {dropped} repeated words; the first vector of each was kept.", stacklevel=3
        )


def _in_memory(path: Path, layout: formats.Layout, encoding: str) -> VectorTable:
    import pyarrow as pa

    words: dict[str, None] = {}
    blocks: list[npt.NDArray[np.float32]] = []
    dropped = 0
    for names, rows in formats.read_blocks(path, layout, encoding):
        fresh = _fresh(names, words)
        dropped += len(names) - len(fresh)
        blocks.append(rows if len(fresh) == len(names) else rows[fresh])
    if not blocks:
        raise DataError(f"{path}: the file holds no vectors.")
    _report_duplicates(path, dropped)
    return VectorTable(pa.array(list(words)), np.concatenate(blocks), str(path), dropped)


def _cache_key(path: Path, head: bytes, encoding: str) -> str:
    stat = path.stat()
    parts = (path.resolve(), stat.st_size, stat.st_mtime_ns, encoding, hashlib.sha256(head))
    text = "|".join(p.hexdigest() if hasattr(p, "hexdigest") else str(p) for p in parts)
    return f"{path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _open_folder(folder: Path, matrix: Path | None = None) -> VectorTable:
    import pyarrow as pa
    import pyarrow.compute as pc

    check_whole(folder)
    matrix = matrix or _one(folder, ("vectors.npy", "*_emb.npy"))
    names = _one(matrix.parent, ("words.parquet", "*_index.parquet"))
    array = _map_matrix(matrix)
    words = _read_words(names)
    if len(words) != len(array):
        raise DataError(
            f"{names}: {len(words)} words for the {len(array)} vectors of {matrix.name}. "
            "Both must have the same number of rows."
        )
    repeated = len(words) - pc.count_distinct(words).as_py()
    _report_duplicates(names, repeated)
    return VectorTable(words.cast(pa.string()), array, str(folder), repeated)


def _one(folder: Path, patterns: tuple[str, ...]) -> Path:
    """The first file that fits, in the folder or its `data` folder."""
    for place in (folder, folder / "data"):
        for pattern in patterns:
            for path in sorted(place.glob(pattern)):
                return path
    raise DataError(
        f"{folder}: no {' or '.join(patterns)} in this folder. Accepted: a folder with vectors.npy "
        "and words.parquet, the packaged GloVe folder, or a vector file."
    )


def _map_matrix(path: Path) -> npt.NDArray[np.float32]:
    array = map_array(
        path,
        "An array of objects is a pickle and is never loaded; save the vectors as a float32 array "
        "[words, dimensions].",
    )
    if array.ndim != 2 or array.dtype.kind != "f":
        raise DataError(
            f"{path}: holds {array.dtype} of shape {array.shape}; expected float32 "
            "[words, dimensions]."
        )
    return array  # type: ignore[no-any-return]


def _read_words(path: Path) -> Any:
    import pyarrow as pa

    table = read_parquet(path)
    for column in table.schema:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return table.column(column.name).combine_chunks()
    raise DataError(f"{path}: has no text column of words.")
