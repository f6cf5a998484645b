"""Readers of word-vector files: GloVe text, word2vec text and binary, fastText text.

A reader yields blocks of (words, float32 rows), so that a file of any size passes through a fixed
amount of memory. Lines end at the newline byte only: some vocabularies hold words that are other
line separators. Nothing here unpickles, and nothing imports more than numpy.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError
from evenhand.opening import beyond, limit, lines_of, opened

Block = tuple[list[str], npt.NDArray[np.float32]]

LINES = 4096
_BREAKS = re.compile(rb"[\r\v\f]")
"""What numpy takes for space between two numbers, and is a damaged line."""
_FRACTION = re.compile(rb"[+-]?\d*\.\d+")
HEAD = 1 << 20
FASTTEXT_MODEL = (793712314).to_bytes(4, "little")
EXPORT = (
    "Export the vectors as word2vec text or binary, for example with "
    "KeyedVectors.save_word2vec_format('vectors.bin', binary=True), and pass that file."
)


@dataclass(frozen=True, slots=True)
class Layout:
    """What the head of a file says: its kind, dimensions, and the count its header promises."""

    kind: str  # "text" or "binary"
    dimensions: int
    promised: int | None


def read_head(path: Path) -> bytes:
    """The first mebibyte of a file, after decompression."""
    with opened(path) as file:
        return file.read(HEAD)


def refuse_unsafe(path: Path, head: bytes) -> None:
    """Raise for files that only unpickling could read, and for archives."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    suffix = Path(name).suffix
    pickled = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    if pickled or suffix in {".kv", ".model", ".pkl", ".pickle", ".pt", ".pth", ".joblib"}:
        raise DataError(
            f"{path}: looks like a pickle ({suffix or 'by its first bytes'!s}). Loading a pickle "
            f"runs code that the file chooses, so evenhand never does. {EXPORT}"
        )
    if head[:4] == FASTTEXT_MODEL:
        raise DataError(
            f"{path}: is a fastText model, not a table of vectors. Use the .vec file that "
            "fastText writes beside it."
        )
    if head[:4] == b"PK\x03\x04":
        raise DataError(f"{path}: is a zip archive. Unpack it and pass the file inside.")


def _floats(parts: list[bytes]) -> bool:
    try:
        for part in parts:
            float(part)
    except ValueError:
        return False
    return True


def detect(path: Path, head: bytes) -> Layout:
    """Tell the layout from the head of a file: a header of two integers, text or binary."""
    if not head.strip():
        raise DataError(f"{path}: the file is empty. Expected a word and its vector on each line.")
    first, _, rest = head.partition(b"\n")
    parts = first.split()
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        if max(map(len, parts)) > 15 or 4 * int(parts[1]) > limit("array"):
            raise beyond(path, "one of its vectors would take more than", "array")
        count, dimensions = int(parts[0]), int(parts[1])
        if dimensions == 0:
            raise DataError(f"{path}: the header '{first.decode()}' promises 0 dimensions.")
        row = rest.split(b"\n", 1)[0].rstrip(b" \t\r").rsplit(None, dimensions)
        text = not rest or (len(row) >= 2 and _floats(row[1:]))
        return Layout("text" if text else "binary", dimensions, count)
    if len(parts) < 2 or not _floats(parts[1:]):
        shown = first[:60].decode("utf-8", "replace")
        raise DataError(
            f"{path}, line 1: {shown!r} is neither a header ('count dimensions') nor a word with "
            "its numbers. Accepted: GloVe text, word2vec text or binary, fastText .vec."
        )
    return Layout("text", len(parts) - 1, None)


def read_blocks(path: Path, layout: Layout, encoding: str = "utf-8") -> Iterator[Block]:
    """Yield blocks of words and rows in the order of the file, checking every row."""
    reader = _text_blocks if layout.kind == "text" else _binary_blocks
    seen = 0
    for words, rows in reader(path, layout, encoding):
        seen += len(words)
        yield words, rows
    if layout.promised is not None and seen != layout.promised:
        raise DataError(
            f"{path}: the header promises {layout.promised} words, the file holds {seen}. "
            "It is cut short, or the header is wrong; correct the first line or fetch it again."
        )


def _text_blocks(path: Path, layout: Layout, encoding: str) -> Iterator[Block]:
    number = 0
    with opened(path) as file:
        if layout.promised is not None:
            file.readline()
            number = 1
        words: list[str] = []
        tails: list[bytes] = []
        for raw in lines_of(file, path):
            number += 1
            line = raw.rstrip(b" \t\r\n")
            if not line:
                continue
            word, tail = _split_line(path, number, line, layout)
            if not word.strip():
                raise DataError(f"{path}, line {number}: numbers without a word before them.")
            words.append(_decode(path, f"line {number}", word, encoding))
            tails.append(tail)
            if len(words) == LINES:
                yield words, _numbers(path, number, tails, layout.dimensions)
                words, tails = [], []
        if words:
            yield words, _numbers(path, number, tails, layout.dimensions)


def _split_line(path: Path, number: int, line: bytes, layout: Layout) -> tuple[bytes, bytes]:
    """Cut the numbers of the row off a line; a word may hold spaces, but no tab."""
    dimensions = layout.dimensions
    found = line.count(b" ") + line.count(b"\t")
    if found == dimensions:
        cut = min(at for at in (line.find(b" "), line.find(b"\t")) if at >= 0)
        if not _BREAKS.search(line, cut):
            return line[:cut], line[cut + 1 :]
    parts = line.rsplit(None, dimensions)
    extra = parts[0].split() if parts else []
    torn = parts and (b"\t" in parts[0] or _BREAKS.search(line, len(parts[0])))
    if torn or len(parts) != dimensions + 1 or _holds_numbers(extra[1:]):
        shown = line[:40].decode("utf-8", "replace")
        rule = "Every row must have the length of the first."
        if layout.promised is not None:
            rule = f"The header promises rows of {dimensions}; correct it, or the row."
        raise DataError(
            f"{path}, line {number}: {len(line.split()) - 1} numbers where {dimensions} were "
            f"expected ({shown!r}...). {rule}"
        )
    return parts[0], b" ".join(parts[1:])


def _holds_numbers(parts: list[bytes]) -> bool:
    """Whether numbers stand inside a word: "top 10 list" is one, "art 1.0 0.1art" is a torn row."""
    return bool(parts) and (_floats(parts) or any(map(_FRACTION.match, parts)))


def _numbers(path: Path, last: int, tails: list[bytes], dimensions: int) -> npt.NDArray[np.float32]:
    """Parse many rows in one call; on failure, find the row that is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            flat = np.fromstring(b" ".join(tails), dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            flat = np.empty(0)
    if flat.size == len(tails) * dimensions and np.isfinite(flat).all():
        return flat.reshape(len(tails), dimensions).astype(np.float32)
    for back, tail in enumerate(tails):
        for part in tail.split():
            if not _floats([part]) or not np.isfinite(float(part)):
                raise DataError(
                    f"{path}, near line {last - len(tails) + 1 + back}: "
                    f"{part.decode('utf-8', 'replace')!r} is not a finite number."
                )
    raise DataError(f"{path}, before line {last}: the numbers of a row cannot be read.")


def _decode(path: Path, where: str, word: bytes, encoding: str) -> str:
    try:
        return word.decode(encoding)
    except (LookupError, UnicodeEncodeError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise _not_in(path, where, word, encoding, error) from error
        raise SpecError(
            f"--encoding {encoding!r}: unknown. Accepted: what Python knows, such as latin-1."
        ) from None


def _not_in(
    path: Path, where: str, word: bytes, encoding: str, error: UnicodeDecodeError
) -> DataError:
    return DataError(
        f"{path}, {where}: the word {word!r} is not {encoding} (byte {error.start} of the "
        "word). Name the encoding of the file, for example: --encoding latin-1"
    )


def _binary_blocks(path: Path, layout: Layout, encoding: str) -> Iterator[Block]:
    width = 4 * layout.dimensions
    with opened(path) as file:
        offset = len(file.readline())
        buffer, at, words = b"", 0, list[str]()
        rows: list[npt.NDArray[np.float32]] = []  # which take no more than the file holds
        for index in range(cast("int", layout.promised)):
            # One word rarely needs more than 64 bytes; refill well before the end of the buffer.
            if len(buffer) - at < width + 1024:
                offset, buffer, at = offset + at, buffer[at:] + file.read(1 << 22), 0
            space = buffer.find(b" ", at)
            if space < 0 or len(buffer) - space - 1 < width:
                raise DataError(
                    f"{path}, byte {offset + at}: the file ends inside word {index + 1} of "
                    f"{layout.promised}. It is cut short; fetch or write it again."
                )
            word = buffer[at:space].lstrip(b"\n")
            words.append(_decode(path, f"byte {offset + at}", word, encoding))
            rows.append(np.frombuffer(buffer, "<f4", layout.dimensions, space + 1))
            at = space + 1 + width
            if len(words) == LINES:
                yield words, np.stack(rows)
                words, rows = [], []
        if (buffer[at:] + file.read(64)).strip():
            raise DataError(
                f"{path}, byte {offset + at}: data follows word {layout.promised}, the last that "
                "the header promises. The header count is too small, or the file is not word2vec "
                "binary."
            )
        if words:
            yield words, np.stack(rows)
