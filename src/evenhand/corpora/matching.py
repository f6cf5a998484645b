"""Which lines hold a word of which set, for whole blocks of text at once.

Tokens are found with array operations: the places of white space, then the first eight bytes and
the length of every token as one number, looked up in a small hash table. Only tokens that pass
are compared in full. A block costs about 4 ns per byte, whatever the number of words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError

_PAD = b"\0" * 16
_BITS = 16
_MASK = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 10, 11, 12, 13, 28, 29, 30, 31, 32]] = True  # ASCII characters that str.split cuts at
_WIDE = tuple(
    chr(c).encode()
    for c in (0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
)
_LEADS = np.zeros(256, dtype=bool)
_LEADS[[0xC2, 0xE1, 0xE2, 0xE3]] = True


class Matcher:
    """Finds the words of up to eight sets; set number k is bit 1 << k of a line's flags.

    A word of several tokens ("construction worker") matches where its tokens follow each other.

    Args:
        sets: lists of words by name; the order gives the bits.
        lower: lower-case the words, as the corpora are.

    >>> find = Matcher({"jobs": ["nurse", "construction worker"], "she": ["she", "her"]})
    >>> find.flags(b"she is a nurse\\na worker\\nher construction worker\\n").tolist()
    [3, 0, 3]
    """

    def __init__(self, sets: Mapping[str, Sequence[str]], *, lower: bool = True) -> None:
        if not 1 <= len(sets) <= 8:
            raise SpecError(f"{len(sets)} sets of words. Accepted: 1 to 8.")
        self._ids: dict[bytes, int] = {}
        single: dict[int, int] = {}
        self._phrases: dict[tuple[int, ...], int] = {}
        for bit, (name, words) in enumerate(sets.items()):
            if not words:
                raise SpecError(f"set {name!r}: no words.")
            for word in words:
                tokens = (word.lower() if lower else word).split()
                if not tokens:
                    raise SpecError(f"set {name!r}: {word!r} holds no token.")
                ids = tuple(self._id(token) for token in tokens)
                if len(ids) == 1:
                    single[ids[0]] = single.get(ids[0], 0) | 1 << bit
                else:
                    self._phrases[ids] = self._phrases.get(ids, 0) | 1 << bit
        self._flags = np.array([single.get(i, 0) for i in range(len(self._ids))], np.uint8)
        self._prepare()

    def _id(self, token: str) -> int:
        return self._ids.setdefault(token.encode(), len(self._ids))

    def _prepare(self) -> None:
        """The hash table of (first eight bytes, length), and what follows in longer words."""
        words = list(self._ids)
        heads = [int.from_bytes(word[:8], "little") for word in words]
        keys = _hash(np.array(heads, np.uint64), np.array([len(w) for w in words], np.uint64))
        self._table = np.zeros(1 << _BITS, dtype=bool)
        self._table[(keys >> np.uint64(64 - _BITS)).astype(np.intp)] = True
        self._shapes = np.zeros(256 * 16, dtype=bool)
        self._shapes[[word[0] * 16 + min(len(word), 15) for word in words]] = True
        self._keys, self._order = np.unique(keys, return_index=True)
        self._lengths = np.array([len(word) for word in words])
        repeated = len(self._keys) < len(keys)  # words of one head and length are compared in full
        shared = np.isin(keys, keys[np.setdiff1d(np.arange(len(keys)), self._order)])
        self._in_full = repeated and bool((self._lengths[shared] <= 8).any())

    def flags(self, block: bytes) -> npt.NDArray[np.uint8]:
        """One number per line of a block that ends in a line feed."""
        if not block.isascii():
            block = _plain_spaces(block)
        buffer = block + _PAD
        data = np.frombuffer(buffer, np.uint8)
        white = np.flatnonzero(data[: len(block)] <= 32)
        kinds = data[white]
        if not ((kinds == 32) | (kinds == 10)).all():
            proper = _SPACE[kinds]
            white, kinds = white[proper], kinds[proper]
        begin = np.empty_like(white)
        begin[0] = 0
        np.add(white[:-1], 1, out=begin[1:])
        length = white - begin
        newlines = white[kinds == 10]
        out = np.zeros(len(newlines), np.uint8)
        if self._phrases:
            filled = np.flatnonzero(length)
            begin, length = begin[filled], length[filled]
        place, word = self._words(buffer, begin, length)
        line = np.searchsorted(newlines, begin[place])
        np.bitwise_or.at(out, line, self._flags[word])
        for ids, bits in self._phrases.items():
            found = self._phrase(ids, place, word, line)
            out[found] |= bits
        return out

    def _words(
        self, buffer: bytes, begin: npt.NDArray[np.intp], length: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Tokens that are words of a set: their number and the word."""
        shape = np.minimum(length, 15)
        shape += np.frombuffer(buffer, np.uint8)[begin].astype(np.intp) << 4
        maybe = np.flatnonzero(self._shapes[shape])
        heads = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))[begin[maybe]]
        size = length[maybe]
        keys = _hash(heads & _MASK[np.minimum(size, 8)], size.astype(np.uint64))
        passed = np.flatnonzero(self._table[(keys >> np.uint64(64 - _BITS)).astype(np.intp)])
        maybe, keys = maybe[passed], keys[passed]
        if self._in_full:
            return self._compare(buffer, begin, length, maybe)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        word = self._order[at]
        same = (self._keys[at] == keys) & (self._lengths[word] == length[maybe])
        place, word = maybe[same], word[same]
        long = length[place] > 8
        if not long.any():
            return place, word
        checked = self._compare(buffer, begin, length, place[long])
        place = np.concatenate([place[~long], checked[0]])
        word = np.concatenate([word[~long], checked[1]])
        order = np.argsort(place, kind="stable")
        return place[order], word[order]

    def _compare(
        self,
        buffer: bytes,
        begin: npt.NDArray[np.intp],
        length: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Whole tokens looked up in the dictionary, one by one."""
        low = begin[places].tolist()
        high = (begin[places] + length[places]).tolist()
        found = np.array([self._ids.get(buffer[i:j], -1) for i, j in zip(low, high)], np.intp)
        return places[found >= 0], found[found >= 0]

    def _phrase(
        self,
        ids: tuple[int, ...],
        place: npt.NDArray[np.intp],
        word: npt.NDArray[np.intp],
        line: npt.NDArray[np.intp],
    ) -> npt.NDArray[np.intp]:
        """Lines in which the words follow each other."""
        n = len(place) - len(ids) + 1
        if n <= 0:
            return np.empty(0, np.intp)
        starts = np.flatnonzero(word[:n] == ids[0])
        for step, wanted in enumerate(ids[1:], start=1):
            here = starts + step
            good = (word[here] == wanted) & (place[here] == place[starts] + step)
            starts = starts[good & (line[here] == line[starts])]
        return line[starts]


def _hash(heads: npt.NDArray[np.uint64], length: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One number per (first eight bytes, length); distinct pairs nearly always differ."""
    mixed: npt.NDArray[np.uint64] = (heads ^ (length * _SPREAD)) * _MIX
    return mixed


def _plain_spaces(block: bytes) -> bytes:
    """Unicode white space as ASCII spaces of the same length in bytes."""
    data = np.frombuffer(block, np.uint8)
    leads = np.flatnonzero(data > 0xC1)
    leads = leads[_LEADS[data[leads]]]
    size = np.where(data[leads] == 0xC2, 2, 3)
    triple = data[np.minimum(leads[:, None] + np.arange(3), len(data) - 1)]
    packed = triple.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    packed = np.where(size == 2, packed >> 8, packed)
    hit = np.isin(packed, [int.from_bytes(wide, "big") for wide in _WIDE])
    if not hit.any():
        return block
    changed = data.copy()
    for at, width in zip(leads[hit].tolist(), size[hit].tolist()):
        changed[at : at + width] = 32
    return changed.tobytes()
