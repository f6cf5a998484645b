"""Static word vectors as a model: it answers Embed, NaN for words it does not have."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.adapters.spans_marked import unmarked
from evenhand.models.chat import refuse_chat
from evenhand.models.loading.cache import file_digest
from evenhand.models.protocol import LoadOptions, Model
from evenhand.models.vectors.files import VectorTable, open_vectors
from evenhand.requests import Column, Embed, Requests


class VectorModel(Model):
    """Word vectors from a file or a packaged set, memory-mapped.

    A word is looked up as written, then in lower case, then as the mean of its parts.
    """

    kind = "vectors"
    answers = frozenset({Embed.kind})

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self.source = source
        self.table: VectorTable = open_vectors(source)
        self._fingerprint = hashlib.sha256(f"vectors-1|{_identity(source)}".encode()).hexdigest()

    @classmethod
    def claims(cls, path: Path) -> bool:
        """A vector file, or a folder of arrays."""
        arrays = path.is_dir() and not (path / "config.json").exists() and any(path.glob("*.npy"))
        return path.is_file() or arrays

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> VectorModel:
        refuse_chat(name, cls.kind, options or LoadOptions())
        return cls(source, name)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def describe(self) -> dict[str, Any]:
        rows, width = len(self.table), self.table.dimensions
        return {
            **super().describe(),
            "words": int(rows),
            "dimensions": int(width),
            "parameters": int(rows * width),
        }

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        if not isinstance(requests, Embed):
            raise ModelError(f"vectors {self.name!r} cannot answer {requests.kind!r}.")
        out = np.full((len(requests), self.table.dimensions), np.nan, dtype=np.float32)
        words = [_first_marked(t) for t in requests.text] if requests.marked else requests.text
        self.table.prefetch(words)
        for row, word in enumerate(words):
            found = self.table.find([word])
            if found.words:
                out[row] = found.rows[0]
        return {"vector": out}


class HeldVectors(VectorModel):
    """Vectors in memory, known by their words and numbers; `origin` says what they were made of."""

    def __init__(self, table: VectorTable, name: str, origin: str = "") -> None:
        self.name, self.source, self.table = name, "", table
        state = hashlib.sha256(f"vectors-held|{origin}|".encode())
        state.update("\n".join(table.words.to_pylist()).encode("utf-8", "surrogatepass"))
        state.update(np.ascontiguousarray(table.matrix).data)
        self._fingerprint = state.hexdigest()


def _first_marked(text: str) -> str:
    """The first marked part: a static vector is the same wherever it stands."""
    plain, spans = unmarked(text)
    return plain[slice(*spans[0])]


def _identity(source: str) -> str:
    """SHA-256 of the vector file, or of the names and bytes of a folder's files."""
    path = Path(source)
    files = sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [path]
    return "|".join(f"{f.name}:{file_digest(f)}" for f in files)
